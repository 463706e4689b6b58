// Steps of block decoding with AVX-512: compression of bytes (VBMI2) takes the exponents off a
// tape, eight lookups at a time, and code starts follow from the lengths of the codes, 64 at a
// time.
#include "decoder/block_kernels.h"

#if defined(__x86_64__)
// GCC 12's intrinsics leave uninitialized what their masks do not use (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <bit>
#include <cstring>

#define DF11_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,popcnt"

namespace df11 {

bool avx512_supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("popcnt");
}

[[gnu::target(DF11_AVX512)]] void expand_avx512(LookupTape& tape, size_t n_entries, uint64_t,
                                                BlockStream& stream) {
  constexpr size_t kEntries = 8;
  // The two lowest bytes of an entry are no exponents.
  constexpr __mmask64 kExponentBytes = 0xfcfc'fcfc'fcfc'fcfc;
  const __m512i unused = _mm512_set1_epi8(static_cast<char>(MultiSymbolTable::kUnused));
  for (size_t i = n_entries; i % kEntries != 0; ++i)
    tape.entries[i] = MultiSymbolTable::kEmptyEntry;
  uint8_t* const begin = stream.scratch->exponents.data();
  uint8_t* out = begin + stream.n_decoded;
  for (size_t i = 0; i < n_entries; i += kEntries) {
    const __m512i entries = _mm512_load_si512(&tape.entries[i]);
    const __mmask64 used = _mm512_mask_cmpneq_epu8_mask(kExponentBytes, entries, unused);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(used, entries));
    out += std::popcount(uint64_t{used});
  }
  stream.n_decoded = static_cast<uint32_t>(out - begin);
}

namespace {

constexpr size_t kLanes = 64;

// word = high byte s eeeeeee, low byte e mmmmmmm (spec/df11_format.md section 2)
[[gnu::target(DF11_AVX512), gnu::always_inline]] inline void join_64(__m512i exponents,
                                                                     const uint8_t* sign_mantissa,
                                                                     uint16_t* words) {
  constexpr int kSelect = 0xca;  // first ? second : third, by bit
  const __m512i first_bits = _mm512_set1_epi8(-128);
  const __m512i halves = _mm512_loadu_si512(sign_mantissa);
  const __m512i high =
      _mm512_ternarylogic_epi64(first_bits, halves, _mm512_srli_epi16(exponents, 1), kSelect);
  const __m512i low =
      _mm512_ternarylogic_epi64(first_bits, _mm512_slli_epi16(exponents, 7), halves, kSelect);
  // Bytes 0, 64 + 0, 1, 64 + 1, …
  const __m512i front = _mm512_set_epi64(
      0x5f1f'5e1e'5d1d'5c1c, 0x5b1b'5a1a'5919'5818, 0x5717'5616'5515'5414, 0x5313'5212'5111'5010,
      0x4f0f'4e0e'4d0d'4c0c, 0x4b0b'4a0a'4909'4808, 0x4707'4606'4505'4404, 0x4303'4202'4101'4000);
  const __m512i back = _mm512_or_si512(front, _mm512_set1_epi8(32));
  _mm512_storeu_si512(words, _mm512_permutex2var_epi8(low, front, high));
  _mm512_storeu_si512(words + 32, _mm512_permutex2var_epi8(low, back, high));
}

// Finds code starts from the lengths of codes. Bits are counted modulo 256, which is enough: a code
// has at most 32 and a window 64.
class StartFinder {
 public:
  [[gnu::target(DF11_AVX512)]] StartFinder(const uint8_t* lengths, uint32_t first_bit,
                                           uint8_t* starts)
      : bit_(_mm512_set1_epi8(static_cast<char>(first_bit))), out_(starts) {
    for (size_t i = 0; i < 4; ++i) lengths_[i] = _mm512_loadu_si512(lengths + kLanes * i);
  }

  // 64 codes; fewer when the last ones have no length.
  [[gnu::target(DF11_AVX512), gnu::always_inline]] inline void add(__m512i exponents) {
    const __m512i length =
        _mm512_mask_mov_epi8(_mm512_permutex2var_epi8(lengths_[0], exponents, lengths_[1]),
                             _mm512_movepi8_mask(exponents),
                             _mm512_permutex2var_epi8(lengths_[2], exponents, lengths_[3]));
    // Sums within eight codes are at most 256: nothing is carried but out of the last byte.
    __m512i end = _mm512_mullo_epi64(length, _mm512_set1_epi64(0x0101'0101'0101'0101));
    // What the eights before have: to each eight all eights' sums, of which it adds those before.
    const __m512i last_of_eights = _mm512_set1_epi64(0x3f37'2f27'1f17'0f07);
    constexpr __mmask64 kEightsBefore = 0x7f3f'1f0f'0703'0100;
    const __m512i before = _mm512_sad_epu8(
        _mm512_maskz_permutexvar_epi8(kEightsBefore, last_of_eights, end), _mm512_setzero_si512());
    const __m512i lowest_of_eight =
        _mm512_broadcast_i32x4(_mm_set_epi64x(0x0808'0808'0808'0808, 0));
    end = _mm512_add_epi8(end, _mm512_shuffle_epi8(before, lowest_of_eight));
    end = _mm512_add_epi8(end, bit_);
    bit_ = _mm512_permutexvar_epi8(_mm512_set1_epi8(kLanes - 1), end);
    // A code ends in another window than it starts in if it ends less than its length after a
    // window's first bit.
    const __m512i offset = _mm512_and_si512(end, _mm512_set1_epi8(kWindowBits - 1));
    const __mmask64 crosses = _mm512_cmplt_epu8_mask(offset, length);
    _mm512_storeu_si512(out_, _mm512_maskz_compress_epi8(crosses, offset));
    out_ += std::popcount(uint64_t{crosses});
  }

 private:
  __m512i lengths_[4];  // by exponent
  __m512i bit_;         // where the next code starts, in every byte
  uint8_t* out_;
};

}  // namespace

[[gnu::target(DF11_AVX512)]] void join_avx512(const MultiSymbolTable& table, BlockStream& stream,
                                              const uint8_t* sign_mantissa, uint16_t* words) {
  BlockScratch& scratch = *stream.scratch;
  StartFinder starts(table.lengths(), stream.first_bit, &scratch.starts[1]);
  const size_t n = stream.n_elements, n_whole = n / kLanes * kLanes;
  std::memset(&scratch.exponents[n], MultiSymbolTable::kUnused, kLanes);
  for (size_t i = 0; i < n_whole; i += kLanes) {
    const __m512i exponents = _mm512_load_si512(&scratch.exponents[i]);
    join_64(exponents, sign_mantissa + i, words + i);
    starts.add(exponents);
  }
  if (n == n_whole) return;
  uint8_t last_halves[kLanes] = {};
  uint16_t last_words[kLanes];
  std::memcpy(last_halves, sign_mantissa + n_whole, n - n_whole);
  const __m512i exponents = _mm512_load_si512(&scratch.exponents[n_whole]);
  join_64(exponents, last_halves, last_words);
  starts.add(exponents);
  std::memcpy(words + n_whole, last_words, (n - n_whole) * sizeof(uint16_t));
}

}  // namespace df11
#endif
