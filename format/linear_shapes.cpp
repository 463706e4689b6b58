#include "format/linear_shapes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "format/bytes.h"

namespace df11 {

namespace {

// What one extent of a weight is; the other one is hidden_size.
enum class Extent : uint8_t { kVocabulary, kIntermediate, kGateUp, kQuery, kKeyValue, kQkv };

struct NamedWeight {
  std::string_view module;  // last component of its name
  Extent extent;
  bool hidden_is_rows;
};
constexpr std::array<NamedWeight, 11> kWeights = {{
    {"embed_tokens", Extent::kVocabulary, false},
    {"lm_head", Extent::kVocabulary, false},
    {"q_proj", Extent::kQuery, false},
    {"k_proj", Extent::kKeyValue, false},
    {"v_proj", Extent::kKeyValue, false},
    {"qkv_proj", Extent::kQkv, false},
    {"o_proj", Extent::kQuery, true},
    {"gate_proj", Extent::kIntermediate, false},
    {"up_proj", Extent::kIntermediate, false},
    {"gate_up_proj", Extent::kGateUp, false},
    {"down_proj", Extent::kIntermediate, true},
}};

// A size of the model; 0 when config.json does not give a credible one.
uint64_t size_of(const Json& config, std::string_view key) {
  constexpr uint64_t kMaxSize = uint64_t{1} << 31;  // sums and products of two stay in range
  const Result<uint64_t> value = json_uint(config, key);
  return value && *value <= kMaxSize ? *value : 0;
}

std::vector<uint64_t> values_of(const Json& config, Extent extent) {
  const uint64_t heads = size_of(config, "num_attention_heads");
  const uint64_t stated_kv_heads = size_of(config, "num_key_value_heads");
  const uint64_t kv_heads = stated_kv_heads != 0 ? stated_kv_heads : heads;
  const uint64_t stated_head_size = size_of(config, "head_dim");
  const uint64_t head_size = stated_head_size != 0 ? stated_head_size
                             : heads != 0          ? size_of(config, "hidden_size") / heads
                                                   : 0;
  switch (extent) {
    case Extent::kVocabulary: return {size_of(config, "vocab_size")};
    case Extent::kIntermediate:
      return {size_of(config, "intermediate_size"), size_of(config, "moe_intermediate_size"),
              size_of(config, "shared_expert_intermediate_size")};
    case Extent::kGateUp: return {2 * size_of(config, "intermediate_size")};
    case Extent::kQuery: return {heads * head_size};
    case Extent::kKeyValue: return {kv_heads * head_size};
    case Extent::kQkv: return {heads * head_size + 2 * kv_heads * head_size};
  }
  return {};
}

}  // namespace

std::optional<Shape> linear_shape(const Json& config, std::string_view name, uint64_t n_elements) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return std::nullopt;
  name.remove_suffix(kWeight.size());
  const std::string_view module = name.substr(name.rfind('.') + 1);
  const auto known = std::find_if(kWeights.begin(), kWeights.end(),
                                  [&](const NamedWeight& w) { return w.module == module; });
  if (known == kWeights.end()) return std::nullopt;
  // A model of several parts describes the language model here.
  const Json* text_config = json_find(config, "text_config");
  const Json& sizes = text_config != nullptr ? *text_config : config;
  const uint64_t hidden = size_of(sizes, "hidden_size");
  for (const uint64_t other : values_of(sizes, known->extent)) {
    if (hidden == 0 || other == 0 || checked_mul(hidden, other) != n_elements) continue;
    return known->hidden_is_rows ? Shape{hidden, other} : Shape{other, hidden};
  }
  return std::nullopt;
}

}  // namespace df11
