#include "compressor/plan.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "format/df11_layout.h"
#include "format/module_names.h"
#include "format/pattern.h"

namespace df11 {

namespace {

class Rules {
 public:
  Rules(const Checkpoint& checkpoint, const PlanOptions& options)
      : options_(options),
        shards_(checkpoint.shards()),
        tied_(config_says_tied(checkpoint.config())) {
    bool has_head = false;
    for (const auto& [name, location] : checkpoint.shards().tensors()) {
      has_head |= name.ends_with(kWeightSuffix) && is_head_leaf(leaf_of(module_of(name)));
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

    const std::string_view leaf = leaf_of(module_of(name));
    if (!repeated_block_of(name).empty()) {
      if (is_router_leaf(leaf)) return "a router, not a plain Linear in every runtime";
      return std::string();
    }
    if (is_embedding_leaf(leaf) || is_head_leaf(leaf)) {
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
    const std::string block(repeated_block_of(name));
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
    for (const std::string_view part : name_components(module)) {
      pattern += is_all_digits(part) ? "\\d+" : escape_python_pattern(part);
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
