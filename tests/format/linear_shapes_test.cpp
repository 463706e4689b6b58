#include "format/linear_shapes.h"

#include <gtest/gtest.h>

namespace df11::test {
namespace {

// As config.json is read: literals of C++ would be signed.
Json parsed(const Json& value) {
  return *parse_json(value.dump());
}

Json qwen() {
  return parsed({{"hidden_size", 64},
                 {"intermediate_size", 96},
                 {"vocab_size", 500},
                 {"num_attention_heads", 6},
                 {"num_key_value_heads", 2},
                 {"head_dim", 16},
                 {"moe_intermediate_size", 8}});
}

TEST(LinearShape, IsThatOfTheNameWhenTheCountAgrees) {
  const Json config = qwen();
  const auto shape = [&](const char* name, uint64_t n) { return linear_shape(config, name, n); };
  EXPECT_EQ(shape("model.embed_tokens.weight", 32000), (Shape{500, 64}));
  EXPECT_EQ(shape("lm_head.weight", 32000), (Shape{500, 64}));
  EXPECT_EQ(shape("model.layers.0.self_attn.q_proj.weight", 64 * 96), (Shape{96, 64}));
  EXPECT_EQ(shape("model.layers.0.self_attn.k_proj.weight", 64 * 32), (Shape{32, 64}));
  EXPECT_EQ(shape("model.layers.0.self_attn.v_proj.weight", 64 * 32), (Shape{32, 64}));
  EXPECT_EQ(shape("model.layers.0.self_attn.o_proj.weight", 64 * 96), (Shape{64, 96}));
  EXPECT_EQ(shape("model.layers.0.self_attn.qkv_proj.weight", 64 * 160), (Shape{160, 64}));
  EXPECT_EQ(shape("model.layers.0.mlp.gate_proj.weight", 64 * 96), (Shape{96, 64}));
  EXPECT_EQ(shape("model.layers.0.mlp.gate_up_proj.weight", 64 * 192), (Shape{192, 64}));
  EXPECT_EQ(shape("model.layers.0.mlp.down_proj.weight", 64 * 96), (Shape{64, 96}));
  EXPECT_EQ(shape("model.layers.0.mlp.experts.3.down_proj.weight", 64 * 8), (Shape{64, 8}));
}

TEST(LinearShape, GuessesNothing) {
  const Json config = qwen();
  const auto shape = [&](const char* name, uint64_t n) { return linear_shape(config, name, n); };
  EXPECT_EQ(shape("lm_head.weight", 32064), std::nullopt);
  EXPECT_EQ(shape("vision_tower.layers.0.self_attn.q_proj.weight", 64 * 64), std::nullopt);
  EXPECT_EQ(shape("lm_head", 32000), std::nullopt);
  EXPECT_EQ(shape("model.unknown.weight", 32000), std::nullopt);
  EXPECT_EQ(linear_shape(Json::object(), "lm_head.weight", 0), std::nullopt);
  EXPECT_EQ(linear_shape(parsed({{"hidden_size", 64}}), "lm_head.weight", 0), std::nullopt);
  EXPECT_EQ(linear_shape(parsed({{"hidden_size", "64"}, {"vocab_size", -1}}), "lm_head.weight", 64),
            std::nullopt);
  const uint64_t huge = ~uint64_t{0};
  EXPECT_EQ(
      linear_shape(parsed({{"hidden_size", huge}, {"vocab_size", huge}}), "lm_head.weight", 1),
      std::nullopt);
}

TEST(LinearShape, TakesTheLanguageModelOfSeveralParts) {
  const Json config = parsed({{"hidden_size", 3}, {"text_config", qwen()}});
  EXPECT_EQ(linear_shape(config, "language_model.lm_head.weight", 32000), (Shape{500, 64}));
}

TEST(LinearShape, HeadSizeAndKeyValueHeadsHaveDefaults) {
  const Json config = parsed({{"hidden_size", 64}, {"num_attention_heads", 4}});
  EXPECT_EQ(linear_shape(config, "a.q_proj.weight", 64 * 64), (Shape{64, 64}));
  EXPECT_EQ(linear_shape(config, "a.k_proj.weight", 64 * 64), (Shape{64, 64}));
}

}  // namespace
}  // namespace df11::test
