// Nearly all exponents of a tensor of weights lie in a window of a few neighbours. Vector code
// counts these in registers; what lies outside is counted one by one. Where much does, counters in
// memory are as good as it gets.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compressor/exponent_counts.cpp"
#include "compressor/simd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "compressor/exponent_counts.h"
#include "format/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace df11::HWY_NAMESPACE {
namespace {

constexpr uint8_t kWindowExponents = 14;
// Of so many words one may lie outside of the window before the scalar code takes over.
constexpr size_t kWordsPerOutsider = 16;

#if DF11_HAS_SIMD
namespace hn = ::hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<uint8_t> d8;
constexpr hn::Repartition<uint16_t, decltype(d8)> d16;
constexpr hn::Repartition<uint64_t, decltype(d8)> d64;
constexpr size_t kLanes = hn::MaxLanes(d8);
using Bytes = hn::Vec<decltype(d8)>;

// By place: the window's exponents, all others, and exponent 0, which is frequent where weights are
// pruned or padded.
constexpr size_t kPlaces = kWindowExponents + 2;
constexpr uint8_t kPlaceOfOthers = kWindowExponents, kPlaceOfZero = kWindowExponents + 1;

// Counters of 4 bits, two a byte: the word's place in the window is looked up in a table that has 1
// in the counter's bits at one place, 16 at the next.
class PairCounter {
 public:
  static constexpr size_t kMaxRounds = 15;

  explicit PairCounter(size_t place) {
    alignas(16) std::array<uint8_t, kPlaces> ones{};
    ones[place] = 0x01;
    ones[place + 1] = 0x10;
    ones_ = hn::LoadDup128(d8, ones.data());
  }
  HWY_INLINE void count(Bytes places) {
    counts_ = hn::Add(counts_, hn::TableLookupBytesOr0(ones_, places));
  }
  // Moves the counts to counters of 8 bits.
  HWY_INLINE void widen(Bytes& first, Bytes& second) {
    const Bytes low = hn::Set(d8, 0x0f);
    first = hn::Add(first, hn::And(counts_, low));
    second = hn::Add(second, hn::ShiftRight<4>(counts_));
    counts_ = hn::Zero(d8);
  }

 private:
  Bytes ones_, counts_ = hn::Zero(d8);
};

// How often each place occurs in `n_bytes` of `places`.
std::array<uint64_t, kPlaces> count_places(const uint8_t* places, size_t n_bytes) {
  std::array<uint64_t, kPlaces> counts;
  for (size_t first = 0; first < kPlaces; first += 8) {  // what the registers hold
    PairCounter a(first), b(first + 2), c(first + 4), d(first + 6);
    Bytes n0 = hn::Zero(d8), n1 = n0, n2 = n0, n3 = n0, n4 = n0, n5 = n0, n6 = n0, n7 = n0;
    for (size_t i = 0; i < n_bytes;) {
      const size_t end = std::min(n_bytes, i + PairCounter::kMaxRounds * kLanes);
      for (; i < end; i += kLanes) {
        const Bytes place = hn::Load(d8, places + i);
        a.count(place), b.count(place), c.count(place), d.count(place);
      }
      a.widen(n0, n1), b.widen(n2, n3), c.widen(n4, n5), d.widen(n6, n7);
    }
    const std::array<Bytes, 8> n = {n0, n1, n2, n3, n4, n5, n6, n7};
    for (size_t i = 0; i < n.size(); ++i)
      counts[first + i] = hn::GetLane(hn::SumOfLanes(d64, hn::SumsOf8(n[i])));
  }
  return counts;
}

// Counts the exponents of `words` up to a place where too many lie outside of the window; returns
// how many words it counted.
size_t count_in_window(std::span<const uint16_t> words, uint8_t first_exponent,
                       Histogram& histogram) {
  constexpr size_t kMaxRounds = 8 * PairCounter::kMaxRounds;  // counters of a byte hold 255
  alignas(64) std::array<uint8_t, kMaxRounds * kLanes> places;

  size_t n_counted = 0, n_outside = 0;
  while (n_counted + kLanes <= words.size() && n_outside * kWordsPerOutsider <= n_counted) {
    const size_t n_now = std::min((words.size() - n_counted) / kLanes, kMaxRounds) * kLanes;
    const uint16_t* const from = words.data() + n_counted;
    for (size_t i = 0; i < n_now; i += kLanes) {
      const auto low = hn::ShiftRight<7>(hn::LoadU(d16, from + i));
      const auto high = hn::ShiftRight<7>(hn::LoadU(d16, from + i + kLanes / 2));
      const Bytes exponents = hn::ConcatEven(d8, hn::BitCast(d8, high), hn::BitCast(d8, low));
      const Bytes place = hn::IfThenElse(
          hn::Eq(exponents, hn::Zero(d8)), hn::Set(d8, kPlaceOfZero),
          hn::Min(hn::Sub(exponents, hn::Set(d8, first_exponent)), hn::Set(d8, kPlaceOfOthers)));
      hn::Store(place, d8, places.data() + i);
      const auto others = hn::Eq(place, hn::Set(d8, kPlaceOfOthers));
      if (!hn::AllFalse(d8, others)) [[unlikely]] {
        std::array<uint8_t, 8> bytes{};
        hn::StoreMaskBits(d8, others, bytes.data());
        for (uint64_t bits = load_le64(bytes.data()); bits != 0; bits &= bits - 1) {
          ++histogram[bf16_exponent(from[i + static_cast<size_t>(std::countr_zero(bits))])];
        }
      }
    }
    const std::array<uint64_t, kPlaces> counts = count_places(places.data(), n_now);
    for (size_t i = 0; i < kWindowExponents; ++i) histogram[first_exponent + i] += counts[i];
    histogram[0] += counts[kPlaceOfZero];
    n_outside += counts[kPlaceOfOthers];
    n_counted += n_now;
  }
  return n_counted;
}
#else
size_t count_in_window(std::span<const uint16_t>, uint8_t, Histogram&) {
  return 0;
}
#endif

}  // namespace
}  // namespace df11::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace df11 {
namespace {

HWY_EXPORT(count_in_window);
using HWY_NAMESPACE::kWindowExponents, HWY_NAMESPACE::kWordsPerOutsider;

using Counts = std::array<uint32_t, 256>;

Counts count_in_memory(std::span<const uint16_t> words) {
  // Eight tables: equal neighbours would otherwise wait for each other's store.
  constexpr size_t kTables = 8;
  std::array<Counts, kTables> tables{};
  size_t i = 0;
  for (; i + kTables <= words.size(); i += kTables) {
    uint64_t low, high;
    std::memcpy(&low, &words[i], sizeof low);
    std::memcpy(&high, &words[i + 4], sizeof high);
    for (size_t j = 0; j < 4; ++j) {
      ++tables[j][low >> (16 * j + 7) & 0xff];
      ++tables[j + 4][high >> (16 * j + 7) & 0xff];
    }
  }
  for (; i < words.size(); ++i) ++tables[0][bf16_exponent(words[i])];
  for (size_t t = 1; t < kTables; ++t) {
    for (size_t symbol = 0; symbol < 256; ++symbol) tables[0][symbol] += tables[t][symbol];
  }
  return tables[0];
}

// The window that holds most of what was counted, if that leaves few enough outside.
struct Window {
  uint8_t first_exponent;
  bool useful;
};
Window best_window(const Counts& counts, size_t n_words) {
  size_t most = 0, best = 1, inside = counts[0];  // 0 has its own place, wherever the window is
  for (size_t end = 1; end < counts.size(); ++end) {
    inside += counts[end];
    if (end > kWindowExponents) inside -= counts[end - kWindowExponents];
    if (end >= kWindowExponents && inside > most) most = inside, best = end + 1 - kWindowExponents;
  }
  return {static_cast<uint8_t>(best), (n_words - most) * 2 * kWordsPerOutsider <= n_words};
}

}  // namespace

void count_exponents(std::span<const uint16_t> words, Histogram& histogram) {
  constexpr size_t kSampleWords = 8192, kWordsWithoutWindow = 65536;
  size_t n_sample = kSampleWords;
  while (!words.empty()) {
    const std::span<const uint16_t> sample = words.first(std::min(words.size(), n_sample));
    const Counts counts = count_in_memory(sample);
    for (size_t symbol = 0; symbol < counts.size(); ++symbol) histogram[symbol] += counts[symbol];
    words = words.subspan(sample.size());
    const Window window = best_window(counts, sample.size());
    n_sample = window.useful ? kSampleWords : kWordsWithoutWindow;
    if (window.useful) {
      words = words.subspan(
          HWY_DYNAMIC_DISPATCH(count_in_window)(words, window.first_exponent, histogram));
    }
  }
}

}  // namespace df11
#endif  // HWY_ONCE
