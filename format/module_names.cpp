#include "format/module_names.h"

#include <algorithm>
#include <array>

namespace df11 {

namespace {

constexpr std::array<std::string_view, 7> kEmbeddingLeaves = {
    "embed_tokens", "wte",        "tok_embeddings", "word_embeddings",
    "embed_in",     "embeddings", "embedding"};
constexpr std::array<std::string_view, 3> kHeadLeaves = {"lm_head", "output", "embed_out"};
constexpr std::array<std::string_view, 3> kRouterLeaves = {"gate", "router", "shared_expert_gate"};
constexpr std::array<std::string_view, 4> kConv1dLeaves = {"c_attn", "c_fc", "c_proj", "q_attn"};
constexpr std::array<std::string_view, 4> kConv1dModels = {"gpt2", "openai-gpt", "imagegpt",
                                                           "decision_transformer"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string_view> name_components(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == name.npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

std::string_view leaf_of(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string_view parent_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

std::string joined_name(std::string_view module, std::string_view member) {
  std::string name(module);
  if (!member.empty()) name.append(".").append(member);
  return name;
}

bool is_all_digits(std::string_view component) {
  return !component.empty() && std::all_of(component.begin(), component.end(),
                                           [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view repeated_block_of(std::string_view name) {
  const std::vector<std::string_view> parts = name_components(name);
  size_t end = parts[0].size(), block_end = 0;
  for (size_t i = 1; i < parts.size(); ++i) {
    end += 1 + parts[i].size();
    if (is_all_digits(parts[i])) {
      block_end = end;  // a list in a list: the innermost is the block
    } else if (block_end != 0) {
      break;
    }
  }
  return name.substr(0, block_end);
}

bool is_embedding_leaf(std::string_view leaf) {
  return contains(kEmbeddingLeaves, leaf);
}

bool is_head_leaf(std::string_view leaf) {
  return contains(kHeadLeaves, leaf);
}

bool is_router_leaf(std::string_view leaf) {
  return contains(kRouterLeaves, leaf);
}

bool is_conv1d(const Json& config, std::string_view leaf) {
  const Json* type = json_find(config, "model_type");
  return type != nullptr && type->is_string() &&
         contains(kConv1dModels, type->get_ref<const std::string&>()) &&
         contains(kConv1dLeaves, leaf);
}

bool config_says_tied(const Json& config, bool by_default) {
  const Json* tied = json_find(config, "tie_word_embeddings");
  if (const Json* text = json_find(config, "text_config"); tied == nullptr && text != nullptr) {
    tied = json_find(*text, "tie_word_embeddings");
  }
  return tied != nullptr && tied->is_boolean() ? tied->get<bool>() : by_default;
}

bool is_base_model(const Json& config) {
  if (json_find(config, "_class_name") != nullptr) return true;
  const Json* classes = json_find(config, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty()) return false;
  return std::all_of(classes->begin(), classes->end(), [](const Json& name) {
    return name.is_string() && name.get_ref<const std::string&>().ends_with("Model") &&
           !name.get_ref<const std::string&>().ends_with("LMHeadModel");
  });
}

}  // namespace df11
