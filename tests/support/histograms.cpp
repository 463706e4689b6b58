#include "support/histograms.h"

#include <algorithm>
#include <cmath>

#include "support/named_inputs.h"
#include "support/random.h"

namespace df11::test {

namespace {

Histogram counts_from(const std::vector<uint64_t>& counts, uint32_t first_exponent) {
  Histogram histogram{};
  std::copy(counts.begin(), counts.end(), histogram.begin() + first_exponent);
  return histogram;
}

// `n` different exponents below 240.
std::vector<uint32_t> some_exponents(size_t n, Random& random) {
  std::vector<uint32_t> all(240);
  for (uint32_t i = 0; i < 240; ++i) all[i] = i;
  random.shuffle(all);
  all.resize(n);
  return all;
}

Histogram random_histogram(uint64_t shape, Random& random) {
  const size_t n = 1 + random.below(random.below(2) == 0 ? 240 : 40);
  const std::vector<uint32_t> exponents = some_exponents(n, random);
  Histogram histogram{};
  const double ratio = 1.05 + 0.9 * random.uniform();
  const uint64_t ceiling = 1 + random.below(20);
  for (size_t i = 0; i < n; ++i) {
    uint64_t& count = histogram[exponents[i]];
    switch (shape) {
      case 0: count = 1 + random.below(ceiling); break;  // many ties
      case 1: count = 1 + static_cast<uint64_t>(-1e4 * std::log(random.uniform())); break;
      case 2:
        count = 1 + static_cast<uint64_t>(
                        std::pow(ratio, std::min<double>(static_cast<double>(i), 40)));
        break;
      case 3: count = uint64_t{1} << random.below(20); break;
      case 4: count = ceiling; break;
      case 5: count = i == 0 ? 1'000'000 : 1 + random.below(3); break;  // one dominant, many rare
      default: {
        // Exponents of weights: a steep slope upwards, a gentle one downwards.
        const double below_top = static_cast<double>(i);
        histogram[exponents[i]] = 0;
        histogram[(125 + 240 - i) % 240] =
            1 + static_cast<uint64_t>(1e6 * std::exp2(-below_top) * (0.5 + random.uniform()));
      }
    }
  }
  return histogram;
}

// 33 bits and more. Pairs of equal counts, each larger than all before it, still give a degenerate
// tree; the rule for long codes then often has to choose one of a pair.
Histogram long_codes(Random& random) {
  std::vector<uint64_t> counts;
  if (random.below(3) == 0) {
    counts = fibonacci_counts(34 + random.below(8));
  } else {
    const uint64_t n_pairs = 17 + random.below(7);
    uint64_t sum = 1;
    for (uint64_t i = 0; i < n_pairs; ++i) {
      counts.insert(counts.end(), 2, sum + 1);
      sum += 2 * (sum + 1);
    }
  }
  random.shuffle(counts);
  return counts_from(counts, static_cast<uint32_t>(random.below(240 - counts.size())));
}

}  // namespace

std::vector<NamedHistogram> named_histograms(size_t n_random) {
  std::vector<NamedHistogram> histograms;
  const auto add = [&](std::string name, std::vector<uint64_t> counts, uint32_t first_exponent) {
    histograms.push_back({std::move(name), counts_from(counts, first_exponent)});
  };
  add("one_exponent", {5}, 0);
  add("one_exponent_once", {1}, 239);
  add("two_equal", {7, 7}, 100);
  add("two_unequal", {1, 9}, 100);
  add("two_unequal_other_way", {9, 1}, 100);
  for (size_t n : {2, 3, 7, 8, 15, 16, 127, 128, 239, 240}) {
    add("uniform_" + std::to_string(n), std::vector<uint64_t>(n, 1000), 0);
    add("once_each_" + std::to_string(n), std::vector<uint64_t>(n, 1), 0);
  }
  for (size_t n = 8; n <= 60; ++n) {
    add("fibonacci_" + std::to_string(n), fibonacci_counts(n), 90);
    std::vector<uint64_t> descending = fibonacci_counts(n);
    std::reverse(descending.begin(), descending.end());
    add("fibonacci_descending_" + std::to_string(n), descending, 90);
  }
  for (uint64_t n = 100; n <= 239; n += 3) {
    std::vector<uint64_t> counts(n, 1);
    counts[n / 2] = 300 + 10 * n;
    add("one_heavy_among_" + std::to_string(n), counts, 0);
  }
  // The largest group there may be, all in one exponent but for a few.
  add("nearly_2_31", {1, 2'147'483'640, 2}, 110);

  Random random(20250101);
  for (size_t i = 0; i < n_random; ++i) {
    const uint64_t shape = i % 8;
    histograms.push_back({"random_" + std::to_string(i),
                          shape == 7 ? long_codes(random) : random_histogram(shape, random)});
  }
  return histograms;
}

}  // namespace df11::test
