// Which tensors form groups, why the others stay, and where each goes. The plan reads no weights,
// so tensors here are as small as their ranks allow.
#include "compressor/plan.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using Names = std::vector<std::string>;

// What became of each tensor: "group" and the module, or the reason; and the file.
struct Fate {
  std::string module, reason, file;
};
using Fates = std::map<std::string, Fate>;

class PlanTest : public ::testing::Test {
 protected:
  Result<Fates> plan(const std::vector<Tensor>& tensors, const std::string& config = "{}",
                     const PlanOptions& options = {}) {
    const fs::path source = directory_ / ("source" + std::to_string(n_plans_++));
    write_safetensors(source / "model.safetensors", tensors);
    write_file(source / "config.json", config);
    DF11_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(source));
    DF11_ASSIGN(const Plan made, make_plan(checkpoint, options));
    Fates fates;
    for (const PlannedShard& shard : made.shards) {
      for (const PlannedGroup& group : shard.groups) {
        for (const TensorLocation* member : group.members) {
          EXPECT_TRUE(
              fates.emplace(member->info.name, Fate{group.module, "", shard.file_name}).second);
        }
      }
      for (const VerbatimTensor& tensor : shard.verbatim) {
        EXPECT_TRUE(
            fates.emplace(tensor.tensor->info.name, Fate{"", tensor.reason, shard.file_name})
                .second);
      }
    }
    EXPECT_EQ(fates.size(), tensors.size()) << "every tensor goes somewhere, once";
    return fates;
  }

  static std::vector<Tensor> bf16(const std::vector<std::pair<std::string, Shape>>& tensors) {
    std::vector<Tensor> list;
    for (const auto& [name, shape] : tensors) list.push_back(zeros(name, Dtype::kBF16, shape));
    return list;
  }
  static Names grouped(const Fates& fates) {
    Names names;
    for (const auto& [name, fate] : fates) {
      if (fate.reason.empty()) names.push_back(name);
    }
    return names;
  }

  TemporaryDirectory directory_;
  int n_plans_ = 0;
};

const std::vector<std::pair<std::string, Shape>> kQwen3 = {
    {"model.embed_tokens.weight", {4, 2}},
    {"model.layers.0.self_attn.q_proj.weight", {2, 2}},
    {"model.layers.0.self_attn.q_norm.weight", {2}},
    {"model.layers.0.mlp.gate_proj.weight", {4, 2}},
    {"model.layers.0.input_layernorm.weight", {2}},
    {"model.layers.10.mlp.down_proj.weight", {2, 4}},
    {"model.norm.weight", {2}},
};

TEST_F(PlanTest, Qwen3) {
  auto tensors = kQwen3;
  tensors.push_back({"lm_head.weight", {4, 2}});
  const Result<Fates> fates = plan(bf16(tensors), R"({"tie_word_embeddings": false})");
  ASSERT_TRUE(succeeded(fates));
  EXPECT_EQ(
      grouped(*fates),
      (Names{"lm_head.weight", "model.embed_tokens.weight", "model.layers.0.mlp.gate_proj.weight",
             "model.layers.0.self_attn.q_proj.weight", "model.layers.10.mlp.down_proj.weight"}));
  EXPECT_EQ(fates->at("lm_head.weight").module, "lm_head");
  EXPECT_EQ(fates->at("lm_head.weight").file, "lm_head.safetensors");
  EXPECT_EQ(fates->at("model.embed_tokens.weight").file, "model_embed_tokens.safetensors");
  EXPECT_EQ(fates->at("model.layers.0.mlp.gate_proj.weight").file, "model_layers_0.safetensors");
  EXPECT_EQ(fates->at("model.layers.10.mlp.down_proj.weight").file, "model_layers_10.safetensors");
  EXPECT_EQ(fates->at("model.layers.0.input_layernorm.weight").file, "model_layers_0.safetensors");
  EXPECT_EQ(fates->at("model.norm.weight").file, "model.safetensors");
  EXPECT_EQ(fates->at("model.norm.weight").reason, "rank 1, not a matrix");
}

TEST_F(PlanTest, TiedByConfigOrByAbsence) {
  auto tensors = kQwen3;
  const std::string tied = "embedding and output head are tied";
  const Result<Fates> no_head = plan(bf16(tensors), R"({"tie_word_embeddings": false})");
  ASSERT_TRUE(succeeded(no_head));
  EXPECT_EQ(no_head->at("model.embed_tokens.weight").reason, tied);
  EXPECT_EQ(no_head->at("model.embed_tokens.weight").file, "model.safetensors");
  EXPECT_EQ(no_head->at("model.layers.0.mlp.gate_proj.weight").reason, "");

  tensors.push_back({"lm_head.weight", {4, 2}});
  for (const char* config :
       {R"({"tie_word_embeddings": true})", R"({"text_config": {"tie_word_embeddings": true}})"}) {
    const Result<Fates> fates = plan(bf16(tensors), config);
    ASSERT_TRUE(succeeded(fates));
    EXPECT_EQ(fates->at("model.embed_tokens.weight").reason, tied) << config;
    EXPECT_EQ(fates->at("lm_head.weight").reason, tied) << config;
  }
  for (const char* config : {R"({"model_type": "gemma2"})", "{}"}) {
    const Result<Fates> silent = plan(bf16(tensors), config);
    ASSERT_TRUE(succeeded(silent));
    EXPECT_EQ(silent->at("lm_head.weight").reason, config == std::string("{}") ? "" : tied)
        << "Gemma 2 ties them unless told otherwise";
  }
  const Result<Fates> outer_wins =
      plan(bf16(tensors),
           R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})");
  ASSERT_TRUE(succeeded(outer_wins));
  EXPECT_EQ(outer_wins->at("lm_head.weight").reason, "");
}

TEST_F(PlanTest, MixtureOfExperts) {
  const Result<Fates> fates = plan(bf16({{"lm_head.weight", {4, 2}},
                                         {"model.layers.0.mlp.gate.weight", {8, 2}},
                                         {"model.layers.0.mlp.shared_expert_gate.weight", {1, 2}},
                                         {"model.layers.0.block_sparse_moe.router.weight", {8, 2}},
                                         {"model.layers.0.mlp.experts.0.gate_proj.weight", {4, 2}},
                                         {"model.layers.0.mlp.experts.7.gate_proj.weight", {4, 2}},
                                         {"model.layers.0.mlp.experts.gate_up_proj", {8, 2, 4}}}));
  ASSERT_TRUE(succeeded(fates));
  EXPECT_EQ(grouped(*fates),
            (Names{"lm_head.weight", "model.layers.0.mlp.experts.0.gate_proj.weight",
                   "model.layers.0.mlp.experts.7.gate_proj.weight"}));
  EXPECT_EQ(fates->at("model.layers.0.mlp.experts.gate_up_proj").reason, "not a module's .weight");
  // The outermost numbered component is the block: experts share their layer's shard.
  for (const auto& [name, fate] : *fates) {
    if (name == "lm_head.weight") continue;
    EXPECT_EQ(fate.file, "model_layers_0.safetensors") << name;
  }
}

// The module's weight is read, but the module never called.
TEST_F(PlanTest, OutputProjectionOfMultiheadAttention) {
  const Result<Fates> fates = plan(bf16({{"layers.0.attn.in_proj_weight", {6, 2}},
                                         {"layers.0.attn.out_proj.weight", {2, 2}},
                                         {"layers.0.other.out_proj.weight", {2, 2}}}));
  ASSERT_TRUE(succeeded(fates));
  EXPECT_EQ(grouped(*fates), Names{"layers.0.other.out_proj.weight"});
  EXPECT_EQ(fates->at("layers.0.attn.out_proj.weight").reason,
            "inside torch.nn.MultiheadAttention, which does not call it as a module");
}

// A list has no forward(): a group on it would never be decoded.
TEST_F(PlanTest, TheInnermostOfListsInListsIsTheBlock) {
  const Result<Fates> fates = plan(bf16({{"adapters.0.1.up.weight", {2, 2}}}));
  ASSERT_TRUE(succeeded(fates));
  EXPECT_EQ(fates->at("adapters.0.1.up.weight").file, "adapters_0_1.safetensors");
}

TEST_F(PlanTest, OtherFamilies) {
  const Result<Fates> gpt = plan(bf16({{"transformer.wte.weight", {4, 2}},
                                       {"transformer.wpe.weight", {4, 2}},
                                       {"transformer.h.0.attn.c_attn.weight", {2, 6}},
                                       {"transformer.h.0.attn.c_attn.bias", {6}},
                                       {"transformer.ln_f.weight", {2}},
                                       {"lm_head.weight", {4, 2}}}));
  ASSERT_TRUE(succeeded(gpt));
  EXPECT_EQ(grouped(*gpt), (Names{"lm_head.weight", "transformer.h.0.attn.c_attn.weight",
                                  "transformer.wte.weight"}));
  EXPECT_EQ(gpt->at("transformer.wpe.weight").reason, "outside the repeated blocks");

  const Result<Fates> neox =
      plan(bf16({{"gpt_neox.embed_in.weight", {4, 2}}, {"embed_out.weight", {4, 2}}}));
  ASSERT_TRUE(succeeded(neox));
  EXPECT_EQ(grouped(*neox).size(), 2u);

  const Result<Fates> diffusion =
      plan(bf16({{"transformer_blocks.0.attn.to_out.0.weight", {2, 2}},
                 {"single_transformer_blocks.3.proj_mlp.weight", {2, 2}},
                 {"x_embedder.weight", {2, 2}}}));
  ASSERT_TRUE(succeeded(diffusion));
  EXPECT_EQ(diffusion->at("transformer_blocks.0.attn.to_out.0.weight").file,
            "transformer_blocks_0.safetensors");
  EXPECT_EQ(diffusion->at("transformer_blocks.0.attn.to_out.0.weight").module,
            "transformer_blocks.0.attn.to_out.0");
  EXPECT_EQ(diffusion->at("x_embedder.weight").reason, "outside the repeated blocks");
}

TEST_F(PlanTest, WhatNoGroupCanHold) {
  std::vector<Tensor> tensors = bf16({{"l.0.rank1.weight", {4}},
                                      {"l.0.rank3.weight", {2, 2, 2}},
                                      {"l.0.rank4.weight", {2, 2, 1, 1}},
                                      {"l.0.rank0.weight", {}},
                                      {"l.0.empty.weight", {0, 4}},
                                      {"l.0.matrix.bias", {2, 2}},
                                      {"l.0.matrix", {2, 2}},
                                      {"weight", {2, 2}}});
  for (const Dtype dtype :
       {Dtype::kF16, Dtype::kF32, Dtype::kF8E4M3, Dtype::kI64, Dtype::kF4, Dtype::kU16}) {
    tensors.push_back(zeros("l.0." + std::string(dtype_name(dtype)) + ".weight", dtype, {2, 2}));
  }
  const Result<Fates> fates = plan(tensors);
  ASSERT_TRUE(succeeded(fates));
  EXPECT_EQ(grouped(*fates), Names{});
  EXPECT_EQ(fates->at("l.0.F16.weight").reason, "dtype F16, not BF16");
  EXPECT_EQ(fates->at("l.0.rank3.weight").reason, "rank 3, not a matrix");
  EXPECT_EQ(fates->at("l.0.empty.weight").reason, "empty");
  EXPECT_EQ(fates->at("l.0.matrix").reason, "not a module's .weight");
}

TEST_F(PlanTest, IncludeAndExclude) {
  auto tensors = kQwen3;
  tensors.push_back({"model.layers.0.mlp.gate.weight", {8, 2}});
  tensors.push_back({"model.proj.weight", {8, 2}});
  PlanOptions options;
  options.include = {"*.mlp.gate.weight", "model.proj.*", "model.embed_tokens.weight"};
  const Result<Fates> included = plan(bf16(tensors), "{}", options);
  ASSERT_TRUE(succeeded(included));
  for (const char* name :
       {"model.layers.0.mlp.gate.weight", "model.proj.weight", "model.embed_tokens.weight"}) {
    EXPECT_EQ(included->at(name).reason, "") << name;
  }
  EXPECT_EQ(included->at("model.proj.weight").file, "model_proj.safetensors");

  options.exclude = {"model.layers.*", "*norm*"};
  const Result<Fates> both = plan(bf16(tensors), "{}", options);
  ASSERT_TRUE(succeeded(both));
  EXPECT_EQ(grouped(*both), (Names{"model.embed_tokens.weight", "model.proj.weight"}));
  EXPECT_EQ(both->at("model.layers.0.mlp.gate.weight").reason, "excluded by --exclude");

  options = {{"*norm*"}, {}};
  EXPECT_TRUE(
      failed_with(plan(bf16(tensors), "{}", options), ErrorCode::invalid_argument, "rank 1"));
  options = {{"*norm*"}, {"*norm*"}};
  EXPECT_TRUE(succeeded(plan(bf16(tensors), "{}", options)));
}

// Tensor names come from the file; the plan makes file names of them.
TEST_F(PlanTest, FileNamesStayInTheDirectory) {
  for (const std::string& name :
       {std::string("/abs.0.x.weight"), std::string("sub/evil.0.x.weight"),
        std::string("a\0b.0.x.weight", 14), std::string("../up.0.x.weight"),
        std::string("a\\b.0.x.weight"), std::string(".0.x.weight"),
        "l" + std::string(300, 'o') + "ng.0.x.weight", std::string("new\nline.0.x.weight")}) {
    const Result<Fates> fates = plan(bf16({{name, {2, 2}}}));
    if (!fates) continue;  // refusing is as good
    const std::string& file = fates->at(name).file;
    EXPECT_TRUE(is_safe_relative_path(file)) << file;
    EXPECT_EQ(file.find('/'), file.npos) << file;
    EXPECT_LE(file.size(), 255u) << file;
  }
}

}  // namespace
}  // namespace df11::test
