// Weights for benchmarks: seeded by their place, so that any number of threads makes the same ones.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "format/bytes.h"
#include "tools/bench.h"

namespace df11::bench {

namespace {

constexpr size_t kRow = 4096;

// SplitMix64 (Steele, Lea, Flood 2014), by index.
uint64_t random_bits(uint64_t seed, uint64_t i) {
  uint64_t z = seed * 0x632be59bd9b4e019 + i * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Standard normal variates by their quantiles, interpolated: much faster than a rejection method.
class NormalQuantiles {
 public:
  NormalQuantiles() {
    for (size_t i = 0; i <= kSteps; ++i) {
      const double p = std::clamp(static_cast<double>(i) / kSteps, 2e-6, 1 - 2e-6);
      double low = -6, high = 6;
      for (int k = 0; k < 40; ++k) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
      }
      quantiles_[i] = static_cast<float>(low);
    }
  }
  float at(uint64_t bits) const {
    const size_t i = bits % kSteps;
    const float fraction = static_cast<float>(bits >> 16 & 0xffff) / 65536;
    return quantiles_[i] + fraction * (quantiles_[i + 1] - quantiles_[i]);
  }

 private:
  static constexpr size_t kSteps = 65536;
  std::array<float, kSteps + 1> quantiles_;
};

uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename Fill>
std::vector<uint16_t> filled_by_rows(size_t n, const Executor& executor, const Fill& fill) {
  std::vector<uint16_t> words(n);
  constexpr size_t kRowsATask = 64;
  (void)executor.for_each(ceil_div(n, kRow * kRowsATask), [&](size_t task) -> Result<void> {
    for (size_t row = task * kRowsATask; row < (task + 1) * kRowsATask && row * kRow < n; ++row)
      fill(row, std::span(words).subspan(row * kRow, std::min(kRow, n - row * kRow)));
    return {};
  });
  return words;
}

}  // namespace

std::vector<uint16_t> trained_like_weights(size_t n, double row_sigma, uint64_t seed,
                                           const Executor& executor) {
  static const NormalQuantiles normal;
  return filled_by_rows(n, executor, [&](size_t row, std::span<uint16_t> words) {
    const float scale =
        static_cast<float>(0.02 * std::exp(row_sigma * normal.at(random_bits(seed + 1000, row))));
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = to_bf16(scale * normal.at(random_bits(seed, row * kRow + i)));
  });
}

std::vector<uint16_t> weights_of_distribution(size_t n, std::span<const double> frequencies,
                                              uint64_t seed, const Executor& executor) {
  double total = 0;
  for (const double frequency : frequencies) total += frequency;
  std::vector<uint64_t> thresholds;  // of 2^53, by exponent
  double sum = 0;
  for (const double frequency : frequencies)
    thresholds.push_back(static_cast<uint64_t>((sum += frequency) / total * 0x1p53));
  thresholds.back() = uint64_t{1} << 53;
  // Where the search begins, by the top 12 bits.
  std::array<uint8_t, 4096> first;
  for (size_t i = 0, exponent = 0; i < first.size(); ++i) {
    while (thresholds[exponent] <= uint64_t{i} << 41) ++exponent;
    first[i] = static_cast<uint8_t>(exponent);
  }
  return filled_by_rows(n, executor, [&](size_t row, std::span<uint16_t> words) {
    for (size_t i = 0; i < words.size(); ++i) {
      const uint64_t bits = random_bits(seed, row * kRow + i), draw = bits >> 11;
      uint32_t exponent = first[draw >> 41];
      while (thresholds[exponent] <= draw) ++exponent;
      const uint64_t rest = random_bits(seed + 1, row * kRow + i);
      words[i] = static_cast<uint16_t>((rest & 0x807f) | exponent << 7);
    }
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace df11::bench
