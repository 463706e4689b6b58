// What tensor and module names of published checkpoints say: embeddings, output heads, routers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/json.h"

namespace df11 {

inline constexpr std::string_view kWeightSuffix = ".weight";

// The parts of a name between its dots.
std::vector<std::string_view> name_components(std::string_view name);
// The last component of a name.
std::string_view leaf_of(std::string_view name);
bool is_all_digits(std::string_view component);
// "a.0" of "a.0.b"; "" of a name without a dot.
std::string_view parent_of(std::string_view name);
// The module of a tensor: "model.norm" of "model.norm.weight".
inline std::string_view module_of(std::string_view tensor_name) {
  return parent_of(tensor_name);
}
// "module.member", or "module" when `member` is empty.
std::string joined_name(std::string_view module, std::string_view member);
// The repeated block a name belongs to: "model.layers.12" of "model.layers.12.mlp.up_proj.weight",
// "" outside of any (spec/planning.md section 1).
std::string_view repeated_block_of(std::string_view name);

// Last components of modules outside repeated blocks that hold most of the other weights
// (spec/planning.md section 2).
bool is_embedding_leaf(std::string_view leaf);
bool is_head_leaf(std::string_view leaf);
// Routers: small, and a class of their own in many architectures rather than a Linear.
bool is_router_leaf(std::string_view leaf);
// Modules of GPT-2 and its relatives that are `transformers` Conv1D: a transposed weight, no
// Linear.
bool is_conv1d(const Json& config, std::string_view leaf);

// Whether embedding and head share their weights, from config.json: the top-level key, or that of a
// multimodal model's text part, or else what its class does by default.
bool config_says_tied(const Json& config, bool by_default = false);
// Whether config.json names model classes without a language-model head only ("BertModel"); all of
// diffusers' are.
bool is_base_model(const Json& config);

}  // namespace df11
