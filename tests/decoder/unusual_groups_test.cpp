// Groups that no encoder here writes: oracles, CPU decoder, and the device's decoding run on the
// CPU agree on them.
#include <gtest/gtest.h>

#include "decoder/host_group.h"
#include "simulated_block.h"
#include "support/group_decoding.h"
#include "support/reference_decoder.h"
#include "support/result_matchers.h"
#include "support/unusual_groups.h"

namespace df11::test {
namespace {

constexpr uint64_t kSeeds = 2000;

TEST(UnusualGroups, AreWhatTheyPromise) {
  size_t n_complete = 0, n_one_code = 0, n_tail = 0, n_missing = 0, n_several_members = 0;
  std::vector<bool> lengths(kMaxCodeLength + 1), link_rows(kMaxLinkRows + 1);
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const UnusualGroup group = unusual_group(seed);
    n_complete += group.is_complete;
    n_one_code += group.n_codes == 1;
    n_tail += group.has_tail_block;
    n_missing += group.last_position_is_missing;
    n_several_members += group.members.size() > 1;
    lengths.at(group.longest_code_bits) = true;
    link_rows.at(group.n_link_rows) = true;
  }
  for (const size_t n : {n_complete, n_one_code, n_tail, n_missing, n_several_members})
    EXPECT_GT(n, kSeeds / 50);
  EXPECT_EQ(std::count(lengths.begin() + 1, lengths.end(), true), kMaxCodeLength);
  EXPECT_EQ(std::count(link_rows.begin(), link_rows.end(), true), kMaxLinkRows + 1);
}

TEST(UnusualGroups, AllDecodersAgree) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const UnusualGroup unusual = unusual_group(seed);
    const GroupTensors& tensors = unusual.tensors;
    ASSERT_TRUE(reference_decode_strictly(tensors) == unusual.words) << seed;
    ASSERT_TRUE(reference_decode_by_windows(tensors) == unusual.words) << seed;

    const Result<HostGroup> group =
        HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa,
                         tensors.gaps, tensors.output_positions});
    ASSERT_TRUE(succeeded(group)) << seed;
    std::vector<uint16_t> words(unusual.words.size());
    ASSERT_TRUE(succeeded(group->decode(*make_cpu_decoder(), Executor(1), words.data()))) << seed;
    ASSERT_TRUE(words == unusual.words) << seed;
    if (!unusual.last_position_is_missing) {
      for (const size_t blocks_per_run : {1, 3}) {
        const Result<std::vector<uint16_t>> by_runs =
            decode_group(tensors, blocks_per_run, seed % 2 == 0 ? 0xff : 0);
        ASSERT_TRUE(succeeded(by_runs)) << seed;
        ASSERT_TRUE(*by_runs == unusual.words) << seed;
      }
    }
    const SimulatedDecode simulated =
        simulate(*group, static_cast<int>(seed % kSimulatedGeometries));
    ASSERT_EQ(simulated.status, 0u) << seed;
    ASSERT_TRUE(simulated.words == unusual.words) << seed;
  }
}

}  // namespace
}  // namespace df11::test
