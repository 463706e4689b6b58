#include "compressor/plan_rules.h"

#include <algorithm>
#include <array>

#include "compressor/tensor_names.h"
#include "format/df11_layout.h"
#include "format/pattern.h"

namespace df11 {

namespace {

// Last name components of modules outside repeated blocks that hold most of the other weights.
constexpr std::array<std::string_view, 7> kEmbeddingNames = {
    "embed_tokens", "wte",        "tok_embeddings", "word_embeddings",
    "embed_in",     "embeddings", "embedding"};
constexpr std::array<std::string_view, 3> kHeadNames = {"lm_head", "output", "embed_out"};
// Routers: small, and a class of their own in many architectures rather than a Linear.
constexpr std::array<std::string_view, 3> kRouterNames = {"gate", "router", "shared_expert_gate"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether embedding and head share their weights, from config.json: the top-level key, or that of a
// multimodal model's text part, or else what its class does by default.
bool config_says_tied(const Json& config, bool by_default) {
  const Json* tied = json_find(config, "tie_word_embeddings");
  if (const Json* text = json_find(config, "text_config"); tied == nullptr && text != nullptr) {
    tied = json_find(*text, "tie_word_embeddings");
  }
  return tied != nullptr && tied->is_boolean() ? tied->get<bool>() : by_default;
}

// Whether config.json names a model class without a language-model head ("BertModel"); all of
// diffusers' are.
bool is_base_model(const Json& config) {
  if (json_find(config, "_class_name") != nullptr) return true;
  const Json* classes = json_find(config, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty()) return false;
  return std::all_of(classes->begin(), classes->end(), [](const Json& name) {
    return name.is_string() && name.get_ref<const std::string&>().ends_with("Model") &&
           !name.get_ref<const std::string&>().ends_with("LMHeadModel");
  });
}

}  // namespace

bool is_embedding_leaf(std::string_view leaf) {
  return contains(kEmbeddingNames, leaf);
}

Rules::Rules(const Checkpoint& checkpoint, const PlanOptions& options, const Recipe& recipe)
    : options_(options),
      shards_(checkpoint.shards()),
      recipe_(recipe),
      tied_(config_says_tied(checkpoint.config(), recipe.tied_by_default)) {
  bool has_head = false;
  for (const auto& [name, location] : checkpoint.shards().tensors()) {
    has_head |= name.ends_with(kWeightSuffix) && contains(kHeadNames, leaf_of(module_of(name)));
  }
  // A language model without a head in the source ties it to the embedding.
  tied_ |= !has_head && !is_base_model(checkpoint.config());
}

// The runtime can inject only a 2-D BF16 `weight` (design: only Linear and Embedding modules).
std::string Rules::reason_impossible(const TensorInfo& tensor) const {
  if (tensor.dtype != Dtype::kBF16)
    return "dtype " + std::string(dtype_name(tensor.dtype)) + ", not BF16";
  if (!tensor.name.ends_with(kWeightSuffix)) return "not a module's .weight";
  if (tensor.shape.size() != 2)
    return "rank " + std::to_string(tensor.shape.size()) + ", not a matrix";
  if (tensor.size_bytes() == 0) return "empty";
  const std::string_view module = module_of(tensor.name);
  for (const std::string_view part : kGroupTensors) {
    if (shards_.find(joined_name(module, part)) != nullptr) {
      return "the source has a tensor '" + std::string(part) + "' of the same module";
    }
  }
  return "";
}

bool Rules::excluded(const TensorInfo& tensor) const {
  return any_glob_match(options_.exclude, tensor.name);
}

bool Rules::included(const TensorInfo& tensor) const {
  return any_glob_match(options_.include, tensor.name);
}

Result<std::string> Rules::reason_verbatim(const TensorInfo& tensor, bool published) const {
  const std::string impossible = reason_impossible(tensor);
  if (excluded(tensor)) return "excluded by --exclude";
  if (included(tensor)) {
    if (impossible.empty()) return std::string();
    return fail(Error{ErrorCode::invalid_argument,
                      "--include asks for a group, but: " + impossible,
                      {},
                      tensor.name,
                      {}});
  }
  if (!impossible.empty()) return impossible;

  const std::string_view module = module_of(tensor.name), leaf = leaf_of(module);
  for (const auto& [pattern, reason] : recipe_.verbatim) {
    DF11_ASSIGN(const bool matches, pattern.full_match(module));
    if (matches) return reason;
  }
  const bool in_block = !block_of(tensor.name).empty();
  const bool word_table = is_embedding_leaf(leaf) || contains(kHeadNames, leaf);
  if (!in_block && word_table && tied_) return "embedding and output head are tied";
  if (published || (!in_block && word_table)) return std::string();
  if (!in_block) return "outside the repeated blocks";
  if (contains(kRouterNames, leaf)) return "a router, not a plain Linear in every runtime";
  // torch.nn.MultiheadAttention reads this weight; it never calls the module, so no hook runs.
  if (leaf == "out_proj" &&
      shards_.find(joined_name(parent_of(module), "in_proj_weight")) != nullptr) {
    return "inside torch.nn.MultiheadAttention, which does not call it as a module";
  }
  return std::string();
}

}  // namespace df11
