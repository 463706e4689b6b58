// Counting with each vector unit of this machine, and without any.
#include "compressor/simd_targets.h"

#include <gtest/gtest.h>

#include "compressor/exponent_counts.h"
#include "format/bf16.h"
#include "format/df11_layout.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/reference_encoder.h"

namespace df11::test {
namespace {

class EveryTarget : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};
INSTANTIATE_TEST_SUITE_P(Simd, EveryTarget, ::testing::ValuesIn(simd_targets()),
                         [](const auto& target) { return target.param; });

TEST(SimdTargets, AScalarOneIsAmongThem) {
  EXPECT_FALSE(simd_targets().empty());
#if defined(__x86_64__) && !defined(__AVX2__)
  EXPECT_TRUE(simd_targets().back() == "SCALAR" || simd_targets().back() == "EMU128")
      << simd_targets().back();
#endif
}

std::vector<uint16_t> normal(size_t n, double sigma, uint64_t seed) {
  Random random(seed);
  std::vector<uint16_t> words(n);
  for (uint16_t& word : words) word = to_bf16(sigma * random.normal());
  return words;
}

// `n` words with exponents first .. first + n_exponents - 1, and random sign and mantissa.
std::vector<uint16_t> uniform(size_t n, uint64_t first, uint64_t n_exponents, uint64_t seed) {
  Random random(seed);
  std::vector<uint16_t> words(n);
  for (uint16_t& word : words) {
    const uint64_t exponent = first + random.below(n_exponents);
    word = static_cast<uint16_t>((random.next() & 0x807f) | exponent << 7);
  }
  return words;
}

// Every 2nd, 5th, … word on average has exponent 0.
std::vector<uint16_t> with_zeros(std::vector<uint16_t> words, uint64_t one_in, uint64_t seed) {
  Random random(seed);
  for (uint16_t& word : words) {
    if (random.below(one_in) == 0) word &= 0x807f;
  }
  return words;
}

std::vector<uint16_t> operator+(std::vector<uint16_t> a, const std::vector<uint16_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// All words below exponent 240, in order.
std::vector<uint16_t> all_words() {
  std::vector<uint16_t> words;
  for (uint32_t word = 0; word < 65'536; ++word) {
    if (bf16_exponent(static_cast<uint16_t>(word)) < kFirstLink)
      words.push_back(static_cast<uint16_t>(word));
  }
  return words;
}

struct Distribution {
  std::string name;
  std::vector<uint16_t> words;
};
const std::vector<Distribution>& distributions() {
  static const std::vector<Distribution> all = [] {
    const std::vector<uint16_t> trained = normal(70'000, 0.02, 1);
    std::vector<Distribution> list = {
        {"trained", trained},
        {"all_words", all_words()},
        {"one_symbol", uniform(40'000, 120, 1, 2)},
        {"zeros_only", uniform(40'000, 0, 1, 3)},
        {"zeros_and_one_symbol", with_zeros(uniform(40'000, 120, 1, 4), 3, 4)},
        {"two_symbols_far_apart", with_zeros(uniform(40'000, 239, 1, 5), 2, 5)},
        {"uniform_16", uniform(40'000, 100, 16, 6)},
        {"uniform_32", uniform(40'000, 100, 32, 7)},
        {"uniform_33", uniform(40'000, 100, 33, 8)},
        {"uniform_64", uniform(40'000, 60, 64, 9)},
        {"uniform_240", uniform(70'000, 0, 240, 10)},
        {"lowest_exponents", uniform(40'000, 0, 20, 11)},
        {"highest_exponents", uniform(40'000, 220, 20, 12)},
        {"trained_and_zeros", with_zeros(trained, 10, 13)},
        {"trained_then_uniform_then_trained",
         trained + uniform(30'000, 0, 240, 14) + normal(70'000, 3e8, 15)},
    };
    // One word in a few has another exponent.
    for (const uint64_t one_in : {10, 100, 3000}) {
      Distribution mixed = {"trained_but_for_one_in_" + std::to_string(one_in), trained};
      Random random(one_in);
      for (uint16_t& word : mixed.words) {
        if (random.below(one_in) == 0) word = static_cast<uint16_t>(random.below(240) << 7);
      }
      list.push_back(std::move(mixed));
    }
    return list;
  }();
  return all;
}

TEST_P(EveryTarget, CountsEveryDistribution) {
  for (const auto& [name, words] : distributions()) {
    Histogram histogram{};
    count_exponents(words, histogram);
    EXPECT_EQ(histogram, exponent_counts(words)) << name;
  }
}

TEST_P(EveryTarget, CountsAtEverySizeAndAlignment) {
  // Past the sample that chooses the window, so that the rest is counted in it.
  const std::vector<uint16_t> words = normal(8192 + 300, 0.02, 21);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 8192 - 9; begin + size <= words.size(); ++size) {
      const std::span<const uint16_t> part = std::span(words).subspan(begin, size);
      Histogram histogram{};
      count_exponents(part, histogram);
      ASSERT_EQ(histogram, exponent_counts(part)) << begin << " " << size;
    }
  }
}

TEST_P(EveryTarget, CountsWhatTheSampleDidNotShow) {
  // Everything in the window, then nothing, in turns that are longer and shorter than samples.
  for (const size_t turn : {100, 8192, 100'000}) {
    std::vector<uint16_t> words;
    for (uint64_t i = 0; words.size() < 400'000; ++i) {
      words = std::move(words) +
              (i % 2 == 0 ? uniform(turn, 110, 4, i) : uniform(turn, 200 + i % 7, 40, i));
    }
    Histogram histogram{};
    count_exponents(words, histogram);
    EXPECT_EQ(histogram, exponent_counts(words)) << turn;
  }
}

}  // namespace
}  // namespace df11::test
