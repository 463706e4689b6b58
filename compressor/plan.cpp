#include "compressor/plan.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "compressor/plan_groups.h"
#include "compressor/plan_rules.h"
#include "format/module_names.h"

namespace df11 {

namespace {

// Names that become file names: anything else ("/", very long ones) shares the rest's shard.
bool is_plain_name(std::string_view name) {
  constexpr size_t kMaxNameBytes = 200;
  return !name.empty() && name.size() <= kMaxNameBytes && !name.starts_with('.') &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

std::string shard_file_name(std::string module) {
  std::replace(module.begin(), module.end(), '.', '_');
  return module + std::string(kSafetensorsSuffix);
}

// The innermost module of grouping.groups that `name` is in; "" when it is in none.
std::string owner_of(const Grouping& grouping, std::string_view name) {
  while (!name.empty() && !grouping.groups.contains(std::string(name))) name = parent_of(name);
  return std::string(name);
}

Result<Grouping> group_tensors(const ShardSet& shards, const Rules& rules, const Recipe& recipe,
                               const PlanOptions& options) {
  if (options.patterns) return group_by_patterns(shards, rules, *options.patterns);
  if (options.granularity == Granularity::kBlock)
    return group_by_block(shards, rules, recipe.patterns);
  return group_by_tensor(shards, rules);
}

}  // namespace

std::string_view granularity_name(const PlanOptions& options) {
  if (options.patterns) return "pattern_dict";
  return options.granularity == Granularity::kBlock ? "block" : "tensor";
}

uint64_t PlannedGroup::n_elements() const {
  uint64_t n = 0;
  for (const TensorLocation* member : members) n += member->info.n_elements();
  return n;
}

std::vector<std::string> PlannedGroup::member_paths() const {
  std::vector<std::string> paths;
  for (const TensorLocation* member : members) {
    const std::string_view path = module_of(member->info.name);
    if (path != module) paths.emplace_back(path.substr(module.size() + 1));
  }
  return paths;
}

Result<Plan> make_plan(const Checkpoint& checkpoint, const PlanOptions& options) {
  DF11_ASSIGN(const Recipe recipe, Recipe::for_model(checkpoint.config(), options.granularity));
  const Rules rules(checkpoint, options, recipe);
  DF11_ASSIGN(Grouping grouping, group_tensors(checkpoint.shards(), rules, recipe, options));

  // Spec/planning.md section 4: a repeated block has a shard of its own, an embedding or head group
  // too, and everything else is in one shard named like the source's.
  const std::string rest_name = checkpoint.index_name().empty()
                                    ? checkpoint.shards().shards().front().name
                                    : checkpoint.index_name().substr(
                                          0, checkpoint.index_name().size() - kIndexSuffix.size()) +
                                          std::string(kSafetensorsSuffix);
  const bool like_upstream = options.patterns || options.granularity == Granularity::kBlock;
  std::map<std::string, PlannedShard> shards;
  const auto shard_of = [&](const std::string& owner) -> PlannedShard& {
    const std::string file_name = is_plain_name(owner) ? shard_file_name(owner) : rest_name;
    PlannedShard& shard = shards[file_name];
    shard.file_name = file_name;
    // Upstream writes the modules' shards without metadata, and leaves the rest to save_pretrained.
    if (!like_upstream || file_name == rest_name) shard.metadata = {{"format", "pt"}};
    return shard;
  };
  for (auto& [owner, groups] : grouping.groups) {
    for (PlannedGroup& group : groups) shard_of(owner).groups.push_back(std::move(group));
  }
  for (auto& [name, reason] : grouping.reasons) {
    shard_of(owner_of(grouping, name))
        .verbatim.push_back({checkpoint.shards().find(name), std::move(reason)});
  }
  Plan plan;
  plan.patterns = options.patterns ? *options.patterns : recipe.patterns;
  for (auto& [name, shard] : shards) {
    std::sort(shard.groups.begin(), shard.groups.end(),
              [](const PlannedGroup& a, const PlannedGroup& b) { return a.module < b.module; });
    plan.shards.push_back(std::move(shard));
  }
  return plan;
}

}  // namespace df11
