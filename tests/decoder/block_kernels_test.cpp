// The CPU decoder's kernels for different processors: the same words, and the same refusals.
#include <gtest/gtest.h>

#include "decoder/cpu_decoder.h"
#include "format/df11_layout.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/result_matchers.h"
#include "support/unusual_groups.h"

namespace df11::test {
namespace {

using Decoders = std::vector<std::unique_ptr<GroupDecoder>>;

Decoders decoders_of(const GroupTensors& group) {
  const LookupTables luts = *LookupTables::parse(group.luts, group.luts.size() / 256);
  Decoders decoders;
  for (const BlockKernels& kernels : block_kernels())
    decoders.push_back(*make_cpu_decoder(kernels)->prepare(luts));
  return decoders;
}

// What every kernel must say alike: the words, or why there are none.
Result<std::vector<uint16_t>> decode_alike(const GroupTensors& group, const Decoders& decoders,
                                           size_t blocks_per_run) {
  const Result<std::vector<uint16_t>> first = decode_group(group, *decoders[0], blocks_per_run);
  for (size_t i = 1; i < decoders.size(); ++i) {
    const Result<std::vector<uint16_t>> other = decode_group(group, *decoders[i], blocks_per_run);
    EXPECT_EQ(other.has_value(), first.has_value()) << block_kernels()[i].name;
    if (other && first) {
      EXPECT_TRUE(*other == *first) << block_kernels()[i].name;
    }
    if (!other && !first) {
      EXPECT_EQ(other.error().describe(), first.error().describe()) << block_kernels()[i].name;
    }
  }
  return first;
}

TEST(BlockKernels, TheLastOneRunsAnywhere) {
  EXPECT_EQ(block_kernels().back().name, "portable");
}

TEST(BlockKernels, RestoreEveryInput) {
  for (const NamedInput& input : named_inputs()) {
    SCOPED_TRACE(input.name);
    const GroupTensors group = *encode_group(input.spans(), Executor(1), size_t{1} << 30);
    const Decoders decoders = decoders_of(group);
    for (const size_t blocks_per_run : {1, 5, 1000}) {
      const Result<std::vector<uint16_t>> words = decode_alike(group, decoders, blocks_per_run);
      ASSERT_TRUE(succeeded(words) && *words == input.words());
    }
  }
}

// Groups of up to twenty blocks, so that they are decoded together and alone; then damaged: in a
// gap, in the stream, in a position.
TEST(BlockKernels, SayTheSameOfUnusualAndOfDamagedGroups) {
  Random random(11);
  size_t n_refused = 0, n_together = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const UnusualGroup group = unusual_group(seed, 20 * kBlockBits);
    if (group.last_position_is_missing) continue;
    const Decoders decoders = decoders_of(group.tensors);
    const size_t n_blocks = positions_of(group.tensors).size() - 1;
    n_together += n_blocks >= kStreams;
    const Result<std::vector<uint16_t>> words = decode_alike(group.tensors, decoders, n_blocks);
    ASSERT_TRUE(succeeded(words) && *words == group.words);
    for (int round = 0; round < 12; ++round) {
      GroupTensors bad = group.tensors;
      std::vector<uint8_t>& bytes = round % 3 == 0   ? bad.gaps
                                    : round % 3 == 1 ? bad.encoded_exponent
                                                     : bad.output_positions;
      if (round % 3 == 2 && n_blocks > 1) {
        uint8_t* const position = &bytes[4 * (1 + random.below(n_blocks - 1))];
        const int64_t change = static_cast<int64_t>(random.below(2000)) - 1000;
        store_le32(position, static_cast<uint32_t>(load_le32(position) + change));
      } else if (round % 3 != 2) {
        bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1 << random.below(8));
      }
      n_refused += !decode_alike(bad, decoders, n_blocks);
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(n_refused, 1000u);
  EXPECT_GT(n_together, 50u);
}

}  // namespace
}  // namespace df11::test
