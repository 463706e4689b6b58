// Many small groups with alphabets of every shape. Decoding tables go wrong for particular codes
// (where slots that no code reaches repeat a short symbol, say), not for particular sizes.
#include <gtest/gtest.h>

#include "compressor/group_encoder.h"
#include "support/group_decoding.h"
#include "support/histograms.h"
#include "support/named_inputs.h"
#include "support/reference_decoder.h"
#include "support/reference_encoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

// Some 2000 words in about the proportions of `counts`, each exponent at least once.
std::vector<uint16_t> words_like(const Histogram& counts, uint64_t seed) {
  double total = 0;
  for (const uint64_t count : counts) total += static_cast<double>(count);
  std::vector<uint64_t> scaled;
  for (uint32_t exponent = 0; exponent < 240; ++exponent) {
    const double share = static_cast<double>(counts[exponent]) / total;
    scaled.push_back(counts[exponent] == 0 ? 0 : 1 + static_cast<uint64_t>(2000 * share));
  }
  return words_with_counts(scaled, 0, seed);
}

TEST(Alphabets, EncodeAndDecodeLikeTheReference) {
  const Executor executor(1);
  uint64_t seed = 0;
  for (const NamedHistogram& histogram : named_histograms(1200)) {
    SCOPED_TRACE(histogram.name);
    const NamedInput input = {histogram.name, {words_like(histogram.counts, ++seed)}};
    const std::vector<uint16_t>& words = input.members[0];
    const Result<GroupTensors> group = encode_group(input.spans(), executor, 777);
    ASSERT_TRUE(succeeded(group));
    const Codebook book = *build_codebook(exponent_counts(words));
    const GroupTensors expected = reference_encode(input.members, code_of(book));
    ASSERT_TRUE(group->encoded_exponent == expected.encoded_exponent);
    ASSERT_TRUE(group->gaps == expected.gaps);
    ASSERT_TRUE(group->output_positions == expected.output_positions);
    ASSERT_TRUE(reference_decode_by_windows(*group) == words);
    const Result<std::vector<uint16_t>> decoded = decode_group(*group, 1);
    ASSERT_TRUE(succeeded(decoded));
    ASSERT_TRUE(*decoded == words);
  }
}

}  // namespace
}  // namespace df11::test
