// Groups of several members, from source to artifact and back.
#include <gtest/gtest.h>

#include "compressor/compress.h"
#include "directories/builders.h"
#include "directories/verifies.h"
#include "format/artifact.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using Names = std::vector<std::string>;

class CompressBlocksTest : public ::testing::Test {
 protected:
  // Compresses by block and verifies in both ways; the artifact's groups with their tensors.
  std::map<std::string, Names> round_trip(const std::vector<Tensor>& tensors,
                                          CompressOptions options = {}) {
    fs::remove_all(output_);
    write_tiny_checkpoint(source_, tensors);
    if (!options.plan.patterns) options.plan.granularity = Granularity::kBlock;
    const Result<CompressSummary> summary = run_compress(source_, output_, options);
    EXPECT_TRUE(succeeded(summary));
    EXPECT_TRUE(verifies(output_, source_, tensors.size()));
    const Result<Artifact> artifact = Artifact::open(output_);
    EXPECT_TRUE(succeeded(artifact));
    if (!artifact) return {};
    std::map<std::string, Names> groups;
    for (const GroupEntry& group : artifact->groups()) groups[group.module] = group.members;
    patterns_ = artifact->config().pattern_dict;
    return groups;
  }

  std::string reason(const std::string& tensor) const {
    for (const ManifestTensor& entry : read_manifest(output_).tensors) {
      if (entry.name == tensor) return entry.reason;
    }
    return "not there";
  }

  static Tensor with_infinity(std::string name) {
    Tensor tensor = weights(std::move(name), {64, 96}, 9);
    tensor.bytes[1000] = '\x80';
    tensor.bytes[1001] = '\x7f';
    return tensor;
  }

  TemporaryDirectory directory_;
  const fs::path source_ = directory_ / "source", output_ = directory_ / "output";
  PatternDict patterns_;
};

TEST_F(CompressBlocksTest, MembersOfUnequalSizes) {
  const auto groups = round_trip({weights("model.layers.0.q_proj.weight", {64, 64}, 1),
                                  weights("model.layers.0.down_proj.weight", {1, 3}, 2),
                                  weights("model.layers.0.up_proj.weight", {700, 1000}, 3),
                                  weights("model.layers.1.up_proj.weight", {64, 64}, 4),
                                  weights("model.layers.0.norm.weight", {64}, 5)});
  EXPECT_EQ(groups, (std::map<std::string, Names>{
                        {"model.layers.0",
                         {"model.layers.0.q_proj.weight", "model.layers.0.up_proj.weight",
                          "model.layers.0.down_proj.weight"}},
                        {"model.layers.1", {"model.layers.1.up_proj.weight"}}}));
  EXPECT_EQ(patterns_, (PatternDict{{R"(model\.layers\.0)", {"q_proj", "up_proj", "down_proj"}},
                                    {R"(model\.layers\.1)", {"up_proj"}}}));
  EXPECT_EQ(read_manifest(output_).settings.at("granularity"), "block");
}

// What upstream cannot code at all: the member stays, the others are a group without it.
TEST_F(CompressBlocksTest, AMemberThatCannotBeCoded) {
  const auto groups =
      round_trip({with_infinity("l.1.b.weight"), weights("l.0.a.weight", {64, 96}, 1),
                  weights("l.0.b.weight", {64, 96}, 2), weights("l.1.a.weight", {64, 96}, 3),
                  weights("l.1.c.weight", {64, 96}, 4)});
  EXPECT_EQ(groups, (std::map<std::string, Names>{{"l.0", {"l.0.a.weight", "l.0.b.weight"}},
                                                  {"l.1", {"l.1.a.weight", "l.1.c.weight"}}}));
  EXPECT_EQ(reason("l.1.b.weight"),
            "1 weights with exponents of 240 or more (2^113 and up, Inf or NaN)");
  EXPECT_EQ(patterns_, (PatternDict{{R"(l\.0)", {"a", "b"}}, {R"(l\.1)", {"a", "c"}}}));
}

TEST_F(CompressBlocksTest, NoMemberCanBeCoded) {
  const auto groups = round_trip({with_infinity("l.0.a.weight"), with_infinity("l.0.b.weight"),
                                  weights("l.1.a.weight", {64, 96})});
  EXPECT_EQ(groups, (std::map<std::string, Names>{{"l.1", {"l.1.a.weight"}}}));
  EXPECT_EQ(patterns_, (PatternDict{{R"(l\.1)", {"a"}}})) << "layer 0 is matched by none";
}

TEST_F(CompressBlocksTest, AGroupThatWouldNotShrinkStaysVerbatim) {
  EXPECT_TRUE(
      round_trip({weights("l.0.a.weight", {2, 3}), weights("l.0.b.weight", {2, 3})}).empty());
  EXPECT_EQ(reason("l.0.b.weight"), "coding would not make it smaller");
}

TEST_F(CompressBlocksTest, ByPatternDict) {
  CompressOptions options;
  options.plan.patterns = PatternDict{{"l.\\d++", {"b", "a"}}};
  const auto groups =
      round_trip({weights("l.0.a.weight", {64, 96}, 1), weights("l.0.b.weight", {64, 96}, 2),
                  weights("l.0.c.weight", {64, 96}, 3)},
                 options);
  EXPECT_EQ(groups, (std::map<std::string, Names>{{"l.0", {"l.0.b.weight", "l.0.a.weight"}}}));
  EXPECT_EQ(patterns_, *options.plan.patterns);
  EXPECT_EQ(read_manifest(output_).settings.at("granularity"), "pattern_dict");
}

TEST_F(CompressBlocksTest, BytesDependOnSourceAndOptionsOnly) {
  write_tiny_checkpoint(
      source_, {weights("l.0.a.weight", {700, 1000}, 1), weights("l.0.b.weight", {900, 1000}, 2)});
  CompressOptions options;
  options.plan.granularity = Granularity::kBlock;
  std::map<std::string, std::string> first;
  for (const int n_threads : {1, 2, 7}) {
    const fs::path output = directory_ / ("output" + std::to_string(n_threads));
    ASSERT_TRUE(succeeded(run_compress(source_, output, options, n_threads)));
    if (first.empty()) first = tree_of(output);
    EXPECT_EQ(tree_of(output), first) << n_threads;
  }
}

}  // namespace
}  // namespace df11::test
