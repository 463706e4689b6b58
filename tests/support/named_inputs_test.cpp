// The inputs are what their names say: a test that rests on one of them must not pass by accident.
#include "support/named_inputs.h"

#include <gtest/gtest.h>

#include <set>

#include "format/bf16.h"
#include "format/df11_layout.h"
#include "support/reference_encoder.h"

namespace df11::test {
namespace {

struct Shape {
  uint64_t n_bits = 0;
  uint64_t last_code_bits = 0;
};

Shape stream_shape(const std::string& name) {
  for (const NamedInput& input : named_inputs()) {
    if (input.name != name) continue;
    const std::vector<uint16_t> words = input.words();
    const ReferenceCode code = reference_code(exponent_counts(words));
    Shape shape;
    for (const uint16_t word : words) {
      shape.last_code_bits = code.bits(bf16_exponent(word)).size();
      shape.n_bits += shape.last_code_bits;
    }
    return shape;
  }
  ADD_FAILURE() << "no input " << name;
  return {};
}

TEST(NamedInputs, NamesAreUnique) {
  std::set<std::string> names;
  for (const NamedInput& input : named_inputs())
    EXPECT_TRUE(names.insert(input.name).second) << input.name;
  EXPECT_GT(names.size(), 70u);
}

TEST(NamedInputs, AreReproducible) {
  EXPECT_EQ(to_bf16(1.0), 0x3f80);
  EXPECT_EQ(to_bf16(-2.0), 0xc000);
  EXPECT_EQ(named_inputs()[0].words()[0], named_inputs()[0].members[0][0]);
  EXPECT_EQ(border_inputs()[0].words(), border_inputs()[0].words());
}

TEST(NamedInputs, StreamsEndWhereTheirNamesSay) {
  Shape shape = stream_shape("ends_on_byte");
  EXPECT_EQ(shape.n_bits % kWindowBits, 40u);
  EXPECT_EQ(stream_shape("ends_on_window").n_bits % kWindowBits, 0u);
  EXPECT_EQ(stream_shape("ends_on_block").n_bits % kBlockBits, 0u);
  EXPECT_EQ(stream_shape("ends_on_third_block").n_bits, 3u * kBlockBits);
  EXPECT_EQ(stream_shape("ends_one_bit_before_block").n_bits % kBlockBits, kBlockBits - 1);
  EXPECT_EQ(stream_shape("one_symbol_full_blocks").n_bits, 2u * kBlockBits);
  for (const uint64_t past : {1, 3, 8, 11, 16, 24}) {
    shape = stream_shape("last_code_crosses_block_by_" + std::to_string(past));
    EXPECT_EQ(shape.n_bits % kBlockBits, past);
    EXPECT_GT(shape.last_code_bits, past);
  }
  shape = stream_shape("last_code_crosses_window_aligned");
  EXPECT_EQ(shape.n_bits % kWindowBits, 8u);
  EXPECT_GT(shape.last_code_bits, 8u);
  EXPECT_NE(shape.n_bits / kBlockBits, (shape.n_bits - 8) / kBlockBits + 1);
  shape = stream_shape("last_code_starts_on_block_aligned");
  EXPECT_EQ(shape.n_bits % kBlockBits, 8u);
  EXPECT_EQ(shape.last_code_bits, 8u);
  shape = stream_shape("last_code_starts_on_block_unaligned");
  EXPECT_EQ(shape.n_bits % kBlockBits, 5u);
  EXPECT_EQ(shape.last_code_bits, 5u);
}

TEST(NamedInputs, FibonacciCountsGiveTheNamedLengths) {
  for (const size_t n : {9, 17, 26, 32, 33}) {
    Histogram counts{};
    const std::vector<uint64_t> fibonacci = fibonacci_counts(n);
    std::copy(fibonacci.begin(), fibonacci.end(), counts.begin() + 100);
    EXPECT_EQ(reference_huffman(counts).longest_bits(), n);
  }
}

TEST(NamedInputs, OneInputNeedsMoreLinkRowsThanThereAre) {
  for (const NamedInput& input : named_inputs()) {
    if (input.name != "link_rows_over_16") continue;
    const ReferenceCode code = reference_code(exponent_counts(input.words()));
    EXPECT_GT(reference_prefixes(code).size(), 1 + kMaxLinkRows);
  }
}

}  // namespace
}  // namespace df11::test
