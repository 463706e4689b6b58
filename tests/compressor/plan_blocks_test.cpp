// Groups of several tensors: by block, and as a pattern_dict says.
#include <gtest/gtest.h>

#include "compressor/plan.h"
#include "directories/builders.h"
#include "format/df11_layout.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using Names = std::vector<std::string>;
using Shapes = std::vector<std::pair<std::string, Shape>>;

struct Outcome {
  std::map<std::string, Names> groups;  // module -> members
  std::map<std::string, std::string> reasons, files;
  std::map<std::string, SafetensorsMetadata> metadata;  // of each file
};

class PlanBlocksTest : public ::testing::Test {
 protected:
  Result<Outcome> plan(const Shapes& tensors, const PlanOptions& options,
                       const std::string& config = "{}") {
    std::vector<Tensor> list;
    for (const auto& [name, shape] : tensors) list.push_back(zeros(name, Dtype::kBF16, shape));
    write_safetensors(directory_ / "model.safetensors", list);
    return plan_written(options, config);
  }

  Result<Outcome> plan_written(const PlanOptions& options, const std::string& config = "{}") {
    write_file(directory_ / "config.json", config);
    DF11_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(directory_.path()));
    DF11_ASSIGN(const Plan made, make_plan(checkpoint, options));
    Outcome outcome;
    for (const PlannedShard& shard : made.shards) {
      outcome.metadata[shard.file_name] = shard.metadata;
      for (const PlannedGroup& group : shard.groups) {
        EXPECT_TRUE(outcome.groups.emplace(group.module, group.member_paths()).second);
        for (const TensorLocation* member : group.members)
          outcome.files[member->info.name] = shard.file_name;
      }
      for (const VerbatimTensor& tensor : shard.verbatim) {
        outcome.reasons[tensor.tensor->info.name] = tensor.reason;
        outcome.files[tensor.tensor->info.name] = shard.file_name;
      }
    }
    EXPECT_EQ(outcome.files.size(), checkpoint.shards().tensors().size());
    return outcome;
  }

  static PlanOptions by_block() { return {{}, {}, Granularity::kBlock, std::nullopt}; }
  static PlanOptions by_patterns(PatternDict patterns) {
    return {{}, {}, Granularity::kTensor, std::move(patterns)};
  }

  TemporaryDirectory directory_;
};

const Shapes kTwoLayers = {
    {"model.embed_tokens.weight", {4, 2}},
    {"model.layers.0.norm.weight", {2}},
    {"model.layers.0.mlp.down_proj.weight", {2, 2}},
    {"model.layers.0.mlp.up_proj.weight", {2, 2}},
    {"model.layers.0.attn.q_proj.weight", {2, 2}},
    {"model.layers.0.attn.q_proj.bias", {2}},
    {"model.layers.1.mlp.up_proj.weight", {2, 2}},
    {"model.norm.weight", {2}},
    {"lm_head.weight", {4, 2}},
};

TEST_F(PlanBlocksTest, ShardsAreUpstreams) {
  const Result<Outcome> made = plan(kTwoLayers, by_block());
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->groups, (std::map<std::string, Names>{
                              {"lm_head", {}},
                              {"model.embed_tokens", {}},
                              {"model.layers.0", {"attn.q_proj", "mlp.up_proj", "mlp.down_proj"}},
                              {"model.layers.1", {"mlp.up_proj"}}}));
  EXPECT_EQ(made->files.at("model.layers.0.norm.weight"), "model_layers_0.safetensors");
  EXPECT_EQ(made->files.at("model.layers.0.attn.q_proj.bias"), "model_layers_0.safetensors");
  EXPECT_EQ(made->files.at("model.norm.weight"), "model.safetensors");
  EXPECT_EQ(made->metadata.at("model_layers_0.safetensors"), SafetensorsMetadata{});
  EXPECT_EQ(made->metadata.at("model.safetensors"), (SafetensorsMetadata{{"format", "pt"}}));
}

TEST_F(PlanBlocksTest, ABlockWithoutAGroupGoesWithTheRest) {
  const Result<Outcome> made =
      plan({{"l.0.norm.weight", {2}}, {"l.1.up.weight", {2, 2}}}, by_block());
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->files.at("l.0.norm.weight"), "model.safetensors");
}

TEST_F(PlanBlocksTest, OrderOfMembersThatNoneIsPublishedFor) {
  const Result<Outcome> made = plan({{"l.0.z.weight", {2, 2}},
                                     {"l.0.mlp.experts.10.up_proj.weight", {2, 2}},
                                     {"l.0.mlp.experts.2.down_proj.weight", {2, 2}},
                                     {"l.0.mlp.experts.2.up_proj.weight", {2, 2}},
                                     {"l.0.mlp.experts.2.gate_proj.weight", {2, 2}},
                                     {"l.0.attn.v_proj.weight", {2, 2}},
                                     {"l.0.attn.o_proj.weight", {2, 2}},
                                     {"l.0.attn.k_proj.weight", {2, 2}},
                                     {"l.0.attn.q_proj.weight", {2, 2}},
                                     {"l.0.a.10.x.weight", {2, 2}},
                                     {"l.0.a.9.x.weight", {2, 2}}},
                                    by_block());
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->groups.at("l.0"),
            (Names{"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.o_proj",
                   "mlp.experts.2.gate_proj", "mlp.experts.2.up_proj", "mlp.experts.2.down_proj",
                   "mlp.experts.10.up_proj", "a.9.x", "a.10.x", "z"}));
}

// The runtime injects members into Linear modules only, and a module's own weight only alone.
TEST_F(PlanBlocksTest, WhatCannotBeAMember) {
  const Result<Outcome> made = plan({{"l.0.up.weight", {2, 2}},
                                     {"l.0.embed_tokens.weight", {2, 2}},
                                     {"l.0.gate.weight", {2, 2}},
                                     {"m.0.weight", {2, 2}},
                                     {"m.0.up.weight", {2, 2}},
                                     {"s.0.weight", {2, 2}}},
                                    by_block());
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(
      made->groups,
      (std::map<std::string, Names>{
          {"l.0", {"up"}}, {"l.0.embed_tokens", {}}, {"m.0", {}}, {"m.0.up", {}}, {"s.0", {}}}));
  EXPECT_EQ(made->files.at("m.0.up.weight"), "m_0.safetensors");
}

// Tensors of 2^30 weights each, in a sparse file: only the header is read.
TEST_F(PlanBlocksTest, ABlockOverTheLimitIsSplitByTensor) {
  const uint64_t rows = uint64_t{1} << 15;
  std::vector<TensorInfo> infos;
  for (const char* name : {"l.0.a.weight", "l.0.b.weight", "l.0.c.weight", "l.1.a.weight"})
    infos.push_back({name, Dtype::kBF16, {rows, rows}, 0, 0});
  const SafetensorsHeader header = SafetensorsHeader::lay_out(infos, {});
  write_file(directory_ / "model.safetensors", header.serialize());
  fs::resize_file(directory_ / "model.safetensors", header.file_bytes());
  const Result<Outcome> made = plan_written(by_block());
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->groups, (std::map<std::string, Names>{
                              {"l.0.a", {}}, {"l.0.b", {}}, {"l.0.c", {}}, {"l.1", {"a"}}}));
  for (const char* name : {"l.0.a.weight", "l.0.b.weight", "l.0.c.weight"})
    EXPECT_EQ(made->files.at(name), "l_0.safetensors");
}

TEST_F(PlanBlocksTest, IncludeAndExclude) {
  PlanOptions options = by_block();
  options.include = {"model.layers.0.router.weight", "model.proj.weight"};
  options.exclude = {"*.q_proj.weight"};
  Shapes tensors = kTwoLayers;
  tensors.push_back({"model.layers.0.router.weight", {2, 2}});
  tensors.push_back({"model.proj.weight", {2, 2}});
  const Result<Outcome> made = plan(tensors, options);
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->groups.at("model.layers.0"), (Names{"mlp.up_proj", "mlp.down_proj", "router"}));
  EXPECT_EQ(made->groups.at("model.proj"), Names{});
}

// A published pattern with members that are not there, and weights that it does not know.
TEST_F(PlanBlocksTest, PublishedGroupsOfABlockThatHasChanged) {
  const Result<Outcome> made = plan({{"blocks.0.attn1.to_q.weight", {2, 2}},
                                     {"blocks.0.ffn.net.2.weight", {2, 2}},
                                     {"blocks.0.ffn.net.0.proj.weight", {2, 2}},
                                     {"blocks.0.new.weight", {2, 2}},
                                     {"blocks.1.new.weight", {2, 2}},
                                     {"other.0.x.weight", {2, 2}}},
                                    by_block(), R"({"_class_name": "WanTransformer3DModel"})");
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->groups, (std::map<std::string, Names>{
                              {"blocks.0", {"attn1.to_q", "ffn.net.0.proj", "ffn.net.2", "new"}},
                              {"blocks.1", {"new"}}}));
  EXPECT_EQ(made->reasons.at("other.0.x.weight"), "not in the groups published for this model");

  // Other names altogether: the general rule.
  const Result<Outcome> renamed = plan({{"layers.0.x.weight", {2, 2}}}, by_block(),
                                       R"({"_class_name": "WanTransformer3DModel"})");
  ASSERT_TRUE(succeeded(renamed));
  EXPECT_EQ(renamed->groups, (std::map<std::string, Names>{{"layers.0", {"x"}}}));
}

TEST_F(PlanBlocksTest, PatternDictDecides) {
  const Result<Outcome> made =
      plan(kTwoLayers,
           by_patterns({{R"(model\.layers\.(?:0|[5-9])++)", {"mlp.down_proj", "mlp.up_proj"}},
                        {"lm_head", {}}}));
  ASSERT_TRUE(succeeded(made));
  EXPECT_EQ(made->groups,
            (std::map<std::string, Names>{{"lm_head", {}},
                                          {"model.layers.0", {"mlp.down_proj", "mlp.up_proj"}}}));
  EXPECT_EQ(made->files.at("model.layers.0.norm.weight"), "model_layers_0.safetensors");
  EXPECT_EQ(made->files.at("model.layers.1.mlp.up_proj.weight"), "model.safetensors");
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.norm.weight",
                           "model.layers.1.mlp.up_proj.weight"}) {
    EXPECT_EQ(made->reasons.at(name), "in no pattern of --pattern-dict");
  }

  PlanOptions options = by_patterns({{R"(model\.layers\.0)", {"mlp.up_proj", "attn.q_proj"}}});
  options.exclude = {"*up_proj*"};
  const Result<Outcome> excluded = plan(kTwoLayers, options);
  ASSERT_TRUE(succeeded(excluded));
  EXPECT_EQ(excluded->groups, (std::map<std::string, Names>{{"model.layers.0", {"attn.q_proj"}}}));
  EXPECT_EQ(excluded->reasons.at("model.layers.0.mlp.up_proj.weight"), "excluded by --exclude");
}

// Every pattern that upstream has published is one we can follow, given the modules it names.
TEST_F(PlanBlocksTest, EveryPublishedPatternDict) {
  const Json published = *parse_json(read_file(DF11_GOLDEN_DIR "/published_pattern_dicts.json"));
  for (const auto& [model, entry] : published.items()) {
    const PatternDict patterns = find_pattern_dict(entry).value();
    Shapes tensors;
    std::map<std::string, Names> expected;
    for (const auto& [pattern, members] : patterns) {
      std::string module;  // one that the pattern matches
      for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern.substr(i, 3) == "\\d+") {
          module += '7';
          i += 2;
        } else if (pattern[i] == '(') {
          module += '8';
          break;
        } else if (pattern[i] != '\\') {
          module += pattern[i];
        }
      }
      expected[module] = members;
      for (const std::string& member : members.empty() ? Names{""} : members)
        tensors.push_back({module + (member.empty() ? "" : "." + member) + ".weight", {2, 2}});
    }
    const Result<Outcome> made = plan(tensors, by_patterns(patterns));
    ASSERT_TRUE(succeeded(made)) << model;
    EXPECT_EQ(made->groups, expected) << model;
  }
}

TEST_F(PlanBlocksTest, PatternDictThatDoesNotFit) {
  const auto refused = [&](PatternDict patterns, std::string_view why) {
    return failed_with(plan(kTwoLayers, by_patterns(std::move(patterns))),
                       ErrorCode::invalid_argument, why);
  };
  EXPECT_TRUE(refused({{"lm_head", {}}, {"visual", {}}},
                      "module pattern \"visual\" matches no module of the source"));
  EXPECT_TRUE(refused({{R"(model\.layers\.\d+)", {"attn.q_proj"}}},
                      "tensor 'model.layers.1.attn.q_proj.weight': module pattern "));
  EXPECT_TRUE(refused({{"model", {}}}, "asks for a weight that the source does not have"));
  EXPECT_TRUE(refused({{R"(model\.layers\.0)", {"norm"}}}, "no group can hold: rank 1"));
  EXPECT_TRUE(refused({{"lm_.*", {}}, {".*_head", {}}}, "\"lm_.*\" has already"));
  EXPECT_TRUE(refused({{R"(model\.layers\.0)", {"mlp.up_proj", "mlp.up_proj"}}}, "has already"));
  EXPECT_TRUE(
      refused({{R"(model\.layers\.0)", {"mlp.up_proj"}}, {R"(model\.layers\.0\.mlp)", {"up_proj"}}},
              "has already"));
  EXPECT_TRUE(failed_with(plan(kTwoLayers, by_patterns({{"(", {}}})), ErrorCode::malformed_config,
                          "does not compile"));
}

}  // namespace
}  // namespace df11::test
