// Each rule of the loader lint: an artifact that breaks it, and that valid ones break none.
#include "format/loader_lint.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "format/df11_layout.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using Found = std::vector<std::string>;

class LoaderLintTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_checkpoint(source());
    compress_or_throw(source(), artifact());
  }

  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }
  fs::path layer() const { return artifact() / "model_layers_0.safetensors"; }

  // "severity rule module file" of each finding.
  Found lint() const {
    const Result<Artifact> opened = Artifact::open(artifact());
    EXPECT_TRUE(succeeded(opened));
    if (!opened) return {};
    const Result<std::vector<LintFinding>> findings = lint_for_upstream(*opened);
    EXPECT_TRUE(succeeded(findings));
    return findings ? described(*findings) : Found{};
  }
  static Found described(const std::vector<LintFinding>& findings) {
    Found found;
    for (const LintFinding& f : findings) {
      EXPECT_NE(f.message, "");
      found.push_back(std::string(lint_severity_name(f.severity)) + " " + f.rule + " " + f.module +
                      " " + f.file);
    }
    return found;
  }
  // Edits a shard or config.json; without a manifest, whose seal and hashes are another matter.
  void edit(const fs::path& shard,
            const std::function<void(std::map<std::string, Tensor>&)>& change) const {
    fs::remove(artifact() / kManifestName);
    edit_safetensors(shard, change);
  }
  void edit_config(const std::function<void(Json&)>& change) const {
    fs::remove(artifact() / kManifestName);
    Json config = Json::parse(read_file(artifact() / "config.json"));
    change(config);
    write_file(artifact() / "config.json", config.dump());
  }
  // Compresses `tensors` with this config.json instead of the tiny checkpoint.
  CompressSummary compress_instead(const std::vector<Tensor>& tensors, std::string_view config,
                                   const CompressOptions& options = {}) const {
    fs::remove_all(source());
    fs::remove_all(artifact());
    write_tiny_checkpoint(source(), tensors);
    write_file(source() / "config.json", config);
    CompressOptions dry = options;
    dry.dry_run = true;
    Result<CompressSummary> planned = run_compress(source(), {}, dry);
    EXPECT_TRUE(succeeded(planned));
    planned_ = planned ? described(planned->lint) : Found{};
    Result<CompressSummary> summary = run_compress(source(), artifact(), options);
    EXPECT_TRUE(succeeded(summary));
    EXPECT_EQ(described(summary->lint), lint());
    return std::move(*summary);
  }

  const std::string norm_ = "model.layers.0.input_layernorm.weight";
  const std::string weight_ = "model.layers.0.mlp.up_proj.weight";
  const std::string module_ = "model.layers.0.mlp.up_proj";
  const std::string layer_name_ = "model_layers_0.safetensors";
  mutable Found planned_;  // what the dry run of compress_instead found
  TemporaryDirectory directory_;
};

TEST_F(LoaderLintTest, NothingToSay) {
  EXPECT_EQ(lint(), Found{});
  fs::remove(artifact() / kManifestName);
  EXPECT_EQ(lint(), Found{});
}

TEST_F(LoaderLintTest, PublishedPatternsAreFine) {
  edit_config([](Json& config) {
    config["dfloat11_config"]["pattern_dict"] = {{"model.layers.\\d+.mlp.up_proj", Json::array()}};
  });
  EXPECT_EQ(lint(), Found{});
}

TEST_F(LoaderLintTest, BlockOverSharedMemory) {
  // One exponent: codes of one bit, 32768 weights a block.
  const std::vector<uint16_t> words(200'000, 0x3c00);
  const CompressSummary summary =
      compress_instead({bf16_tensor(weight_, {400, 500}, words)}, R"({"model_type": "qwen3"})");
  EXPECT_EQ(described(summary.lint),
            (Found{"error block_over_shared_memory " + module_ + " " + layer_name_}));
  EXPECT_EQ(planned_, Found{});  // not known before the weights are coded
  EXPECT_NE(summary.lint[0].message.find("32768"), std::string::npos) << summary.lint[0].message;
}

TEST_F(LoaderLintTest, BlockAtTheLimitOfSharedMemory) {
  for (const uint32_t first : {kMaxUpstreamBlockElements, kMaxUpstreamBlockElements + 1}) {
    compress_instead({weights(weight_, {128, 500})}, "{}");
    edit(layer(), [&](auto& tensors) {  // the first block has `first` weights, the others share
      std::string& bytes = tensors.at(module_ + ".output_positions").bytes;
      std::vector<uint32_t> positions(bytes.size() / 4, 0);
      ASSERT_GE(positions.size(), 5u);
      const auto n_others = static_cast<uint32_t>(positions.size() - 2);
      for (uint32_t i = 0; i <= n_others; ++i)
        positions[i + 1] = first + (64'000 - first) * i / n_others;
      std::memcpy(bytes.data(), positions.data(), bytes.size());
    });
    const Found over = {"error block_over_shared_memory " + module_ + " " + layer_name_};
    EXPECT_EQ(lint(), first > kMaxUpstreamBlockElements ? over : Found{}) << first;
  }
}

TEST_F(LoaderLintTest, TiedWeightCoded) {
  CompressOptions include;
  include.plan.include = {"*embed_tokens*"};
  const std::vector<Tensor> tensors = {weights("model.embed_tokens.weight", {64, 96})};
  const std::string finding = "tied_weight_coded model.embed_tokens model_embed_tokens.safetensors";
  compress_instead(tensors, R"({"tie_word_embeddings": true})", include);
  EXPECT_EQ(lint(), (Found{"error " + finding}));
  EXPECT_EQ(planned_, lint());
  compress_instead(tensors, R"({"text_config": {"tie_word_embeddings": true}})", include);
  EXPECT_EQ(lint(), (Found{"error " + finding}));
  // No head in the artifact, and config.json leaves it open.
  compress_instead(tensors, "{}", include);
  EXPECT_EQ(lint(), (Found{"warning " + finding}));
  EXPECT_EQ(planned_, lint());
  compress_instead(tensors, R"({"architectures": ["BertModel"]})", include);
  EXPECT_EQ(lint(), Found{});
  compress_instead(
      {weights("model.embed_tokens.weight", {64, 96}), weights("lm_head.weight", {64, 96}, 2)},
      R"({"tie_word_embeddings": false})");
  EXPECT_EQ(lint(), Found{});
}

TEST_F(LoaderLintTest, AnOutputInsideABlockIsNoHead) {
  compress_instead({weights("model.layers.0.attn.output.weight", {64, 96})},
                   R"({"tie_word_embeddings": true})");
  EXPECT_EQ(lint(), Found{});
}

TEST_F(LoaderLintTest, MemberNotLinear) {
  compress_instead({weights("h.0.attn.c_attn.weight", {64, 96})}, R"({"model_type": "gpt2"})",
                   {{{"h.*"}, {}}, {}, false, false});
  EXPECT_EQ(lint(), (Found{"error member_not_linear h.0.attn.c_attn h_0.safetensors"}));
  EXPECT_EQ(planned_, lint());
  compress_instead({weights("model.layers.0.mlp.gate.weight", {64, 96})}, "{}",
                   {{{"*gate*"}, {}}, {}, false, false});
  EXPECT_EQ(lint(), (Found{"warning member_not_linear model.layers.0.mlp.gate " + layer_name_}));
}

TEST_F(LoaderLintTest, MemberOfAnotherRank) {
  edit_manifest(artifact(), [&](Manifest& manifest) {
    for (ManifestTensor& tensor : manifest.tensors) {
      if (tensor.name == weight_) tensor.shape = {64, 8, 12};
    }
  });
  EXPECT_EQ(lint(), (Found{"error member_not_linear " + module_ + " " + layer_name_}));
}

TEST_F(LoaderLintTest, StrayShard) {
  write_safetensors(artifact() / "stray.safetensors", {zeros("x", Dtype::kU8, {1})});
  EXPECT_EQ(lint(), (Found{"error stray_shard  stray.safetensors"}));
  // Upstream's own artifacts have no index: then every shard counts.
  fs::remove(artifact() / "model.safetensors.index.json");
  EXPECT_EQ(lint(), Found{});
  fs::create_directory(artifact() / "directory.safetensors");
  EXPECT_EQ(lint(), (Found{"error stray_shard  directory.safetensors"}));
}

TEST_F(LoaderLintTest, SeveralPatterns) {
  edit_config([](Json& config) {
    config["dfloat11_config"]["pattern_dict"] = {{"model.layers.0.mlp.up_proj", Json::array()},
                                                 {"model.layers.\\d+.mlp.up_proj", Json::array()}};
  });
  EXPECT_EQ(lint(), (Found{"error several_patterns " + module_ + " " + layer_name_}));
}

TEST_F(LoaderLintTest, PatternUnused) {
  edit_config(
      [](Json& config) { config["dfloat11_config"]["pattern_dict"]["lm_head"] = Json::array(); });
  EXPECT_EQ(lint(), (Found{"warning pattern_unused  config.json"}));
}

TEST_F(LoaderLintTest, PatternWithoutGroup) {
  edit_config([](Json& config) {
    config["dfloat11_config"]["pattern_dict"]["model.norm"] = Json::array();
  });
  EXPECT_EQ(lint(), (Found{"warning pattern_without_group model.norm model.safetensors"}));
}

TEST_F(LoaderLintTest, WeightMissing) {
  edit_config([](Json& config) {
    config["dfloat11_config"]["pattern_dict"]["model.layers.0"] = {"input_layernorm", "mlp.gone"};
  });
  EXPECT_EQ(lint(), (Found{"error weight_missing model.layers.0 " + layer_name_}));
  // A container that a pattern for a Linear happens to match promises nothing.
  edit_config([](Json& config) {
    config["dfloat11_config"]["pattern_dict"].erase("model.layers.0");
    config["dfloat11_config"]["pattern_dict"]["model.layers"] = Json::array();
  });
  EXPECT_EQ(lint(), Found{});
  // A module with a bias and no weight.
  edit_config([](Json& config) {
    config["dfloat11_config"]["pattern_dict"].erase("model.layers");
    config["dfloat11_config"]["pattern_dict"]["model.odd"] = Json::array();
  });
  edit(layer(), [](auto& tensors) {
    tensors["model.odd.bias"] = zeros("model.odd.bias", Dtype::kBF16, {4});
  });
  EXPECT_EQ(lint(), (Found{"error weight_missing model.odd " + layer_name_}));
}

TEST_F(LoaderLintTest, MemberAlsoVerbatim) {
  edit(layer(), [&](auto& tensors) { tensors[weight_] = weights(weight_, {64, 96}, 2); });
  EXPECT_EQ(lint(), (Found{"warning member_also_verbatim " + weight_ + " " + layer_name_}));
}

TEST_F(LoaderLintTest, GroupMalformed) {
  edit(layer(), [&](auto& tensors) {  // a code for exponent 250
    Tensor& luts = tensors.at(module_ + ".luts");
    luts.bytes[luts.bytes.size() - 256 + 250] = 3;
  });
  EXPECT_EQ(lint(), (Found{"error group_malformed " + module_ + " " + layer_name_}));
  edit(layer(), [&](auto& tensors) {  // 19 rows
    Tensor& luts = tensors.at(module_ + ".luts");
    luts.shape = {19, 256};
    luts.bytes.resize(19 * 256);
  });
  EXPECT_EQ(lint(), (Found{"error group_malformed " + module_ + " " + layer_name_}));
}

TEST_F(LoaderLintTest, TableCanSpin) {
  edit(layer(), [&](auto& tensors) {  // a slot that holds an exponent without a code
    tensors.at(module_ + ".luts").bytes[255] = '\x01';
  });
  EXPECT_EQ(lint(), (Found{"warning table_can_spin " + module_ + " " + layer_name_}));
}

TEST_F(LoaderLintTest, LastPositionMissing) {
  edit(layer(), [&](auto& tensors) {
    Tensor& positions = tensors.at(module_ + ".output_positions");
    // One block before the last, which then holds no weights: [0, N] for two blocks.
    Tensor& code = tensors.at(module_ + ".encoded_exponent");
    code.bytes.resize(kBlockBytes + 1);
    code.shape = {code.bytes.size()};
    Tensor& gaps = tensors.at(module_ + ".gaps");
    gaps.bytes.resize(2 * kGapBytesPerBlock);
    gaps.shape = {gaps.bytes.size()};
    ASSERT_EQ(positions.bytes.size(), 8u);
  });
  EXPECT_EQ(lint(), (Found{"warning last_position_missing " + module_ + " " + layer_name_}));
}

TEST_F(LoaderLintTest, VerbatimConvertedIsSaidOnceAFile) {
  const CompressSummary summary =
      compress_instead({weights(weight_, {64, 96}), zeros("model.a", Dtype::kF32, {2}),
                        zeros("model.b", Dtype::kF32, {2}), zeros("model.c", Dtype::kI64, {2})},
                       "{}");
  EXPECT_EQ(described(summary.lint),
            (Found{"warning verbatim_converted model.a model.safetensors"}));
  EXPECT_EQ(summary.lint[0].message.substr(0, 9), "2 tensors");
  EXPECT_FALSE(has_errors(summary.lint));
}

TEST_F(LoaderLintTest, ReservedName) {
  edit(layer(), [](auto& tensors) {
    tensors["model.x.output_positions"] = zeros("model.x.output_positions", Dtype::kF16, {4});
    tensors["model.x.output_positions"].dtype = Dtype::kU8;
    tensors["model.x.output_positions"].shape = {8};
  });
  EXPECT_EQ(lint(), (Found{"warning reserved_name model.x.output_positions " + layer_name_}));
  edit(layer(), [](auto& tensors) {
    tensors["model.x.output_positions"] = zeros("model.x.output_positions", Dtype::kU8, {7});
  });
  EXPECT_EQ(lint(), (Found{"error reserved_name model.x.output_positions " + layer_name_}));
}

TEST_F(LoaderLintTest, JsonHasEveryField) {
  const Json list = lint_to_json({{"r", LintSeverity::kWarning, "m", "f", "text"}});
  EXPECT_EQ(list.dump(),
            R"([{"rule":"r","severity":"warning","module":"m","file":"f","message":"text"}])");
}

}  // namespace
}  // namespace df11::test
