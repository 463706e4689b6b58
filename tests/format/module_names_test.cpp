// Parts of names, and what published configurations say.
#include "format/module_names.h"

#include <gtest/gtest.h>

namespace df11::test {
namespace {

Json json(std::string_view text) {
  return Json::parse(text);
}

TEST(ModuleNames, Parts) {
  EXPECT_EQ(name_components("a.b.c"), (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_EQ(name_components(""), (std::vector<std::string_view>{""}));
  EXPECT_EQ(name_components("a."), (std::vector<std::string_view>{"a", ""}));
  EXPECT_EQ(leaf_of("a.b.c"), "c");
  EXPECT_EQ(leaf_of("a"), "a");
  EXPECT_EQ(module_of("a.b.weight"), "a.b");
  EXPECT_EQ(module_of("weight"), "");
  EXPECT_TRUE(is_all_digits("012"));
  EXPECT_FALSE(is_all_digits(""));
  EXPECT_FALSE(is_all_digits("1a"));
}

TEST(ModuleNames, RepeatedBlock) {
  EXPECT_EQ(repeated_block_of("model.layers.12.mlp.up_proj.weight"), "model.layers.12");
  EXPECT_EQ(repeated_block_of("model.layers.1.experts.7.w1"), "model.layers.1");
  EXPECT_EQ(repeated_block_of("blocks.3.0.weight"), "blocks.3.0");
  EXPECT_EQ(repeated_block_of("0.weight"), "");
  EXPECT_EQ(repeated_block_of("model.norm"), "");
}

TEST(ModuleNames, Tied) {
  EXPECT_TRUE(config_says_tied(json(R"({"tie_word_embeddings": true})")));
  EXPECT_TRUE(config_says_tied(json(R"({"text_config": {"tie_word_embeddings": true}})")));
  EXPECT_FALSE(config_says_tied(
      json(R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})")));
  EXPECT_FALSE(config_says_tied(json(R"({"tie_word_embeddings": 1})")));
  EXPECT_FALSE(config_says_tied(json("{}")));
}

TEST(ModuleNames, BaseModel) {
  EXPECT_TRUE(is_base_model(json(R"({"architectures": ["BertModel"]})")));
  EXPECT_FALSE(is_base_model(json(R"({"architectures": ["GPT2LMHeadModel"]})")));
  EXPECT_FALSE(is_base_model(json(R"({"architectures": ["Qwen3ForCausalLM"]})")));
  EXPECT_FALSE(is_base_model(json(R"({"architectures": []})")));
}

TEST(ModuleNames, Conv1d) {
  EXPECT_TRUE(is_conv1d(json(R"({"model_type": "gpt2"})"), "c_attn"));
  EXPECT_FALSE(is_conv1d(json(R"({"model_type": "gpt2"})"), "wte"));
  EXPECT_FALSE(is_conv1d(json(R"({"model_type": "gpt_bigcode"})"), "c_attn"));
  EXPECT_FALSE(is_conv1d(json(R"({"model_type": 2})"), "c_attn"));
}

}  // namespace
}  // namespace df11::test
