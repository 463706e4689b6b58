// Whole directories: compressed, restored, and compared byte for byte.
#include "decoder/restore.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

class RestoreTest : public ::testing::Test {
 protected:
  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }
  fs::path output() const { return directory_ / "output"; }
  fs::path shard(const std::string& name) const { return artifact() / (name + ".safetensors"); }

  Result<RestoreSummary> run_restore(const RestoreOptions& options = {}, int n_threads = 2) const {
    const Executor executor(n_threads);
    Progress progress;
    Result<RestoreSummary> summary =
        restore(artifact(), output(), options, *make_cpu_decoder(), executor, progress);
    EXPECT_TRUE(!summary || progress.done_bytes == progress.total_bytes);
    return summary;
  }

  // What compression and restoration make of the source is the source.
  void round_trip() const {
    fs::remove_all(artifact());
    fs::remove_all(output());
    compress_or_throw(source(), artifact());
    RestoreOptions options;
    options.verify = true;
    ASSERT_TRUE(succeeded(run_restore(options)));
    EXPECT_TRUE(tree_of(output()) == tree_of(source()));
  }

  // Restoring fails as damage, and nothing of the output is left.
  ::testing::AssertionResult damaged(std::string_view text = {}) const {
    const Result<RestoreSummary> summary = run_restore();
    if (summary) return ::testing::AssertionFailure() << "succeeded";
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      if (entry.path().filename().string().starts_with("output"))
        return ::testing::AssertionFailure() << entry.path() << " is left";
    }
    if (!is_damage(summary.error().code)) {
      return ::testing::AssertionFailure()
             << error_code_name(summary.error().code) << ": " << summary.error().describe();
    }
    return failed_with(summary, summary.error().code, text);
  }

  TemporaryDirectory directory_;
};

TEST_F(RestoreTest, SingleFile) {
  write_tiny_checkpoint(source());
  write_file(source() / "sub/folder/file.txt", "text");
  write_file(source() / "empty", "");
  round_trip();
}

TEST_F(RestoreTest, Shards) {
  write_sharded_checkpoint(source());
  round_trip();
  // Several runs a tensor, on any number of threads.
  edit_safetensors(source() / "model-00001-of-00002.safetensors", [](auto& tensors) {
    const std::string name = "model.layers.0.mlp.up_proj.weight";
    tensors[name] = weights(name, {2100, 1024});
  });
  round_trip();
  for (const int n_threads : {1, 4}) {
    fs::remove_all(output());
    ASSERT_TRUE(succeeded(run_restore({}, n_threads)));
    EXPECT_TRUE(tree_of(output()) == tree_of(source()));
  }
}

TEST_F(RestoreTest, DiffusersNames) {
  write_file(source() / "config.json", "{\"_class_name\": \"FluxTransformer2DModel\"}");
  write_safetensors(source() / "diffusion_pytorch_model.safetensors", tiny_tensors());
  round_trip();
}

TEST_F(RestoreTest, LinksOfAHubCacheBecomeFiles) {
  write_tiny_checkpoint(source());
  const auto expected = tree_of(source());
  for (const std::string name : {"model.safetensors", "config.json", "tokenizer.json"}) {
    write_file(directory_ / "blobs" / name, read_file(source() / name));
    fs::remove(source() / name);
    fs::create_symlink("../blobs/" + name, source() / name);
  }
  compress_or_throw(source(), artifact());
  ASSERT_TRUE(succeeded(run_restore()));
  EXPECT_TRUE(tree_of(output()) == expected);
}

TEST_F(RestoreTest, OddButLegalHeaders) {
  write_file(source() / "config.json", "{}");
  const std::string tensor = weights("x", {64, 64}).bytes;
  const std::string floats(24, 'f'), ints(16, 'i');
  // Keys out of order, metadata in the middle, spaces, an escaped name, an empty tensor, rank 0.
  std::string json =
      R"({ "layers.0.up_\u0070roj.weight" : {"data_offsets":[28, 8220],"shape":[64,64],"dtype":"BF16"},
      "f": {"dtype":"F32","shape":[6],"data_offsets":[0,24]},
      "__metadata__": {"z":"1","a":"\u00e9"}, "none":{"dtype":"BF16","shape":[0,64],"data_offsets":[24,24]},
      "scalar":{"dtype":"F32","shape":[],"data_offsets":[24,28]},
      "i":{"dtype":"I64","shape":[2,1],"data_offsets":[8220,8236]}})";
  json += std::string(77, ' ');
  std::string file(8, '\0');
  store_le64(reinterpret_cast<uint8_t*>(file.data()), json.size());
  file += json + floats + "scal" + tensor + ints;
  write_file(source() / "model.safetensors", file);
  round_trip();
  EXPECT_EQ(read_manifest(artifact()).groups.size(), 1u);
}

TEST_F(RestoreTest, WithoutConfig) {
  write_safetensors(source() / "model.safetensors", tiny_tensors());
  round_trip();
}

TEST_F(RestoreTest, WithoutAnythingCoded) {
  write_file(source() / "config.json", "{}");
  write_safetensors(source() / "model.safetensors", {zeros("a.weight", Dtype::kF32, {70, 70}),
                                                     zeros("b.weight", Dtype::kI64, {3})});
  round_trip();
  // Only a tied embedding.
  write_tiny_checkpoint(source(), {weights("model.embed_tokens.weight", {96, 64})});
  round_trip();
}

TEST_F(RestoreTest, EmptyShard) {
  write_sharded_checkpoint(source());
  const std::string first = "model-00001-of-00002.safetensors";
  write_safetensors(source() / "model-00002-of-00002.safetensors", {});
  const auto tensors = read_safetensors(source() / first);
  std::map<std::string, std::string> weight_map;
  for (const auto& [name, tensor] : tensors) weight_map[name] = first;
  write_index(source() / "model.safetensors.index.json", weight_map);
  // A shard that no tensor of the index is in is refused when compressing: it is left out.
  CompressOptions options;
  options.omit = {"model-00002-*"};
  compress_or_throw(source(), artifact(), options);
  const Result<RestoreSummary> summary = run_restore();
  ASSERT_TRUE(succeeded(summary));
  EXPECT_EQ(summary->omitted_files, (std::vector<std::string>{"model-00002-of-00002.safetensors"}));
  auto expected = tree_of(source());
  expected.erase("model-00002-of-00002.safetensors");
  EXPECT_TRUE(tree_of(output()) == expected);
}

TEST_F(RestoreTest, NoTensorsAtAll) {
  write_file(source() / "config.json", "{}");
  write_safetensors(source() / "model.safetensors", {});
  round_trip();
}

TEST_F(RestoreTest, FileKeptUnderAnotherName) {
  write_tiny_checkpoint(source());
  write_file(source() / "README.md", "the source's card");
  compress_or_throw(source(), artifact());
  EXPECT_NE(read_file(artifact() / "README.md"), "the source's card");
  EXPECT_EQ(read_file(artifact() / "README.source.md"), "the source's card");
  ASSERT_TRUE(succeeded(run_restore()));
  EXPECT_TRUE(tree_of(output()) == tree_of(source()));
}

TEST_F(RestoreTest, DamagedArtifacts) {
  write_sharded_checkpoint(source());
  compress_or_throw(source(), artifact());
  const fs::path layer = shard("model_layers_0"), copy = directory_ / "copy";
  fs::rename(artifact(), copy);
  const auto fresh = [&] {
    fs::remove_all(artifact());
    fs::copy(copy, artifact(), fs::copy_options::recursive);
  };
  const auto edit = [&](const std::function<void(std::map<std::string, Tensor>&)>& change) {
    fresh();
    edit_safetensors(layer, change);
  };
  const std::string module = "model.layers.0.mlp.up_proj";
  // A sign; a code bit; a verbatim byte; a missing tensor, group and member; a file.
  edit([&](auto& tensors) { tensors[module + ".sign_mantissa"].bytes[100] ^= '\x80'; });
  EXPECT_TRUE(damaged("SHA-256"));
  edit([&](auto& tensors) { tensors[module + ".encoded_exponent"].bytes[100] ^= '\x10'; });
  EXPECT_TRUE(damaged());
  edit([](auto& tensors) { tensors["model.layers.0.input_layernorm.weight"].bytes[3] ^= 1; });
  EXPECT_TRUE(damaged("SHA-256"));
  edit([](auto& tensors) { tensors.erase("model.layers.0.input_layernorm.weight"); });
  EXPECT_TRUE(damaged("does not hold it"));
  edit([&](auto& tensors) {
    tensors["model.layers.0.input_layernorm.weight"] = zeros("", Dtype::kBF16, {63});
  });
  EXPECT_TRUE(damaged("126 bytes in the artifact"));
  edit([&](auto& tensors) {
    for (const std::string_view name : kGroupTensors)
      tensors.erase(module + "." + std::string(name));
  });
  EXPECT_TRUE(damaged("does not hold it"));
  fresh();
  fs::remove(artifact() / "tokenizer.json");
  EXPECT_TRUE(damaged("lacks this file"));
  fresh();
  write_file(artifact() / "tokenizer.json", "{\"version\": \"1.1\"}\n");
  EXPECT_TRUE(damaged("SHA-256"));
  fresh();
  write_file(artifact() / "tokenizer.json", "{}");
  EXPECT_TRUE(damaged("2 bytes, not 19"));
  fresh();
  fs::resize_file(layer, fs::file_size(layer) - 1);
  EXPECT_TRUE(damaged());
  fresh();
  write_file(artifact() / kManifestName, read_file(artifact() / kManifestName) + " ");
  EXPECT_TRUE(damaged("seal"));
}

TEST_F(RestoreTest, HostileManifests) {
  write_sharded_checkpoint(source());
  write_file(source() / "extra.txt", "extra");
  compress_or_throw(source(), artifact());
  const std::string original = read_file(artifact() / kManifestName);
  const auto edited = [&](const std::function<void(Manifest&)>& edit, std::string_view text) {
    write_file(artifact() / kManifestName, original);
    edit_manifest(artifact(), edit);
    return damaged(text);
  };
  const std::string shard = "model-00001-of-00002.safetensors";
  EXPECT_TRUE(
      edited([](Manifest& m) { m.source_files.push_back(m.source_files.front()); }, "twice"));
  EXPECT_TRUE(edited([](Manifest& m) { m.source_files.front().path = ".git/config"; },
                     "no name of a source file"));
  EXPECT_TRUE(edited([](Manifest& m) { m.restore.erase("config.json"); }, "holds its bytes"));
  EXPECT_TRUE(edited([](Manifest& m) { m.restore["config.json"] = "{"; }, "no shard's header"));
  EXPECT_TRUE(edited([](Manifest& m) { m.restore["config.json"] += "{"; }, "no shard's header"));
  EXPECT_TRUE(edited([](Manifest& m) { m.restore["config.json"][0] = '['; }, "SHA-256"));
  EXPECT_TRUE(edited([&](Manifest& m) { m.restore[shard].pop_back(); }, "no shard's header"));
  EXPECT_TRUE(edited([&](Manifest& m) { m.restore[shard] = "short"; }, "no shard's header"));
  EXPECT_TRUE(edited(
      [](Manifest& m) {
        for (ManifestFile& file : m.source_files) file.size_bytes += 1;
      },
      ""));
  // More than any disk has: refused before a byte of it is reserved.
  constexpr uint64_t kHuge = uint64_t{1} << 50;
  const auto claim_size = [](Manifest& m, std::string_view path, uint64_t size_bytes) {
    for (ManifestFile& file : m.source_files) {
      if (file.path == path) file.size_bytes = size_bytes;
    }
  };
  EXPECT_TRUE(
      edited([&](Manifest& m) { claim_size(m, "extra.txt", kHuge); }, "5 bytes, not 11258"));
  EXPECT_TRUE(edited(
      [&](Manifest& m) {
        std::string json = R"({"model.layers.0.mlp.up_proj.weight":{"dtype":"BF16","shape":[)" +
                           std::to_string(kHuge / 2) + R"(],"data_offsets":[0,)" +
                           std::to_string(kHuge) + "]}}";
        std::string head(8, '\0');
        store_le64(reinterpret_cast<uint8_t*>(head.data()), json.size());
        m.restore[shard] = head + json;
        claim_size(m, shard, kHuge + head.size() + json.size());
      },
      "12288 bytes in the artifact, 11258"));
  EXPECT_TRUE(edited(
      [](Manifest& m) {
        for (ManifestFile& file : m.source_files) file.sha256.bytes[0] ^= 1;
      },
      ""));
}

TEST_F(RestoreTest, OutputsThatExist) {
  write_tiny_checkpoint(source());
  write_file(source() / "sub/a", "a");
  compress_or_throw(source(), artifact());
  RestoreOptions force;
  force.force = true;
  ASSERT_TRUE(succeeded(run_restore()));
  EXPECT_TRUE(failed_with(run_restore(), ErrorCode::already_exists, "--force"));
  // A directory of the same names is replaced, whatever they hold.
  write_file(output() / "config.json", "other");
  ASSERT_TRUE(succeeded(run_restore(force)));
  EXPECT_TRUE(tree_of(output()) == tree_of(source()));
  for (const std::string name : {"mine.txt", "sub/b", ".git/config"}) {
    write_file(output() / name, "precious");
    EXPECT_TRUE(failed_with(run_restore(force), ErrorCode::already_exists, "same files only"));
    EXPECT_EQ(read_file(output() / name), "precious");
    fs::remove(output() / name);
  }
  fs::create_symlink("elsewhere", output() / "link");
  EXPECT_TRUE(failed_with(run_restore(force), ErrorCode::already_exists, "link"));
  fs::remove_all(output());
  write_file(output(), "a file");
  EXPECT_TRUE(failed_with(run_restore(force), ErrorCode::already_exists));
  EXPECT_EQ(read_file(output()), "a file");
}

TEST_F(RestoreTest, WhatIsNoArtifact) {
  EXPECT_TRUE(failed_with(run_restore(), ErrorCode::not_found));
  write_tiny_checkpoint(artifact());
  EXPECT_TRUE(failed_with(run_restore(), ErrorCode::unsupported, "no DF11 artifact"));
  write_tiny_checkpoint(source());
  fs::remove_all(artifact());
  compress_or_throw(source(), artifact());
  fs::remove(artifact() / kManifestName);
  EXPECT_TRUE(failed_with(run_restore(), ErrorCode::invalid_argument, "--tensors-only"));
}

// Names, dtypes, shapes and bytes of all tensors below `directory`.
std::map<std::string, std::string> all_tensors(const fs::path& directory) {
  std::map<std::string, std::string> all;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().extension() != ".safetensors") continue;
    for (const auto& [name, tensor] : read_safetensors(file.path()))
      all[name] = std::string(dtype_name(tensor.dtype)) + shape_text(tensor.shape) + tensor.bytes;
  }
  return all;
}

TEST_F(RestoreTest, TensorsOnly) {
  std::vector<Tensor> tensors = tiny_tensors();
  const Tensor odd = weights("model.layers.0.mlp.odd.weight", {64, 96}, 9);
  tensors.push_back(odd);
  write_tiny_checkpoint(source(), tensors);
  write_file(source() / "sub/file", "x");
  const std::string config =
      "{\n  \"hidden_size\": 96,\n  \"intermediate_size\": 64,\n  \"model_type\": \"qwen3\"\n}\n";
  write_file(source() / "config.json", config);
  compress_or_throw(source(), artifact(), without_card());
  RestoreOptions options;
  options.tensors_only = options.verify = true;
  for (const bool has_manifest : {true, false}) {
    if (!has_manifest) fs::remove(artifact() / kManifestName);
    fs::remove_all(output());
    const Result<RestoreSummary> summary = run_restore(options);
    ASSERT_TRUE(succeeded(summary));
    // Of the two coded tensors, config.json tells up_proj's shape only.
    const std::vector<std::string> flat = {odd.name};
    EXPECT_EQ(summary->flat_tensors, has_manifest ? std::vector<std::string>{} : flat);
    auto expected = all_tensors(source());
    if (!has_manifest) expected[odd.name] = "BF16[6144]" + odd.bytes;
    EXPECT_TRUE(all_tensors(output()) == expected);
    auto tree = tree_of(output());
    tree.erase("model.safetensors");
    EXPECT_EQ(tree,
              (std::map<std::string, std::string>{{"config.json", config},
                                                  {"sub/", ""},
                                                  {"sub/file", "x"},
                                                  {"tokenizer.json", "{\"version\": \"1.0\"}\n"}}));
  }
}

TEST_F(RestoreTest, TensorsOnlyTakesRowsFromBiases) {
  write_file(source() / "config.json", "{}");
  write_safetensors(
      source() / "diffusion_pytorch_model.safetensors",
      {weights("blocks.0.to_q.weight", {48, 128}), weights("blocks.0.to_q.bias", {48}),
       weights("blocks.0.out.weight", {64, 96}), weights("blocks.0.out.bias", {5})});
  compress_or_throw(source(), artifact());
  fs::remove(artifact() / kManifestName);
  RestoreOptions options;
  options.tensors_only = true;
  const Result<RestoreSummary> summary = run_restore(options);
  ASSERT_TRUE(succeeded(summary));
  EXPECT_EQ(summary->flat_tensors, (std::vector<std::string>{"blocks.0.out.weight"}));
  const auto tensors = read_safetensors(output() / "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(tensors.at("blocks.0.to_q.weight").shape, (Shape{48, 128}));
  EXPECT_EQ(tensors.at("blocks.0.out.weight").shape, (Shape{64 * 96}));
}

TEST_F(RestoreTest, TensorsOnlyInShards) {
  write_sharded_checkpoint(source());
  compress_or_throw(source(), artifact());
  const Result<Artifact> opened = Artifact::open(artifact());
  ASSERT_TRUE(succeeded(opened));
  const auto paths = [&](uint64_t max_shard_bytes) {
    const Result<RestorePlan> plan = plan_tensors_only(*opened, max_shard_bytes);
    EXPECT_TRUE(succeeded(plan));
    std::map<std::string, size_t> n_tensors;
    for (const RestoredFile& file : plan->files) {
      if (file.path.ends_with(".safetensors")) n_tensors[file.path] = file.tensors.size();
      if (file.path != "model.safetensors.index.json") continue;
      const Result<ShardIndex> index = ShardIndex::parse(file.head);
      EXPECT_TRUE(succeeded(index));
      EXPECT_EQ(index->weight_map.size(), 4u);
      EXPECT_EQ(*json_uint(*json_find(*parse_json(file.head), "metadata"), "total_size"),
                4096u + 12288 + 128 + 128);
    }
    return n_tensors;
  };
  using Paths = std::map<std::string, size_t>;
  // By name: embedding 4096 bytes, layer norm 128, up_proj 12288, norm 128.
  EXPECT_EQ(paths(kMaxShardBytes), (Paths{{"model.safetensors", 4}}));
  EXPECT_EQ(paths(4224), (Paths{{"model-00001-of-00003.safetensors", 2},
                                {"model-00002-of-00003.safetensors", 1},
                                {"model-00003-of-00003.safetensors", 1}}));
  EXPECT_EQ(paths(4223).size(), 4u);
  EXPECT_EQ(paths(1).size(), 4u);
}

TEST_F(RestoreTest, CancelledRunLeavesNothing) {
  write_tiny_checkpoint(source());
  compress_or_throw(source(), artifact());
  CancelToken token;
  token.cancel();
  const Executor executor(2, &token);
  Progress progress;
  EXPECT_TRUE(failed_with(
      restore(artifact(), directory_ / "new/output", {}, *make_cpu_decoder(), executor, progress),
      ErrorCode::cancelled));
  EXPECT_FALSE(fs::exists(directory_ / "new"));
}

}  // namespace
}  // namespace df11::test
