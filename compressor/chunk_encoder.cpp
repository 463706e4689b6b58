// Codes are looked up and joined to runs of 8 and 16 weights in vector registers; a run that fits
// a word of 64 bits then goes into the stream at once. Longer runs, and those with codes that the
// lookup does not have, are left to scalar code, which is all there is on a machine without
// vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compressor/chunk_encoder.cpp"
#include "compressor/simd.h"

#include "compressor/chunk_encoder.h"
#include "format/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace df11::HWY_NAMESPACE {
namespace {

// Two elements for each 16 weights: the codes of all 16 as one, and those of the latter 8. Bits are
// left-aligned, and of no meaning where there are more than 64.
struct Runs {
  static constexpr size_t kElements = Chunk::kMaxRun;
  alignas(64) std::array<uint64_t, 2 * Chunk::kMaxElements / kElements> codes, length_bits;
};

#if DF11_HAS_SIMD
namespace hn = ::hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<uint8_t> d8;
constexpr hn::Repartition<uint16_t, decltype(d8)> d16;
constexpr hn::Repartition<uint32_t, decltype(d8)> d32;
constexpr hn::Repartition<uint64_t, decltype(d8)> d64;
constexpr size_t kLanes = hn::MaxLanes(d8);
using Bytes = hn::Vec<decltype(d8)>;
using Quads = hn::Vec<decltype(d64)>;

// A table of 32 bytes, looked up by a place in its lower half and one in its upper half, one of
// which has the top bit set: there is nothing.
class Table {
 public:
  explicit Table(const EncodeTable::Window::Bytes& bytes)
      : low_(hn::LoadDup128(d8, bytes.data())), high_(hn::LoadDup128(d8, bytes.data() + 16)) {}
  Bytes operator()(Bytes low_place, Bytes high_place) const {
    return hn::Or(hn::TableLookupBytesOr0(low_, low_place),
                  hn::TableLookupBytesOr0(high_, high_place));
  }

 private:
  Bytes low_, high_;
};

// Which lengths of eight are the counts of a join's shifts: those of the codes 0, 2, 4, 6 for
// pairs, in lanes of 32 bits, and of the pairs 0 and 2 for fours, in lanes of 64.
constexpr uint8_t kNone = 0xff;
alignas(16) constexpr uint8_t kEvenLow[16] = {0, kNone, kNone, kNone, 2, kNone, kNone, kNone,
                                              4, kNone, kNone, kNone, 6, kNone, kNone, kNone};
alignas(16) constexpr uint8_t kEvenHigh[16] = {8,  kNone, kNone, kNone, 10, kNone, kNone, kNone,
                                               12, kNone, kNone, kNone, 14, kNone, kNone, kNone};
alignas(16) constexpr uint8_t kFourthLow[16] = {0, kNone, kNone, kNone, kNone, kNone, kNone, kNone,
                                                4, kNone, kNone, kNone, kNone, kNone, kNone, kNone};
alignas(16) constexpr uint8_t kFourthHigh[16] = {8,     kNone, kNone, kNone, kNone, kNone,
                                                 kNone, kNone, 12,    kNone, kNone, kNone,
                                                 kNone, kNone, kNone, kNone};

// Splits the first words and joins their codes; returns how many, a multiple of 16.
size_t find_runs(const EncodeTable::Window& window, Chunk& chunk, Runs& runs,
                 uint8_t* sign_mantissa) {
  const Table lengths(window.length_bits), high_bits(window.high_bits), low_bits(window.low_bits);
  const Bytes first_exponent = hn::Set(d8, window.first_exponent);
  const Bytes place_of_zero = hn::Set(d8, EncodeTable::Window::kPlaceOfZero);
  const Bytes place_of_others = hn::Set(d8, EncodeTable::Window::kPlaceOfOthers);
  const Bytes even_low = hn::LoadDup128(d8, kEvenLow), even_high = hn::LoadDup128(d8, kEvenHigh);
  const Bytes fourth_low = hn::LoadDup128(d8, kFourthLow);
  const Bytes fourth_high = hn::LoadDup128(d8, kFourthHigh);
  const Bytes top = hn::Set(d8, 0x80);

  size_t i = 0;
  for (; i + kLanes <= chunk.words.size(); i += kLanes) {
    const uint16_t* const words = chunk.words.data() + i;
    // The words that come two chunks later, while this one computes.
    for (size_t at = 0; at < kLanes; at += 32)
      __builtin_prefetch(words + 2 * Chunk::kMaxElements + at);

    // Spec 2.
    const Bytes first = hn::BitCast(d8, hn::LoadU(d16, words));
    const Bytes second = hn::BitCast(d8, hn::LoadU(d16, words + kLanes / 2));
    const Bytes low = hn::ConcatEven(d8, second, first), high = hn::ConcatOdd(d8, second, first);
    hn::StoreU(hn::Or(hn::And(top, high), hn::AndNot(top, low)), d8, sign_mantissa + i);
    const Bytes exponents = hn::Or(hn::Add(high, high), hn::ShiftRight<7>(low));

    const Bytes place =
        hn::IfThenElse(hn::Eq(exponents, hn::Zero(d8)), place_of_zero,
                       hn::Min(hn::Sub(exponents, first_exponent), place_of_others));
    // Places 0 .. 15 less 16 are 0xf0 .. 0xff.
    const Bytes high_place = hn::Sub(place, hn::Set(d8, 16));
    const Bytes low_place = hn::Xor(high_place, hn::Set(d8, 0xf0));
    const Bytes length = lengths(low_place, high_place);
    hn::Store(length, d8, &chunk.length_bits[i]);

    // Joined twice: codes in 16 bits to pairs in 32 to fours in 64. The first of two neighbours
    // lies in the lower half of the lane and goes to the upper, where left-aligned bits begin; the
    // second follows it.
    const auto shorts = hn::BitCast(d16, length);
    const Bytes pair_length =
        hn::BitCast(d8, hn::Add(hn::And(shorts, hn::Set(d16, 0xff)), hn::ShiftRight<8>(shorts)));
    const auto join_to_fours = [&](Bytes codes, Bytes even, Bytes fourth) HWY_ATTR {
      const auto two = hn::BitCast(d32, codes);
      const auto one_length = hn::BitCast(d32, hn::TableLookupBytesOr0(length, even));
      const auto pair =
          hn::Or(hn::ShiftLeft<16>(two), hn::And(two, hn::Set(d32, 0xffff0000u)) >> one_length);
      const auto two_pairs = hn::BitCast(d64, pair);
      const auto first_length = hn::BitCast(d64, hn::TableLookupBytesOr0(pair_length, fourth));
      return hn::Or(hn::ShiftLeft<32>(two_pairs),
                    hn::And(two_pairs, hn::Set(d64, 0xffffffff00000000u)) >> first_length);
    };
    const Bytes low_codes = low_bits(low_place, high_place);
    const Bytes high_codes = high_bits(low_place, high_place);
    const Quads lower_fours =
        join_to_fours(hn::InterleaveLower(d8, low_codes, high_codes), even_low, fourth_low);
    const Quads upper_fours =
        join_to_fours(hn::InterleaveUpper(d8, low_codes, high_codes), even_high, fourth_high);

    // Of each block of 16 weights the lower half has the fours of the first run of 8, the upper
    // half those of the second.
    const Quads first_four = hn::InterleaveLower(d64, lower_fours, upper_fours);
    const Quads second_four = hn::InterleaveUpper(d64, lower_fours, upper_fours);
    const Quads length_of_4 =
        hn::SumsOf8(hn::BitCast(d8, hn::And(hn::BitCast(d64, length), hn::Set(d64, 0xffffffffu))));
    const Quads bits_of_8 = hn::Or(first_four, second_four >> length_of_4);
    const Quads length_of_8 = hn::SumsOf8(length);
    const Quads latter_bits = hn::InterleaveUpper(d64, bits_of_8, hn::Zero(d64));
    const Quads latter_length = hn::InterleaveUpper(d64, length_of_8, hn::Zero(d64));
    hn::Store(hn::Or(bits_of_8, latter_bits >> length_of_8), d64, &runs.codes[i / 8]);
    hn::Store(hn::Add(length_of_8, latter_length), d64, &runs.length_bits[i / 8]);
  }
  return i;
}
#else
size_t find_runs(const EncodeTable::Window&, Chunk&, Runs&, uint8_t*) {
  return 0;
}
#endif

// Puts a run of codes, the first that of weight i, and notes which run fills which window.
HWY_INLINE void put_run(Chunk& chunk, CodeWriter& writer, size_t i, uint64_t bits,
                        uint64_t length_bits) {
  chunk.run_begin[writer.window()] = static_cast<uint16_t>(i);
  chunk.run_bit[writer.window()] = static_cast<uint8_t>(writer.filled());
  writer.put(bits, length_bits);
}

// What is rare is kept out of the loops, which then find room in the registers. Writers are copied,
// in and out: bytes stored through pointers could alias one whose address is known.
template <size_t kSize, size_t kTimes>
HWY_NOINLINE void put_rarely(const EncodeTable& table, Chunk& chunk, CodeWriter& shared_writer,
                             size_t i);

// Joins the codes of kSize <= 8 weights one by one, and puts them.
template <size_t kSize>
HWY_INLINE void put_joined(const EncodeTable& table, Chunk& chunk, CodeWriter& writer, size_t i) {
  constexpr uint64_t kLengthMask = (uint64_t{1} << EncodeTable::kLengthBits) - 1;
  const uint16_t* const words = chunk.words.data() + i;
  uint64_t bits = 0, lengths = 0;  // valid above and in the mask
  for (size_t j = 0; j < kSize; ++j) {
    const uint64_t code = table[bf16_exponent(words[j])];
    chunk.length_bits[i + j] = static_cast<uint8_t>(code);
    bits |= code >> lengths % kWindowBits;
    lengths += code;
  }
  const uint64_t length_bits = lengths & kLengthMask;
  if constexpr (kSize > 1) {
    if (length_bits > kWindowBits - EncodeTable::kLengthBits) [[unlikely]] {
      CodeWriter copy = writer;
      put_rarely<kSize / 2, 2>(table, chunk, copy, i);
      writer = copy;
      return;
    }
  }
  put_run(chunk, writer, i, bits & ~kLengthMask, length_bits);
}

template <size_t kSize, size_t kTimes>
void put_rarely(const EncodeTable& table, Chunk& chunk, CodeWriter& shared_writer, size_t i) {
  CodeWriter writer = shared_writer;
  for (size_t j = 0; j < kTimes; ++j) put_joined<kSize>(table, chunk, writer, i + j * kSize);
  shared_writer = writer;
}

// The codes of weights 0 .. n - 1, a multiple of 16.
void put_runs(const EncodeTable& table, Chunk& chunk, CodeWriter& shared_writer, const Runs& runs,
              size_t n) {
  CodeWriter writer = shared_writer;
  const auto put_eight = [&](size_t i) HWY_ATTR {
    CodeWriter copy = writer;
    put_rarely<8, 1>(table, chunk, copy, i);
    writer = copy;
  };
  for (size_t i = 0; i < n; i += Runs::kElements) {
    const uint64_t codes = runs.codes[i / 8], length_bits = runs.length_bits[i / 8];
    if (length_bits <= kWindowBits) [[likely]] {
      put_run(chunk, writer, i, codes, length_bits);
      continue;
    }
    const uint64_t latter_length = runs.length_bits[i / 8 + 1];
    const uint64_t former_length = length_bits - latter_length;
    if (former_length <= kWindowBits) {
      const uint64_t former_codes = codes & ~uint64_t{0} << (kWindowBits - former_length);
      put_run(chunk, writer, i, former_codes, former_length);
    } else {
      put_eight(i);
    }
    if (latter_length <= kWindowBits) {
      put_run(chunk, writer, i + 8, runs.codes[i / 8 + 1], latter_length);
    } else {
      put_eight(i + 8);
    }
  }
  shared_writer = writer;
}

// Splits and encodes the words from `begin` on.
void encode_scalar(const EncodeTable& table, Chunk& chunk, CodeWriter& shared_writer, size_t begin,
                   uint8_t* sign_mantissa) {
  CodeWriter writer = shared_writer;
  const std::span<const uint16_t> words = chunk.words;
  size_t i = begin;
  for (; i < words.size(); ++i) sign_mantissa[i] = bf16_sign_mantissa(words[i]);
  for (i = begin; i + 8 <= words.size(); i += 8) put_joined<8>(table, chunk, writer, i);
  for (; i < words.size(); ++i) put_joined<1>(table, chunk, writer, i);
  shared_writer = writer;
}

void encode_chunk(const EncodeTable& table, Chunk& chunk, CodeWriter& writer,
                  uint8_t* sign_mantissa, uint8_t* gaps) {
  writer.rebase();
  size_t n_in_runs = 0;
  if (table.window().useful) {
    Runs runs;
    n_in_runs = find_runs(table.window(), chunk, runs, sign_mantissa);
    put_runs(table, chunk, writer, runs, n_in_runs);
  }
  encode_scalar(table, chunk, writer, n_in_runs, sign_mantissa);
  const size_t n_windows = writer.window();
  for (size_t window = 0; window < n_windows; ++window)
    gaps[window] = static_cast<uint8_t>(next_start(chunk, window).gap);
}

}  // namespace
}  // namespace df11::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace df11 {

HWY_EXPORT(encode_chunk);

void encode_chunk(const EncodeTable& table, Chunk& chunk, CodeWriter& writer,
                  uint8_t* sign_mantissa, uint8_t* gaps) {
  HWY_DYNAMIC_DISPATCH(encode_chunk)(table, chunk, writer, sign_mantissa, gaps);
}

}  // namespace df11
#endif  // HWY_ONCE
