#include "compressor/slice_encoder.h"

#include <gtest/gtest.h>

#include "support/random.h"
#include "support/reference_encoder.h"

namespace df11::test {
namespace {

TEST(CountExponents, EqualsOneByOneCountingAtEverySizeAndAlignment) {
  Random random(3);
  std::vector<uint16_t> words(300);
  for (uint16_t& word : words) word = static_cast<uint16_t>(random.next());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t n = 0; n + begin <= words.size(); ++n) {
      const std::span<const uint16_t> part = std::span(words).subspan(begin, n);
      Histogram histogram{};
      count_exponents(part, histogram);
      ASSERT_EQ(histogram, exponent_counts(part)) << begin << " " << n;
    }
  }
}

TEST(CountExponents, AddsToWhatIsThere) {
  Histogram histogram{};
  histogram[0x7f] = 41;
  histogram[3] = 5;
  count_exponents(std::vector<uint16_t>{0x3f80}, histogram);
  EXPECT_EQ(histogram[0x7f], 42u);
  EXPECT_EQ(histogram[3], 5u);
}

TEST(CountExponents, CountsAllWords) {
  std::vector<uint16_t> words(65'536);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i);
  Histogram histogram{};
  count_exponents(words, histogram);
  for (const uint64_t count : histogram) EXPECT_EQ(count, 256u);
}

}  // namespace
}  // namespace df11::test
