#include "compressor/plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "format/df11_layout.h"
#include "format/pattern.h"

namespace df11 {

namespace {

constexpr std::string_view kWeightSuffix = ".weight";

// Last name components of modules outside repeated blocks that hold most of the other weights.
constexpr std::array<std::string_view, 7> kEmbeddingNames = {
    "embed_tokens", "wte",        "tok_embeddings", "word_embeddings",
    "embed_in",     "embeddings", "embedding"};
constexpr std::array<std::string_view, 3> kHeadNames = {"lm_head", "output", "embed_out"};
// Routers: small, and a class of their own in many architectures rather than a Linear.
constexpr std::array<std::string_view, 3> kRouterNames = {"gate", "router", "shared_expert_gate"};

std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == name.npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

bool is_number(std::string_view part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view module_of(std::string_view tensor_name) {
  return tensor_name.substr(0, tensor_name.size() - kWeightSuffix.size());
}

// The repeated block a tensor belongs to ("model.layers.12"), or "" outside of any.
std::string block_of(std::string_view tensor_name) {
  size_t end = 0;
  for (const std::string_view part : components(tensor_name)) {
    end += part.size();
    if (end != part.size() && is_number(part)) return std::string(tensor_name.substr(0, end));
    ++end;
  }
  return "";
}

// Whether embedding and head share their weights, from config.json: the top-level key, or that of a
// multimodal model's text part.
bool config_says_tied(const Json& config) {
  const Json* tied = json_find(config, "tie_word_embeddings");
  if (const Json* text = json_find(config, "text_config"); tied == nullptr && text != nullptr) {
    tied = json_find(*text, "tie_word_embeddings");
  }
  return tied != nullptr && tied->is_boolean() && tied->get<bool>();
}

// Whether config.json names a model class without a language-model head ("BertModel").
bool is_base_model(const Json& config) {
  const Json* classes = json_find(config, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty()) return false;
  return std::all_of(classes->begin(), classes->end(), [](const Json& name) {
    return name.is_string() && name.get_ref<const std::string&>().ends_with("Model") &&
           !name.get_ref<const std::string&>().ends_with("LMHeadModel");
  });
}

class Rules {
 public:
  Rules(const Checkpoint& checkpoint, const PlanOptions& options)
      : options_(options),
        shards_(checkpoint.shards()),
        tied_(config_says_tied(checkpoint.config())) {
    bool has_head = false;
    for (const auto& [name, location] : checkpoint.shards().tensors()) {
      has_head |=
          name.ends_with(kWeightSuffix) && contains(kHeadNames, components(module_of(name)).back());
    }
    // A language model without a head in the source ties it to the embedding.
    tied_ |= !has_head && !is_base_model(checkpoint.config());
  }

  // Why `tensor` stays verbatim; empty when it forms a group.
  Result<std::string> reason_verbatim(const TensorLocation& tensor) const {
    const std::string& name = tensor.info.name;
    const std::string impossible = reason_impossible(tensor.info);
    if (any_glob_match(options_.exclude, name)) return "excluded by --exclude";
    if (any_glob_match(options_.include, name)) {
      if (impossible.empty()) return std::string();
      return fail(Error{ErrorCode::invalid_argument,
                        "--include asks for a group, but: " + impossible,
                        {},
                        name,
                        {}});
    }
    if (!impossible.empty()) return impossible;

    const std::string_view leaf = components(module_of(name)).back();
    if (!block_of(name).empty()) {
      if (contains(kRouterNames, leaf)) return "a router, not a plain Linear in every runtime";
      return std::string();
    }
    if (contains(kEmbeddingNames, leaf) || contains(kHeadNames, leaf)) {
      if (tied_) return "embedding and output head are tied";
      return std::string();
    }
    return "outside the repeated blocks";
  }

 private:
  // What no option can change: the runtime can inject only a 2-D BF16 `weight` (design: only Linear
  // and Embedding modules).
  std::string reason_impossible(const TensorInfo& info) const {
    if (info.dtype != Dtype::kBF16)
      return "dtype " + std::string(dtype_name(info.dtype)) + ", not BF16";
    if (!info.name.ends_with(kWeightSuffix)) return "not a module's .weight";
    if (info.shape.size() != 2)
      return "rank " + std::to_string(info.shape.size()) + ", not a matrix";
    if (info.size_bytes() == 0) return "empty";
    const std::string module(module_of(info.name));
    for (const std::string_view part : kGroupTensors) {
      if (shards_.find(module + "." + std::string(part)) != nullptr) {
        return "the source has a tensor '" + std::string(part) + "' of the same module";
      }
    }
    return "";
  }

  const PlanOptions& options_;
  const ShardSet& shards_;
  bool tied_;
};

// Names that become file names: anything else ("/", very long ones) shares the rest's shard.
bool is_plain_name(std::string_view name) {
  constexpr size_t kMaxNameBytes = 200;
  return name.size() <= kMaxNameBytes && !name.starts_with('.') &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

std::string shard_file_name(std::string module) {
  std::replace(module.begin(), module.end(), '.', '_');
  return module + std::string(kSafetensorsSuffix);
}

}  // namespace

uint64_t PlannedGroup::n_elements() const {
  uint64_t n = 0;
  for (const TensorLocation* member : members) n += member->info.n_elements();
  return n;
}

Result<Plan> make_plan(const Checkpoint& checkpoint, const PlanOptions& options) {
  const Rules rules(checkpoint, options);
  // Spec/planning.md: a repeated block has a shard of its own, an embedding or head group too, and
  // everything else is in one shard named like the source's.
  const std::string rest_name = checkpoint.index_name().empty()
                                    ? checkpoint.shards().shards().front().name
                                    : checkpoint.index_name().substr(
                                          0, checkpoint.index_name().size() - kIndexSuffix.size()) +
                                          std::string(kSafetensorsSuffix);
  std::map<std::string, PlannedShard> shards;
  for (const auto& [name, location] : checkpoint.shards().tensors()) {
    DF11_ASSIGN(std::string reason, rules.reason_verbatim(location));
    const std::string block = block_of(name);
    const std::string owner = !block.empty()   ? block
                              : reason.empty() ? std::string(module_of(name))
                                               : "";
    const std::string file_name =
        owner.empty() || !is_plain_name(owner) ? rest_name : shard_file_name(owner);
    PlannedShard& shard = shards[file_name];
    shard.file_name = file_name;
    if (reason.empty()) {
      shard.groups.push_back({std::string(module_of(name)), {&location}});
    } else {
      shard.verbatim.push_back({&location, std::move(reason)});
    }
  }
  Plan plan;
  for (auto& [name, shard] : shards) plan.shards.push_back(std::move(shard));
  return plan;
}

PatternDict patterns_for(const std::vector<std::string>& group_modules,
                         const std::vector<std::string>& other_modules) {
  const auto generalise = [](const std::string& module) {
    std::string pattern;
    for (const std::string_view part : components(module)) {
      pattern += is_number(part) ? "\\d+" : escape_python_pattern(part);
      pattern += "\\.";
    }
    return pattern.substr(0, pattern.size() - 2);  // no dot after the last part
  };
  std::set<std::string> too_general;
  for (const std::string& module : other_modules) too_general.insert(generalise(module));
  PatternDict patterns;
  std::set<std::string> seen;
  for (const std::string& module : group_modules) {
    std::string pattern = generalise(module);
    if (too_general.contains(pattern)) pattern = escape_python_pattern(module);
    if (seen.insert(pattern).second)
      patterns.emplace_back(std::move(pattern), std::vector<std::string>{});
  }
  return patterns;
}

}  // namespace df11
