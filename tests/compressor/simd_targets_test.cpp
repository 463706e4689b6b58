// Counting and encoding with each vector unit of this machine, and without any.
#include "compressor/simd_targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compressor/slice_encoder.h"
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

// Exponents first + 0, 1, … 31 have codes of 1, 2, … 32 bits.
Codebook staircase(uint32_t first) {
  Codebook book;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t ones = static_cast<uint32_t>((uint64_t{1} << i) - 1);
    book.codes[first + i] = {ones << 1, static_cast<uint8_t>(i + 1)};
  }
  book.end_of_stream = {0xffffffff, 32};
  return book;
}

// Encodes the slices between `cuts`, each alone, and puts them together.
GroupTensors encode_slices(std::span<const uint16_t> words, const Codebook& book,
                           std::span<const size_t> cuts) {
  const EncodeTable table(book);
  uint64_t n_bits = 0;
  for (const uint16_t word : words) n_bits += book.codes[bf16_exponent(word)].length_bits;
  const uint64_t n_bytes = ceil_div(n_bits, 8);
  GroupTensors group;
  group.encoded_exponent.resize(n_bytes);
  group.sign_mantissa.resize(words.size());
  group.gaps.resize(gaps_bytes(n_bytes));
  group.output_positions.resize(4 * n_output_positions(n_bytes));
  SlicePosition position;
  EncodedSlice slice;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    position.first_element = cuts[i];
    encode_slice(words.subspan(cuts[i], cuts[i + 1] - cuts[i]), table, position,
                 group.sign_mantissa.data() + cuts[i], slice);
    if (i + 2 == cuts.size()) close_stream(table, words.size(), slice);
    for (size_t k = 0; k < slice.code.size(); ++k)
      group.encoded_exponent.at(position.first_bit / 8 + k) |= slice.code[k];
    for (size_t k = 0; k < slice.n_gap_bytes; ++k)
      group.gaps.at(slice.first_window / 8 * 5 + k) |= slice.gaps.data()[k];
    for (size_t k = 0; k < slice.positions.size(); ++k)
      store_le32(&group.output_positions.at(4 * (slice.first_block + k)), slice.positions[k]);
    position.first_bit = slice.end_bit;
  }
  EXPECT_EQ(position.first_bit, n_bits);
  return group;
}

// Whole, and cut into slices that start at any bit and have any length.
void expect_encoded(std::span<const uint16_t> words, const Codebook& book, uint64_t seed) {
  const GroupTensors expected = reference_encode({{words.begin(), words.end()}}, code_of(book));
  Random random(seed);
  for (const size_t n_cuts : {size_t{0}, size_t{3}, size_t{40}}) {
    std::vector<size_t> cuts = {0, words.size()};
    while (cuts.size() < n_cuts + 2 && cuts.size() < words.size())
      cuts.push_back(random.below(words.size()));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const GroupTensors actual = encode_slices(words, book, cuts);
    EXPECT_TRUE(actual.encoded_exponent == expected.encoded_exponent) << "encoded_exponent";
    EXPECT_TRUE(actual.sign_mantissa == expected.sign_mantissa) << "sign_mantissa";
    EXPECT_TRUE(actual.gaps == expected.gaps) << "gaps";
    EXPECT_TRUE(actual.output_positions == expected.output_positions) << "output_positions";
  }
}

TEST_P(EveryTarget, EncodesEveryDistribution) {
  for (const auto& [name, words] : distributions()) {
    SCOPED_TRACE(name);
    expect_encoded(words, *build_codebook(exponent_counts(words)), 1);
    if (HasFailure()) return;
  }
}

TEST_P(EveryTarget, EncodesEverySize) {
  const std::vector<uint16_t> words = normal(4200, 0.02, 31);
  const Codebook book = *build_codebook(exponent_counts(words));
  std::vector<size_t> sizes;
  for (size_t size = 1; size < 200; ++size) sizes.push_back(size);
  for (const size_t border : {2048, 4096}) {
    for (size_t size = border - 34; size < border + 66; ++size) sizes.push_back(size);
  }
  for (const size_t size : sizes) {
    SCOPED_TRACE(size);
    expect_encoded(std::span(words).last(size), book, size);
    if (HasFailure()) return;
  }
}

TEST_P(EveryTarget, EncodesCodesOf1To32Bits) {
  for (const uint32_t first : {0, 1, 2, 97, 207, 208}) {
    const Codebook book = staircase(first);
    Random random(first);
    // Short codes mostly, all alike, and long ones mostly.
    for (const int mostly : {-1, 0, 1}) {
      SCOPED_TRACE(std::to_string(first) + ", mostly " + std::to_string(mostly));
      std::vector<uint16_t> words(20'000);
      for (uint16_t& word : words) {
        const uint64_t even = random.below(32);
        const uint64_t low = static_cast<uint64_t>(std::countr_zero(random.next() | 1u << 31));
        const uint64_t i = mostly == 0 ? even : mostly < 0 ? low : 31 - low;
        word = static_cast<uint16_t>((random.next() & 0x807f) | (first + i) << 7);
      }
      expect_encoded(words, book, first);
      if (HasFailure()) return;
    }
  }
}

TEST_P(EveryTarget, CountsTheBitsOfWordsWithoutCodes) {
  // Sources that change while they are read: nothing is written out of bounds, and the end tells.
  const std::vector<uint16_t> trained = normal(30'000, 0.02, 41);
  const Codebook book = *build_codebook(exponent_counts(trained));
  const EncodeTable table(book);
  for (const uint64_t one_in : {1, 2, 20, 1000}) {
    std::vector<uint16_t> words = trained;
    Random random(one_in);
    for (uint16_t& word : words) {
      if (random.below(one_in) == 0) word = static_cast<uint16_t>(random.next());
    }
    uint64_t n_bits = 5;
    for (const uint16_t word : words) n_bits += book.codes[bf16_exponent(word)].length_bits;
    std::vector<uint8_t> sign_mantissa(words.size());
    EncodedSlice slice;
    encode_slice(words, table, {5, 2}, sign_mantissa.data(), slice);
    EXPECT_EQ(slice.end_bit, n_bits) << one_in;
    for (size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(sign_mantissa[i], bf16_sign_mantissa(words[i]));
  }
}

}  // namespace
}  // namespace df11::test
