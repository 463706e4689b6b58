// Compression of whole directories: what is written, what is not, and that all of it comes back.
#include "compressor/compress.h"

#include <gtest/gtest.h>

#include <numeric>

#include "directories/builders.h"
#include "directories/verifies.h"
#include "format/hash.h"
#include "format/partial_output.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

class CompressTest : public ::testing::Test {
 protected:
  fs::path source() const { return directory_ / "source"; }
  fs::path output() const { return directory_ / "output"; }

  // Names in the test's directory.
  std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  // Equal to the source and to the manifest, with the source's bytes untouched.
  void compress_and_verify(const CompressOptions& options = {}) {
    const auto before = tree_of(source());
    const Result<CompressSummary> summary = run_compress(source(), output(), options);
    ASSERT_TRUE(succeeded(summary));
    EXPECT_EQ(tree_of(source()), before);
    EXPECT_TRUE(verifies(output(), source()));
  }

  // Why each verbatim tensor is verbatim; grouped ones are absent.
  std::map<std::string, std::string> reasons() const {
    std::map<std::string, std::string> reasons;
    for (const ManifestTensor& tensor : read_manifest(output()).tensors) {
      if (tensor.group.empty()) reasons[tensor.name] = tensor.reason;
    }
    return reasons;
  }

  TemporaryDirectory directory_;
};

TEST_F(CompressTest, BytesDependOnSourceAndOptionsOnly) {
  write_sharded_checkpoint(source());
  // Over two slices, so that several threads work on one group.
  edit_safetensors(source() / "model-00001-of-00002.safetensors", [](auto& tensors) {
    const std::string name = "model.layers.0.mlp.up_proj.weight";
    tensors[name] = weights(name, {1200, 1024});
  });
  std::map<std::string, std::string> first;
  for (const int n_threads : {1, 2, 4, 4}) {
    ASSERT_TRUE(succeeded(run_compress(source(), output(), {}, n_threads)));
    auto tree = tree_of(output());
    if (first.empty())
      first = std::move(tree);
    else
      EXPECT_TRUE(tree == first) << n_threads << " threads";
    fs::remove_all(output());
  }
  // Where source and output lie does not matter either.
  fs::rename(source(), directory_ / "elsewhere");
  ASSERT_TRUE(succeeded(run_compress(directory_ / "elsewhere", directory_ / "other-name")));
  EXPECT_TRUE(tree_of(directory_ / "other-name") == first);
}

TEST_F(CompressTest, DryRunPredictsEveryByteAndWritesNone) {
  write_sharded_checkpoint(source());
  write_file(source() / "assets/logo.png", std::string(5000, 'x'));
  CompressOptions options;
  options.dry_run = true;
  options.plan.exclude = {"*norm*"};
  const Result<CompressSummary> predicted = run_compress(source(), output(), options);
  ASSERT_TRUE(succeeded(predicted));
  EXPECT_EQ(listing(), (std::vector<std::string>{"source"}));

  options.dry_run = false;
  const Result<CompressSummary> summary = run_compress(source(), output(), options);
  ASSERT_TRUE(succeeded(summary));
  uint64_t on_disk = 0;
  for (const auto& [path, bytes] : tree_of(output())) on_disk += bytes.size();
  EXPECT_EQ(predicted->artifact_bytes, on_disk);
  EXPECT_EQ(summary->artifact_bytes, on_disk);
  EXPECT_EQ(predicted->stored_group_bytes, summary->stored_group_bytes);
  EXPECT_EQ(predicted->grouped_weight_bytes, summary->grouped_weight_bytes);
  uint64_t in_source = 0;
  for (const auto& [path, bytes] : tree_of(source())) in_source += bytes.size();
  EXPECT_EQ(summary->source_bytes, in_source);
}

TEST_F(CompressTest, ManifestRecordsSourceAndOutput) {
  write_sharded_checkpoint(source());
  write_file(source() / "assets/logo.png", "png");
  compress_and_verify();
  const Manifest manifest = read_manifest(output());
  const auto in_source = tree_of(source());
  size_t n_listed = 0;
  for (const ManifestFile& file : manifest.source_files) {
    const std::string& bytes = in_source.at(file.path);
    EXPECT_EQ(file.size_bytes, bytes.size());
    EXPECT_EQ(file.sha256, sha256(as_bytes(bytes))) << file.path;
    ++n_listed;
  }
  EXPECT_EQ(n_listed, 6u);  // 2 shards, index, config, tokenizer, asset
  EXPECT_EQ(manifest.restore.at("config.json"), in_source.at("config.json"));
  EXPECT_EQ(manifest.restore.at("model.safetensors.index.json"),
            in_source.at("model.safetensors.index.json"));
  const std::string& shard = in_source.at("model-00001-of-00002.safetensors");
  const std::string& head = manifest.restore.at("model-00001-of-00002.safetensors");
  EXPECT_TRUE(shard.starts_with(head));
  EXPECT_EQ(head.size(), 8 + load_le64(as_bytes(shard).data()));
}

TEST_F(CompressTest, ExistingOutput) {
  write_tiny_checkpoint(source());
  CompressOptions force;
  force.force = true;
  const auto refused = [&](const CompressOptions& options) {
    const auto before = tree_of(directory_.path());
    const auto refusal =
        failed_with(run_compress(source(), output(), options), ErrorCode::already_exists);
    EXPECT_EQ(tree_of(directory_.path()), before);
    return refusal;
  };
  write_file(output(), "a file");
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(force));
  fs::remove(output());
  fs::create_directories(output());
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(force)) << "an empty directory is no artifact";
  write_file(output() / "precious.txt", "data");
  write_file(output() / "config.json", "{\"model_type\": \"qwen3\"}");
  EXPECT_TRUE(refused(force));
  fs::remove_all(output());
  fs::create_symlink("nowhere", output());
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(force));
  fs::remove(output());

  compress_or_throw(source(), output());
  write_file(output() / "stale.txt", "from an older run");
  EXPECT_TRUE(refused({}));
  ASSERT_TRUE(succeeded(run_compress(source(), output(), force)));
  EXPECT_FALSE(fs::exists(output() / "stale.txt"));
  EXPECT_EQ(listing(), (std::vector<std::string>{"output", "source"}));
  // An artifact of someone else: no manifest, but the config entry.
  fs::remove(output() / kManifestName);
  EXPECT_TRUE(succeeded(run_compress(source(), output(), force)));
}

TEST_F(CompressTest, FailedForceKeepsTheOldArtifact) {
  write_tiny_checkpoint(source());
  compress_or_throw(source(), output());
  const auto before = tree_of(output());
  const std::string bytes = read_file(source() / "model.safetensors");
  write_file(source() / "model.safetensors", bytes.substr(0, bytes.size() - 2));
  CompressOptions force;
  force.force = true;
  EXPECT_FALSE(run_compress(source(), output(), force));
  EXPECT_EQ(tree_of(output()), before);
}

TEST_F(CompressTest, DirectoriesInsideEachOther) {
  write_tiny_checkpoint(source() / "deep");
  const auto refused = [](const Result<CompressSummary>& result) {
    return failed_with(result, ErrorCode::invalid_argument, "contain each other");
  };
  const auto before = tree_of(directory_.path());
  EXPECT_TRUE(refused(run_compress(source() / "deep", source() / "deep/out")));
  EXPECT_TRUE(refused(run_compress(source() / "deep", source() / "deep")));
  EXPECT_TRUE(refused(run_compress(source() / "deep", source())));
  EXPECT_TRUE(refused(run_compress(source() / "deep", source() / "x/../deep/./out")));
  EXPECT_EQ(tree_of(directory_.path()), before);
  fs::create_directory_symlink(source() / "deep", directory_ / "link");
  EXPECT_TRUE(refused(run_compress(source() / "deep", directory_ / "link/out")));
  fs::remove(directory_ / "link");
  // A name that merely begins like the source's is another directory.
  EXPECT_TRUE(succeeded(run_compress(source() / "deep", source() / "deeper")));
}

TEST_F(CompressTest, ErrorsNameWhatIsWrongWithTheOutputPath) {
  write_tiny_checkpoint(source());
  const auto said = [&](const fs::path& path) {
    const Result<CompressSummary> result = run_compress(source(), path);
    return result ? std::string("done") : result.error().describe();
  };
  fs::create_symlink("loop", directory_ / "loop");
  EXPECT_EQ(said(directory_ / "loop/out").find("contain each other"), std::string::npos);
  EXPECT_EQ(said(directory_ / std::string(300, 'a')).find("contain each other"), std::string::npos);
  EXPECT_EQ(said("").find("contain each other"), std::string::npos);
}

TEST_F(CompressTest, OutputNeedsNoParent) {
  write_tiny_checkpoint(source());
  EXPECT_TRUE(succeeded(run_compress(source(), directory_ / "new/deep/output/")));
  EXPECT_TRUE(run_verify(directory_ / "new/deep/output")->equal());
}

TEST_F(CompressTest, LeftoversOfAnInterruptedRunAreRemoved) {
  write_tiny_checkpoint(source());
  const fs::path partial = output().string() + std::string(kPartialSuffix);
  write_file(partial / "sub/half-written.safetensors", "x");
  compress_and_verify();
  EXPECT_EQ(listing(), (std::vector<std::string>{"output", "source"}));
}

TEST_F(CompressTest, AnotherRunHoldsTheOutput) {
  write_tiny_checkpoint(source());
  const Result<PartialOutput> other = PartialOutput::create(output(), nullptr, false);
  ASSERT_TRUE(succeeded(other));
  write_file(other->path() / "theirs", "x");
  EXPECT_TRUE(
      failed_with(run_compress(source(), output()), ErrorCode::already_exists, "another process"));
  EXPECT_EQ(read_file(other->path() / "theirs"), "x");
}

TEST_F(CompressTest, CancelledRunLeavesNothing) {
  write_tiny_checkpoint(source());
  CancelToken token;
  token.cancel();
  const Executor executor(2, &token);
  Progress progress;
  EXPECT_TRUE(
      failed_with(compress(source(), output(), {}, executor, progress), ErrorCode::cancelled));
  EXPECT_EQ(listing(), (std::vector<std::string>{"source"}));
}

TEST_F(CompressTest, FailureLeavesNothingNotEvenParents) {
  write_tiny_checkpoint(source());
  CancelToken token;
  token.cancel();
  const Executor executor(2, &token);
  Progress progress;
  EXPECT_FALSE(compress(source(), directory_ / "new/deep/output", {}, executor, progress));
  EXPECT_EQ(listing(), (std::vector<std::string>{"source"}));
}

TEST_F(CompressTest, SourceWithAFileOfTheManifestsName) {
  write_tiny_checkpoint(source());
  write_file(source() / kManifestName, "{}");
  EXPECT_TRUE(failed_with(run_compress(source(), output()), ErrorCode::unsupported, "--omit"));
  CompressOptions options;
  options.omit = {std::string(kManifestName)};
  compress_and_verify(options);
  EXPECT_EQ(read_manifest(output()).omitted_files,
            (std::vector<std::string>{std::string(kManifestName)}));
}

}  // namespace
}  // namespace df11::test
