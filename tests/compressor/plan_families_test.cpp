// Plans of published model families. families/*.json has the tensors of each, as the model classes
// of transformers and diffusers name them, and what becomes of every one, in both granularities;
// where upstream has published a pattern_dict, ours must be the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "compressor/plan.h"
#include "compressor/plan_patterns.h"
#include "directories/family.h"
#include "format/module_names.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

class PlanFamilyTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Compares the plan with what the file says; returns its pattern_dict.
  PatternDict check(const std::string& granularity, const PlanOptions& options) {
    const Family family(GetParam());
    family.write_checkpoint(directory_.path());
    const Result<Checkpoint> checkpoint = Checkpoint::open(directory_.path());
    EXPECT_TRUE(succeeded(checkpoint));
    const Result<Plan> plan = make_plan(*checkpoint, options);
    EXPECT_TRUE(succeeded(plan));
    NamesByKey groups;
    std::map<std::string, std::string> reasons;
    std::vector<CodedModule> coded;
    Names others;
    for (const PlannedShard& shard : plan->shards) {
      for (const PlannedGroup& group : shard.groups) {
        EXPECT_TRUE(groups.emplace(group.module, group.member_paths()).second) << group.module;
        coded.push_back({group.module, group.member_paths()});
      }
      for (const VerbatimTensor& tensor : shard.verbatim) {
        const std::string& name = tensor.tensor->info.name;
        EXPECT_TRUE(reasons.emplace(name, tensor.reason).second) << name;
        if (name.ends_with(kWeightSuffix)) others.emplace_back(module_of(name));
      }
    }
    EXPECT_EQ(groups, family.groups(granularity));
    EXPECT_EQ(reasons, family.verbatim(granularity));
    const Result<PatternDict> patterns = patterns_for(coded, others, plan->patterns);
    EXPECT_TRUE(succeeded(patterns));
    return *patterns;
  }

  TemporaryDirectory directory_;
};

TEST_P(PlanFamilyTest, ByTensor) {
  check("tensor", {});
}

TEST_P(PlanFamilyTest, ByBlock) {
  PlanOptions options;
  options.granularity = Granularity::kBlock;
  const Family family(GetParam());
  EXPECT_EQ(check("block", options), family.patterns());
}

INSTANTIATE_TEST_SUITE_P(Families, PlanFamilyTest, ::testing::ValuesIn(family_names()),
                         [](const auto& instance) { return instance.param; });

// Every family above has at least these.
TEST(PlanFamilies, AreThere) {
  EXPECT_GE(family_names().size(), 15u);
}

// The patterns that recipes.json has of upstream's are those that upstream has published.
TEST(Recipes, PublishedPatternsAreUpstreams) {
  const Json published = read_json(DF11_GOLDEN_DIR "/published_pattern_dicts.json");
  const Result<Json> recipes = parse_json(recipes_text());
  ASSERT_TRUE(succeeded(recipes));
  size_t n_checked = 0;
  for (const Json& entry : (*recipes)["published"]) {
    const bool known = std::any_of(published.begin(), published.end(), [&](const Json& model) {
      return pattern_dict(model) == pattern_dict(entry);
    });
    EXPECT_TRUE(known) << entry["models"].dump();
    for (const Json& model : entry["models"]) {
      for (const char* key : {"model_type", "_class_name"}) {
        const Result<Recipe> recipe = Recipe::for_model({{key, model}}, Granularity::kBlock);
        ASSERT_TRUE(succeeded(recipe));
        EXPECT_EQ(recipe->patterns, pattern_dict(entry));
        ++n_checked;
      }
    }
  }
  EXPECT_GE(n_checked, 20u);
}

TEST(Recipes, ForAnUnknownModelThereIsNone) {
  for (const char* config : {"{}", R"({"model_type": "new"})", R"({"model_type": 7})",
                             R"({"text_config": "no object"})", R"({"text_config": {}})"}) {
    const Result<Recipe> recipe = Recipe::for_model(*parse_json(config), Granularity::kBlock);
    ASSERT_TRUE(succeeded(recipe)) << config;
    EXPECT_TRUE(recipe->patterns.empty() && recipe->verbatim.empty() && !recipe->tied_by_default);
  }
}

TEST(Recipes, TextPartCountsForAllButThePublishedGroups) {
  const Json config = {{"model_type", "new"}, {"text_config", {{"model_type", "gemma2"}}}};
  EXPECT_TRUE(Recipe::for_model(config, Granularity::kBlock)->tied_by_default);
  const Json llama = {{"model_type", "new"}, {"text_config", {{"model_type", "llama"}}}};
  EXPECT_TRUE(Recipe::for_model(llama, Granularity::kBlock)->patterns.empty());
}

}  // namespace
}  // namespace df11::test
