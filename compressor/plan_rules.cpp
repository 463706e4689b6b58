#include "compressor/plan_rules.h"

#include "format/df11_layout.h"
#include "format/module_names.h"
#include "format/pattern.h"

namespace df11 {

Rules::Rules(const Checkpoint& checkpoint, const PlanOptions& options, const Recipe& recipe)
    : options_(options),
      shards_(checkpoint.shards()),
      recipe_(recipe),
      tied_(config_says_tied(checkpoint.config(), recipe.tied_by_default)) {
  bool has_head = false;
  for (const auto& [name, location] : checkpoint.shards().tensors()) {
    has_head |= name.ends_with(kWeightSuffix) && is_head_leaf(leaf_of(module_of(name)));
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
  const bool in_block = !repeated_block_of(tensor.name).empty();
  const bool word_table = is_embedding_leaf(leaf) || is_head_leaf(leaf);
  if (!in_block && word_table && tied_) return "embedding and output head are tied";
  if (published || (!in_block && word_table)) return std::string();
  if (!in_block) return "outside the repeated blocks";
  if (is_router_leaf(leaf)) return "a router, not a plain Linear in every runtime";
  // torch.nn.MultiheadAttention reads this weight; it never calls the module, so no hook runs.
  if (leaf == "out_proj" &&
      shards_.find(joined_name(parent_of(module), "in_proj_weight")) != nullptr) {
    return "inside torch.nn.MultiheadAttention, which does not call it as a module";
  }
  return std::string();
}

}  // namespace df11
