#include "support/named_inputs.h"

#include <bit>

#include "format/bf16.h"
#include "support/random.h"

namespace df11::test {

namespace {

using Words = std::vector<uint16_t>;

Words normal(size_t n, double sigma, uint64_t seed) {
  Random random(seed);
  Words words(n);
  for (uint16_t& word : words) word = to_bf16(sigma * random.normal());
  return words;
}

// Student t with three degrees of freedom: trained weights have tails like this.
Words student_t3(size_t n, uint64_t seed) {
  Random random(seed);
  Words words(n);
  for (uint16_t& word : words) {
    const double a = random.normal(), b = random.normal(), c = random.normal();
    word = to_bf16(0.02 * random.normal() / std::sqrt((a * a + b * b + c * c) / 3));
  }
  return words;
}

Words lognormal_rows(size_t n_rows, size_t n_columns, uint64_t seed) {
  Random random(seed);
  Words words;
  for (size_t row = 0; row < n_rows; ++row) {
    const double scale = std::exp(-4 + 1.5 * random.normal());
    for (size_t i = 0; i < n_columns; ++i) words.push_back(to_bf16(scale * random.normal()));
  }
  return words;
}

Words subnormals_and_zeros(size_t n, uint64_t seed) {
  Random random(seed);
  Words words(n);
  for (uint16_t& word : words) {
    const uint64_t kind = random.below(4);
    const uint16_t sign = static_cast<uint16_t>(random.below(2) << 15);
    if (kind == 0) word = sign;                                                 // +0, -0
    if (kind == 1) word = sign | static_cast<uint16_t>(1 + random.below(127));  // subnormal
    if (kind >= 2) word = sign | static_cast<uint16_t>(random.below(128 * 3));  // up to exponent 2
  }
  return words;
}

Words zero_rich(size_t n, uint64_t seed) {
  Words words = normal(n, 0.02, seed);
  Random random(seed + 1);
  for (uint16_t& word : words) {
    if (random.below(10) != 0) word = 0;
  }
  return words;
}

Words with_counts(std::vector<uint64_t> counts, uint32_t first_exponent, uint64_t seed) {
  return words_with_counts(counts, first_exponent, seed);
}

// One symbol of 3000 and 239 single ones: the Huffman code needs over 100 link rows.
std::vector<uint64_t> one_heavy_among_singles() {
  std::vector<uint64_t> counts(240, 1);
  counts[120] = 3000;
  return counts;
}

// First a long stretch of one value, then normal ones: one block of 1-bit codes only, with 32768
// weights, more than upstream's shared memory holds.
Words constant_then_normal() {
  Words words(90000, 0x3f80);
  for (const uint16_t word : normal(9000, 0.02, 71)) words.push_back(word);
  return words;
}

Words ascending_exponents() {
  Words words;
  for (uint32_t exponent = 0; exponent < 240; ++exponent) {
    for (uint32_t i = 0; i < 1 + exponent * 2; ++i) {
      words.push_back(bf16_join(static_cast<uint8_t>(exponent), static_cast<uint8_t>(i)));
    }
  }
  return words;
}

std::vector<NamedInput> make_inputs() {
  std::vector<NamedInput> inputs = {
      {"normal", {normal(150'001, 0.02, 1)}},
      {"normal_wide", {normal(60'000, 3.0, 2)}},
      {"student_t", {student_t3(120'007, 3)}},
      {"lognormal_rows", {lognormal_rows(200, 257, 4)}},
      {"single_element", {{0x3f80}}},
      {"single_zero", {{0x0000}}},
      {"one_symbol", {with_counts({1000}, 120, 5)}},
      {"one_symbol_full_blocks", {with_counts({65'536}, 120, 6)}},
      {"one_symbol_highest", {with_counts({77}, 239, 7)}},
      {"two_symbols_one_each", {with_counts({1, 1}, 120, 8)}},
      {"two_symbols_equal", {with_counts({500, 500}, 120, 9)}},
      {"two_symbols_first_rarer", {with_counts({3, 997}, 120, 10)}},
      {"two_symbols_second_rarer", {with_counts({997, 3}, 120, 11)}},
      {"subnormals_and_zeros", {subnormals_and_zeros(30'000, 12)}},
      {"zero_rich", {zero_rich(150'000, 13)}},
      {"several_members", {normal(1000, 0.02, 14), student_t3(17, 15), normal(40'000, 0.5, 16)}},
      {"several_members_empty_between", {normal(1000, 0.02, 17), {}, {}, normal(333, 0.02, 18)}},
      {"several_members_empty_first", {{}, normal(5000, 0.02, 19)}},
      {"several_members_empty_last", {normal(5000, 0.02, 20), {}}},
      {"all_exponents_uniform", {with_counts(std::vector<uint64_t>(240, 100), 0, 21)}},
      {"all_exponents_once", {with_counts(std::vector<uint64_t>(240, 1), 0, 22)}},
      {"all_exponents_ascending", {ascending_exponents()}},
      {"fibonacci_9_bits", {with_counts(fibonacci_counts(9), 100, 23)}},
      {"fibonacci_17_bits", {with_counts(fibonacci_counts(17), 100, 24)}},
      {"fibonacci_26_bits", {with_counts(fibonacci_counts(26), 100, 25)}},
      {"link_rows_over_16", {with_counts(one_heavy_among_singles(), 0, 26)}},
      {"constant_then_normal", {constant_then_normal()}},
  };
  for (size_t n = 1; n <= 40; ++n) {
    inputs.push_back({"tiny_" + std::to_string(n), {normal(n, 0.02, 100 + n)}});
  }
  for (NamedInput& input : border_inputs()) inputs.push_back(std::move(input));
  return inputs;
}

}  // namespace

std::vector<uint16_t> NamedInput::words() const {
  Words all;
  for (const Words& member : members) all.insert(all.end(), member.begin(), member.end());
  return all;
}

const std::vector<NamedInput>& named_inputs() {
  static const std::vector<NamedInput> inputs = make_inputs();
  return inputs;
}

std::vector<NamedInput> slow_inputs() {
  return {
      {"fibonacci_32_bits", {with_counts(fibonacci_counts(32), 100, 31)}},
      {"fibonacci_over_32_bits", {with_counts(fibonacci_counts(33), 100, 32)}},
  };
}

uint16_t to_bf16(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::vector<uint16_t> words_with_counts(std::span<const uint64_t> counts, uint32_t first_exponent,
                                        uint64_t seed) {
  Random random(seed);
  Words words;
  for (size_t i = 0; i < counts.size(); ++i) {
    for (uint64_t j = 0; j < counts[i]; ++j) {
      words.push_back(bf16_join(static_cast<uint8_t>(first_exponent + i),
                                static_cast<uint8_t>(random.below(256))));
    }
  }
  random.shuffle(words);
  return words;
}

std::vector<uint64_t> fibonacci_counts(size_t n) {
  std::vector<uint64_t> counts = {1, 1};
  while (counts.size() < n) counts.push_back(counts.back() + counts[counts.size() - 2]);
  counts.resize(n);
  return counts;
}

}  // namespace df11::test
