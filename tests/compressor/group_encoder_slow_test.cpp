// Groups of millions of weights whose codes reach 32 bits, and would pass them.
#include <gtest/gtest.h>

#include "compressor/group_encoder.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/reference_decoder.h"
#include "support/reference_encoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

TEST(GroupEncoderSlow, LongestCodesEncodeAndDecode) {
  const Executor executor(2);
  for (const NamedInput& input : slow_inputs()) {
    SCOPED_TRACE(input.name);
    const std::vector<uint16_t> words = input.words();
    const Codebook book = *build_codebook(exponent_counts(words));
    const bool over = input.name == "fibonacci_over_32_bits";
    EXPECT_EQ(book.rule, over ? CodeRule::kRaisedCounts : CodeRule::kHuffman);
    if (!over) {
      EXPECT_EQ(book.luts.longest_code_bits(), 32);
    }

    const GroupTensors expected =
        reference_encode(input.members, reference_code(exponent_counts(words)));
    for (const size_t slice_elements : {size_t{100'003}, size_t{1} << 40}) {
      const Result<GroupTensors> actual = encode_group(input.spans(), executor, slice_elements);
      ASSERT_TRUE(succeeded(actual));
      EXPECT_TRUE(actual->encoded_exponent == expected.encoded_exponent);
      EXPECT_TRUE(actual->sign_mantissa == expected.sign_mantissa);
      EXPECT_TRUE(actual->gaps == expected.gaps);
      EXPECT_TRUE(actual->output_positions == expected.output_positions);
      const Result<std::vector<uint16_t>> decoded = decode_group(*actual, 256);
      ASSERT_TRUE(succeeded(decoded));
      EXPECT_TRUE(*decoded == words);
      EXPECT_TRUE(reference_decode(*actual) == words);
    }
  }
}

}  // namespace
}  // namespace df11::test
