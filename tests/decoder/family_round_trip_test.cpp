// Every family of compressor/families, in both granularities: compressed, verified, restored.
#include <gtest/gtest.h>

#include "decoder/restore.h"
#include "directories/family.h"
#include "directories/verifies.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

class FamilyRoundTripTest : public ::testing::TestWithParam<std::string> {
 protected:
  void round_trip(Granularity granularity, const std::string& name) const {
    const fs::path source = directory_ / "source", artifact = directory_ / "artifact",
                   restored = directory_ / "restored";
    const Family family(GetParam());
    family.write_checkpoint(source, true);
    CompressOptions options;
    options.plan.granularity = granularity;
    const Result<CompressSummary> summary = run_compress(source, artifact, options);
    ASSERT_TRUE(succeeded(summary));
    EXPECT_EQ(summary->manifest.groups.size(), family.groups(name).size());
    EXPECT_TRUE(verifies(artifact, source));
    const Executor executor(2);
    Progress progress;
    ASSERT_TRUE(
        succeeded(restore(artifact, restored, {}, *make_cpu_decoder(), executor, progress)));
    EXPECT_TRUE(tree_of(restored) == tree_of(source));
  }

  TemporaryDirectory directory_;
};

TEST_P(FamilyRoundTripTest, ByTensor) {
  round_trip(Granularity::kTensor, "tensor");
}

TEST_P(FamilyRoundTripTest, ByBlock) {
  round_trip(Granularity::kBlock, "block");
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyRoundTripTest, ::testing::ValuesIn(family_names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace df11::test
