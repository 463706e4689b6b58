// Which directories Checkpoint::open takes, and what it says of those it does not.
#include "format/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using Omit = std::vector<std::string>;

std::vector<std::string> paths_of(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> paths;
  for (const DirectoryEntry& entry : entries) paths.push_back(entry.relative_path);
  return paths;
}

const std::string kFirst = "model-00001-of-00002.safetensors";
const std::string kSecond = "model-00002-of-00002.safetensors";
const std::string kIndex = "model.safetensors.index.json";

class CheckpointTest : public ::testing::Test {
 protected:
  fs::path at(const std::string& path) const { return directory_ / path; }
  fs::path source() const { return directory_ / "source"; }
  Result<Checkpoint> open(const Omit& omit = {}) const { return Checkpoint::open(source(), omit); }
  // The index of write_sharded_checkpoint with `edit` applied to its weight_map.
  void edit_index(const std::function<void(std::map<std::string, std::string>&)>& edit) const {
    const Json index = *parse_json(read_file(source() / kIndex));
    auto weight_map = index["weight_map"].get<std::map<std::string, std::string>>();
    edit(weight_map);
    write_index(source() / kIndex, weight_map);
  }

  TemporaryDirectory directory_;
};

TEST_F(CheckpointTest, SingleFile) {
  write_tiny_checkpoint(source());
  const Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(checkpoint->index_name(), "");
  EXPECT_EQ(checkpoint->shards().tensors().size(), 4u);
  EXPECT_EQ(checkpoint->config()["model_type"], "qwen3");
  EXPECT_EQ(checkpoint->config_text(), read_file(source() / "config.json"));
  EXPECT_EQ(paths_of(checkpoint->other_files()), (Omit{"tokenizer.json"}));
}

TEST_F(CheckpointTest, ShardedWithIndex) {
  write_sharded_checkpoint(source());
  const Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(checkpoint->index_name(), kIndex);
  ASSERT_EQ(checkpoint->shards().shards().size(), 2u);
  EXPECT_EQ(checkpoint->shards().shards()[0].name, kFirst);
  EXPECT_EQ(paths_of(checkpoint->other_files()), (Omit{"tokenizer.json"}));
}

TEST_F(CheckpointTest, SingleFileThatAnIndexNames) {
  write_safetensors(source() / "model.safetensors", {weights("a.weight", {2, 2})});
  write_index(source() / kIndex, {{"a.weight", "model.safetensors"}});
  EXPECT_TRUE(succeeded(open()));
}

TEST_F(CheckpointTest, DiffusionModelNames) {
  const std::string first = "diffusion_pytorch_model-00001-of-00002.safetensors";
  const std::string second = "diffusion_pytorch_model-00002-of-00002.safetensors";
  write_safetensors(source() / first, {weights("transformer_blocks.0.attn.to_q.weight", {2, 2})});
  write_safetensors(source() / second, {weights("proj_out.weight", {2, 2})});
  write_index(source() / "diffusion_pytorch_model.safetensors.index.json",
              {{"transformer_blocks.0.attn.to_q.weight", first}, {"proj_out.weight", second}});
  const Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(checkpoint->index_name(), "diffusion_pytorch_model.safetensors.index.json");
  EXPECT_EQ(checkpoint->config_text(), "");
  EXPECT_TRUE(checkpoint->config().is_object());
}

TEST_F(CheckpointTest, HubCacheOfSymbolicLinks) {
  const fs::path blobs = at("blobs"), snapshot = at("snapshots/0123abcd");
  write_sharded_checkpoint(blobs);
  fs::create_directories(snapshot);
  for (const auto& entry : fs::directory_iterator(blobs)) {
    const std::string name = entry.path().filename().string();
    fs::rename(blobs / name, blobs / ("blob-of-" + name));
    fs::create_symlink("../../blobs/blob-of-" + name, snapshot / name);
  }
  fs::create_directory_symlink(snapshot, at("main"));
  for (const fs::path& path : {snapshot, at("main"), at("snapshots/../main/")}) {
    const Result<Checkpoint> checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(succeeded(checkpoint)) << path;
    EXPECT_EQ(checkpoint->shards().tensors().size(), 4u);
    EXPECT_EQ(paths_of(checkpoint->other_files()), (Omit{"tokenizer.json"}));
  }
}

TEST_F(CheckpointTest, DanglingSymbolicLink) {
  write_tiny_checkpoint(source());
  fs::create_symlink("../blobs/gone", source() / "vocab.json");
  EXPECT_TRUE(failed_with(open(), ErrorCode::not_found, "vocab.json"));
}

TEST_F(CheckpointTest, SymbolicLinkToDirectory) {
  write_tiny_checkpoint(source());
  write_file(at("elsewhere/file.txt"), "x");
  fs::create_directory_symlink(at("elsewhere"), source() / "assets");
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "assets"));
}

TEST_F(CheckpointTest, FifoIsRefusedWithoutHanging) {
  write_tiny_checkpoint(source());
  ASSERT_EQ(::mkfifo((source() / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "pipe"));
}

TEST_F(CheckpointTest, FilesBelowTheTopLevelAreKeptWhateverTheirNames) {
  write_tiny_checkpoint(source());
  write_file(source() / "text_encoder/model.safetensors", "not even safetensors");
  write_file(source() / "text_encoder/config.json", "not JSON");
  write_file(source() / "text_encoder/model.safetensors.index.json", "");
  write_file(source() / "text_encoder/.git/config", "kept: only the top level is housekeeping");
  const Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(paths_of(checkpoint->other_files()),
            (Omit{"text_encoder/.git/config", "text_encoder/config.json",
                  "text_encoder/model.safetensors", "text_encoder/model.safetensors.index.json",
                  "tokenizer.json"}));
}

TEST_F(CheckpointTest, HousekeepingIsIgnored) {
  write_tiny_checkpoint(source());
  write_file(source() / ".git/objects/aa", "x");
  write_file(source() / ".gitattributes", "*.safetensors filter=lfs\n");
  write_file(source() / ".cache/huggingface/download/model.safetensors.lock", "");
  write_file(source() / ".hidden", "kept");
  const Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(paths_of(checkpoint->other_files()), (Omit{".hidden", "tokenizer.json"}));
}

TEST_F(CheckpointTest, StraySafetensorsBesideTheIndex) {
  write_sharded_checkpoint(source());
  write_safetensors(source() / "adapter.safetensors", {weights("a.weight", {2, 2})});
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, "adapter.safetensors"));
  const Result<Checkpoint> checkpoint = open({"adapter.*"});
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(checkpoint->omitted_files(), (Omit{"adapter.safetensors"}));
}

TEST_F(CheckpointTest, TwoFilesWithoutIndex) {
  write_tiny_checkpoint(source());
  write_safetensors(source() / "consolidated.safetensors", {weights("a.weight", {2, 2})});
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, "--omit"));
  EXPECT_TRUE(succeeded(open({"consolidated.safetensors"})));
}

TEST_F(CheckpointTest, TwoIndexes) {
  write_sharded_checkpoint(source());
  write_index(source() / "model.fp16.safetensors.index.json", {});
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "model.fp16.safetensors.index.json"));
  EXPECT_TRUE(succeeded(open({"*.fp16.*"})));
}

TEST_F(CheckpointTest, OmitMatchesAcrossDirectoriesAndMayLeaveNothing) {
  write_tiny_checkpoint(source());
  write_file(source() / "onnx/model.onnx", "x");
  write_file(source() / "original/deep/model.pth", "x");
  const Result<Checkpoint> checkpoint = open({"onnx/*", "original/*"});
  ASSERT_TRUE(succeeded(checkpoint));
  EXPECT_EQ(paths_of(checkpoint->other_files()), (Omit{"tokenizer.json"}));
  EXPECT_EQ(checkpoint->omitted_files(), (Omit{"onnx/model.onnx", "original/deep/model.pth"}));
  EXPECT_TRUE(failed_with(open({"*"}), ErrorCode::unsupported, "no .safetensors"));
}

TEST_F(CheckpointTest, NothingThatIsACheckpoint) {
  EXPECT_TRUE(failed_with(open(), ErrorCode::not_found, "no such directory"));
  fs::create_directories(source());
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "no .safetensors"));
  write_file(source() / "pytorch_model.bin", "x");
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "no .safetensors"));
  EXPECT_TRUE(failed_with(Checkpoint::open(source() / "pytorch_model.bin"), ErrorCode::not_found));
  EXPECT_TRUE(failed_with(Checkpoint::open(""), ErrorCode::not_found));
}

TEST_F(CheckpointTest, IndexNamesAbsentShard) {
  write_sharded_checkpoint(source());
  fs::remove(source() / kSecond);
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, kSecond));
  // Omitting a shard is no way to compress half a model.
  write_sharded_checkpoint(source());
  EXPECT_TRUE(failed_with(open({kSecond}), ErrorCode::malformed_index, kSecond));
}

TEST_F(CheckpointTest, IndexLeavesTheDirectory) {
  write_tiny_checkpoint(at("outside"));
  for (const std::string& name :
       {std::string("../outside/model.safetensors"), at("outside/model.safetensors").string(),
        std::string(".."), std::string("sub/model.safetensors"), std::string("./model.safetensors"),
        std::string(""), std::string("..\\outside\\model.safetensors"),
        std::string("model.safetensors\0", 18)}) {
    write_index(source() / kIndex, {{"a.weight", name}});
    EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, kIndex)) << name;
  }
}

TEST_F(CheckpointTest, IndexIsNoIndex) {
  write_tiny_checkpoint(source());
  for (const char* text :
       {"{}", "[]", "null", R"({"weight_map": []})", R"({"weight_map": {"a.weight": 1}})",
        R"({"weight_map": {"a.weight": null}})", R"({"weight_map": {"a": "pytorch_model.bin"}})"}) {
    write_file(source() / kIndex, text);
    EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, kIndex)) << text;
  }
  for (const char* text :
       {"", "{", R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})"}) {
    write_file(source() / kIndex, text);
    EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_json, kIndex)) << text;
  }
}

TEST_F(CheckpointTest, IndexWithoutWeights) {
  write_index(source() / kIndex, {});
  EXPECT_FALSE(open()) << "a checkpoint without weights";
}

TEST_F(CheckpointTest, IndexAndShardsDisagree) {
  const std::string embed = "model.embed_tokens.weight";
  write_sharded_checkpoint(source());
  edit_index([&](auto& map) { map["model.ghost.weight"] = kFirst; });
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, "model.ghost.weight"));

  write_sharded_checkpoint(source());
  edit_index([&](auto& map) { map.erase(embed); });
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, embed));

  write_sharded_checkpoint(source());
  edit_index([&](auto& map) { map[embed] = kSecond; });
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_index, embed));

  write_sharded_checkpoint(source());  // the same tensor in both shards
  edit_safetensors(source() / kSecond, [&](auto& tensors) {
    tensors[embed] = weights(embed, {2, 2});
  });
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_safetensors, embed));
}

TEST_F(CheckpointTest, DamagedShard) {
  write_tiny_checkpoint(source());
  const std::string bytes = read_file(source() / "model.safetensors");
  write_file(source() / "model.safetensors", bytes.substr(0, bytes.size() - 1));
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_safetensors, "model.safetensors"));
  write_file(source() / "model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_safetensors, "model.safetensors"));
}

// Each header is within its limit.
TEST_F(CheckpointTest, HeadersThatAreTooMuchTogether) {
  const std::string text = "{}" + std::string(90'000'000, ' ');
  const uint64_t n_bytes = text.size();
  const std::string shard = std::string(reinterpret_cast<const char*>(&n_bytes), 8) + text;
  std::map<std::string, std::string> index;
  for (const char* name : {"a", "b", "c"}) {
    write_file(source() / (std::string(name) + ".safetensors"), shard);
    index[name] = std::string(name) + ".safetensors";
  }
  write_index(source() / "model.safetensors.index.json", index);
  EXPECT_TRUE(failed_with(Checkpoint::open(source()), ErrorCode::limit_exceeded, "all shards"));
}

TEST_F(CheckpointTest, ConfigIsNoObject) {
  write_tiny_checkpoint(source());
  for (const char* text : {"[]", "null", "\"text\"", "1"}) {
    write_file(source() / "config.json", text);
    EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_config)) << text;
  }
  for (const char* text : {"{", "{\"a\": 1,}", "{\"a\": 1, \"a\": 2}", "{\"a\": NaN}"}) {
    write_file(source() / "config.json", text);
    EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_json, "config.json")) << text;
  }
}

TEST_F(CheckpointTest, EmptyConfigIsNoMissingConfig) {
  write_tiny_checkpoint(source());
  write_file(source() / "config.json", "");
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_json, "config.json"));
}

// nlohmann's parser ends at a NUL; what follows would be taken for the object by
// splice_df11_config.
TEST_F(CheckpointTest, ConfigWithTextAfterNul) {
  write_tiny_checkpoint(source());
  write_file(source() / "config.json", std::string("{\"a\": 1}\0{}", 11));
  EXPECT_TRUE(failed_with(open(), ErrorCode::malformed_json, "config.json"));
}

TEST_F(CheckpointTest, AlreadyDf11) {
  write_tiny_checkpoint(source());
  compress_or_throw(source(), at("artifact"));
  // compress gives sharded output; its index is right, so only the content tells.
  EXPECT_TRUE(failed_with(Checkpoint::open(at("artifact")), ErrorCode::unsupported,
                          "DF11 artifact already"));
  write_file(at("artifact/config.json"), "{}");
  EXPECT_TRUE(failed_with(Checkpoint::open(at("artifact")), ErrorCode::unsupported,
                          "DF11 artifact already"));
  write_file(source() / "config.json", "{\"dfloat11_config\": {}}");
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "DF11 artifact already"));
}

TEST_F(CheckpointTest, FileNameThatIsNotUtf8) {
  write_tiny_checkpoint(source());
  write_file(source() / "caf\xe9.txt", "x");
  EXPECT_TRUE(failed_with(open(), ErrorCode::unsupported, "UTF-8"));
}

}  // namespace
}  // namespace df11::test
