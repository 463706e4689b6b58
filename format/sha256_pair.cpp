#include "format/sha256_pair.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <array>

namespace df11 {

namespace {

// FIPS 180-4, section 4.2.2.
alignas(16) constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// One message. The instructions want the state's words a to h as (a b e f) and (c d g h).
struct Lane {
  __m128i abef, cdgh;          // state
  __m128i abef_now, cdgh_now;  // within a block
  __m128i schedule[4];         // the last 16 words of the message schedule
  const uint8_t* bytes;
};

#define DF11_SHA [[gnu::target("sha,sse4.1"), gnu::always_inline]]

DF11_SHA inline void load_state(Lane& lane, const uint32_t* state) {
  const auto* words = reinterpret_cast<const __m128i*>(state);
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  lane.abef = _mm_alignr_epi8(badc, hgfe, 8);
  lane.cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
}

DF11_SHA inline void store_state(const Lane& lane, uint32_t* state) {
  auto* words = reinterpret_cast<__m128i*>(state);
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(lane.cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

DF11_SHA inline void begin_block(Lane& lane) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (int i = 0; i < 4; ++i) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lane.bytes + 16 * i));
    lane.schedule[i] = _mm_shuffle_epi8(words, big_endian);
  }
  lane.abef_now = lane.abef;
  lane.cdgh_now = lane.cdgh;
  lane.bytes += 64;
}

// Rounds 4 * quarter to 4 * quarter + 3, and the words of the schedule 16 rounds later.
DF11_SHA inline void four_rounds(Lane& lane, int quarter) {
  __m128i& words = lane.schedule[quarter % 4];
  const __m128i constants =
      _mm_load_si128(reinterpret_cast<const __m128i*>(&kRoundConstants[4 * quarter]));
  const __m128i sum = _mm_add_epi32(words, constants);
  lane.cdgh_now = _mm_sha256rnds2_epu32(lane.cdgh_now, lane.abef_now, sum);
  lane.abef_now = _mm_sha256rnds2_epu32(lane.abef_now, lane.cdgh_now, _mm_shuffle_epi32(sum, 0x0e));
  if (quarter >= 12) return;
  const __m128i next = lane.schedule[(quarter + 1) % 4];
  const __m128i last = lane.schedule[(quarter + 3) % 4];
  const __m128i nine_on = _mm_alignr_epi8(last, lane.schedule[(quarter + 2) % 4], 4);
  words = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(words, next), nine_on), last);
}

DF11_SHA inline void end_block(Lane& lane) {
  lane.abef = _mm_add_epi32(lane.abef, lane.abef_now);
  lane.cdgh = _mm_add_epi32(lane.cdgh, lane.cdgh_now);
}

}  // namespace

bool has_sha256_pair() {
  static const bool has = [] {
    constexpr unsigned kSha = 1u << 29;  // EBX of leaf 7
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           (ebx & kSha) != 0;
  }();
  return has;
}

[[gnu::target("sha,sse4.1")]] void sha256_pair(uint32_t* a_state, const uint8_t* a,
                                               uint32_t* b_state, const uint8_t* b,
                                               size_t n_blocks) {
  Lane first, second;
  load_state(first, a_state);
  load_state(second, b_state);
  first.bytes = a;
  second.bytes = b;
  for (size_t block = 0; block < n_blocks; ++block) {
    begin_block(first);
    begin_block(second);
#pragma GCC unroll 16
    for (int quarter = 0; quarter < 16; ++quarter) {
      four_rounds(first, quarter);
      four_rounds(second, quarter);
    }
    end_block(first);
    end_block(second);
  }
  store_state(first, a_state);
  store_state(second, b_state);
}

}  // namespace df11

#else

namespace df11 {

bool has_sha256_pair() {
  return false;
}
void sha256_pair(uint32_t*, const uint8_t*, uint32_t*, const uint8_t*, size_t) {}

}  // namespace df11

#endif
