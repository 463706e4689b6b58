// --max-shard-size: which file holds what, and how large files get.
#include "compressor/merge_shards.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "directories/verifies.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

class MergeShardsTest : public ::testing::Test {
 protected:
  fs::path source() const { return directory_ / "source"; }
  fs::path output() const { return directory_ / "output"; }

  // Compresses with this limit and checks against source and manifest. Name -> size of each shard.
  std::map<std::string, uint64_t> shards(uint64_t max_shard_bytes, int n_threads = 2,
                                         Granularity granularity = Granularity::kTensor) {
    fs::remove_all(output());
    CompressOptions options;
    options.plan.granularity = granularity;
    options.max_shard_bytes = max_shard_bytes;
    EXPECT_TRUE(succeeded(run_compress(source(), output(), options, n_threads)));
    EXPECT_TRUE(verifies(output(), source()));
    std::map<std::string, uint64_t> sizes;
    for (const auto& entry : fs::directory_iterator(output())) {
      const std::string name = entry.path().filename();
      if (name.ends_with(kSafetensorsSuffix)) sizes[name] = entry.file_size();
    }
    return sizes;
  }
  static std::vector<std::string> names(const std::map<std::string, uint64_t>& sizes) {
    std::vector<std::string> list;
    for (const auto& [name, size] : sizes) list.push_back(name);
    return list;
  }

  TemporaryDirectory directory_;
};

// Twelve blocks of one matrix and one norm, in two source shards.
void write_blocks(const fs::path& directory) {
  std::vector<Tensor> first, second;
  std::map<std::string, std::string> index;
  for (int i = 0; i < 12; ++i) {
    const std::string block = "model.layers." + std::to_string(i);
    auto& shard = i < 6 ? first : second;
    shard.push_back(weights(block + ".mlp.up_proj.weight", {64, 96}, i + 1));
    shard.push_back(weights(block + ".input_layernorm.weight", {64}, i + 100));
    for (size_t t = shard.size() - 2; t < shard.size(); ++t)
      index[shard[t].name] =
          i < 6 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  }
  write_file(directory / "config.json", "{\"model_type\": \"qwen3\"}\n");
  write_safetensors(directory / "model-00001-of-00002.safetensors", first);
  write_safetensors(directory / "model-00002-of-00002.safetensors", second);
  write_index(directory / "model.safetensors.index.json", index);
}

TEST_F(MergeShardsTest, NoFileIsLargerAndNoneCouldTakeTheNextTensor) {
  write_blocks(source());
  for (const uint64_t limit : {12'000u, 20'000u, 31'000u, 60'000u}) {
    const auto sizes = shards(limit);
    EXPECT_GT(sizes.size(), 1u);
    char last[64];
    std::snprintf(last, sizeof last, "model-%05zu-of-%05zu.safetensors", sizes.size(),
                  sizes.size());
    EXPECT_EQ(sizes.rbegin()->first, last);
    for (const auto& [name, size] : sizes) {
      EXPECT_LE(size, limit) << name;
      // A group of 12 kB of weights takes about 9 kB with its header.
      if (name != last) {
        EXPECT_GT(size + 11'000, limit) << name;
      }
    }
  }
}

TEST_F(MergeShardsTest, OneFileHasNoNumber) {
  write_blocks(source());
  EXPECT_EQ(names(shards(5'000'000'000)), (std::vector<std::string>{"model.safetensors"}));
}

TEST_F(MergeShardsTest, LargerTensorsAndGroupsHaveFilesOfTheirOwn) {
  write_tiny_checkpoint(source(), {weights("model.layers.0.mlp.up_proj.weight", {64, 96}, 1),
                                   weights("model.layers.0.input_layernorm.weight", {16}, 2),
                                   zeros("model.layers.0.table", Dtype::kF32, {2000}),
                                   weights("model.layers.0.input_norm.weight", {16}, 3)});
  EXPECT_EQ(shards(3'000).size(), 3u);  // in the source's order: table, both norms, group
  EXPECT_EQ(shards(1).size(), 4u);
}

TEST_F(MergeShardsTest, UncodableGroupsAreMergedToo) {
  std::vector<uint16_t> words(6000, 0x7f80);  // infinities
  write_tiny_checkpoint(source(),
                        {bf16_tensor("model.layers.0.mlp.up_proj.weight", {60, 100}, words),
                         weights("model.layers.1.mlp.up_proj.weight", {64, 96}, 1)});
  EXPECT_EQ(shards(100'000).size(), 1u);
  EXPECT_EQ(shards(13'000).size(), 2u);
}

TEST_F(MergeShardsTest, GroupsOfSeveralMembers) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 6; ++i) {
    const std::string block = "model.layers." + std::to_string(i) + ".mlp.";
    for (const char* member : {"gate_proj", "up_proj", "down_proj"})
      tensors.push_back(weights(block + member + ".weight", {64, 96}, tensors.size() + 1));
  }
  // One member of one block cannot be coded, and is stored beside the group of the others.
  tensors[4] = bf16_tensor(tensors[4].name, {64, 96}, std::vector<uint16_t>(64 * 96, 0x7f80));
  write_tiny_checkpoint(source(), tensors);
  const auto sizes = shards(60'000, 2, Granularity::kBlock);
  EXPECT_GT(sizes.size(), 2u);
  for (const auto& [name, size] : sizes) EXPECT_LE(size, 60'000u) << name;
  EXPECT_EQ(read_manifest(output()).groups.size(), 6u);
}

TEST_F(MergeShardsTest, SourceOrderStemAndNoConfig) {
  write_safetensors(
      source() / "diffusion_pytorch_model.safetensors",
      {weights("blocks.10.up.weight", {64, 96}, 1), weights("blocks.2.up.weight", {64, 96}, 2)});
  EXPECT_EQ(names(shards(13'000)),
            (std::vector<std::string>{"diffusion_pytorch_model-00001-of-00002.safetensors",
                                      "diffusion_pytorch_model-00002-of-00002.safetensors"}));
  EXPECT_EQ(read_safetensors(output() / "diffusion_pytorch_model-00001-of-00002.safetensors")
                .count("blocks.10.up.luts"),
            1u);
  EXPECT_TRUE(fs::exists(output() / "diffusion_pytorch_model.safetensors.index.json"));
}

TEST_F(MergeShardsTest, BytesDoNotDependOnThreadsAndADryRunKnowsThem) {
  write_blocks(source());
  shards(31'000, 1);
  const auto one = tree_of(output());
  shards(31'000, 4);
  EXPECT_TRUE(tree_of(output()) == one);
  CompressOptions options;
  options.max_shard_bytes = 31'000;
  options.dry_run = true;
  const Result<CompressSummary> predicted = run_compress(source(), {}, options);
  ASSERT_TRUE(succeeded(predicted));
  uint64_t n_bytes = 0;
  for (const auto& [path, bytes] : one) n_bytes += bytes.size();
  EXPECT_EQ(predicted->artifact_bytes, n_bytes);
}

}  // namespace
}  // namespace df11::test
