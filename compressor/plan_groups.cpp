#include "compressor/plan_groups.h"

#include <algorithm>
#include <set>

#include "compressor/member_order.h"
#include "format/df11_layout.h"
#include "format/module_names.h"

namespace df11 {

namespace {

// Every module that a tensor's name implies.
std::set<std::string_view> modules_of(const ShardSet& shards) {
  std::set<std::string_view> modules;
  for (const auto& [name, location] : shards.tensors()) {
    for (std::string_view module = parent_of(name); !module.empty(); module = parent_of(module)) {
      if (!modules.insert(module).second) break;
    }
  }
  return modules;
}

// The innermost of `groups` that `name` is in; end() when none is.
template <typename Map>
typename Map::iterator enclosing(Map& groups, std::string_view name) {
  for (; !name.empty(); name = parent_of(name)) {
    if (const auto found = groups.find(std::string(name)); found != groups.end()) return found;
  }
  return groups.end();
}

// Of each module, the group's weights in order.
using Members = std::map<std::string, std::vector<const TensorLocation*>>;

// Whether the tensors can be one group of `module`: the layout's limit, and no member is the
// module's own weight beside others.
bool fits_one_group(const PlannedGroup& group) {
  if (group.members.size() == 1) return true;
  return group.n_elements() <= kMaxGroupElements &&
         std::none_of(group.members.begin(), group.members.end(), [&](const auto* member) {
           return module_of(member->info.name) == group.module;
         });
}

// What cannot be one group becomes one for each tensor, in the same shard.
void add_groups(Grouping& grouping, const Members& members) {
  for (const auto& [module, tensors] : members) {
    if (tensors.empty()) continue;
    std::vector<PlannedGroup>& groups = grouping.groups[module];
    PlannedGroup whole{module, tensors};
    if (fits_one_group(whole)) {
      groups.push_back(std::move(whole));
      continue;
    }
    for (const TensorLocation* tensor : tensors)
      groups.push_back({std::string(module_of(tensor->info.name)), {tensor}});
  }
}

const TensorLocation* find_member(const ShardSet& shards, std::string_view module,
                                  std::string_view member) {
  return shards.find(joined_name(module, member) + std::string(kWeightSuffix));
}

// Member paths of a pattern; the module itself for an empty list.
std::vector<std::string> paths_of(const std::vector<std::string>& members) {
  return members.empty() ? std::vector<std::string>{""} : members;
}

}  // namespace

Result<Grouping> group_by_tensor(const ShardSet& shards, const Rules& rules) {
  Grouping grouping;
  for (const auto& [name, location] : shards.tensors()) {
    const std::string block(repeated_block_of(name));
    if (!block.empty()) grouping.groups[block];
    DF11_ASSIGN(std::string reason, rules.reason_verbatim(location.info, false));
    if (!reason.empty()) {
      grouping.reasons[name] = std::move(reason);
      continue;
    }
    const std::string module(module_of(name));
    grouping.groups[block.empty() ? module : block].push_back({module, {&location}});
  }
  return grouping;
}

Result<Grouping> group_by_block(const ShardSet& shards, const Rules& rules,
                                const PatternDict& published) {
  Members members;
  std::set<const TensorLocation*> taken;
  bool knows_blocks = false;
  DF11_ASSIGN(const ModulePatterns patterns, ModulePatterns::compile(published));
  for (const std::string_view module : modules_of(shards)) {
    DF11_ASSIGN(const std::vector<std::string>* listed, patterns.members_of(module));
    if (listed == nullptr) continue;
    // A matched block takes in what the list does not name, even all of it.
    if (!listed->empty()) members[std::string(module)];
    for (const std::string& path : paths_of(*listed)) {
      const TensorLocation* tensor = find_member(shards, module, path);
      if (tensor == nullptr || taken.contains(tensor)) continue;
      knows_blocks |= !listed->empty();
      DF11_ASSIGN(const std::string reason, rules.reason_verbatim(tensor->info, true));
      if (!reason.empty()) continue;  // found again below
      members[std::string(module)].push_back(tensor);
      taken.insert(tensor);
    }
  }
  if (!knows_blocks) {  // other names than those of the published model
    members.clear();
    taken.clear();
  }

  // What no pattern lists: the rest of a block goes behind the listed members.
  Grouping grouping;
  Members rest;
  for (const auto& [name, location] : shards.tensors()) {
    if (taken.contains(&location)) continue;
    DF11_ASSIGN(std::string reason, rules.reason_verbatim(location.info, false));
    const auto owner = enclosing(members, name);
    const std::string block(repeated_block_of(name));
    if (reason.empty() && knows_blocks && owner == members.end() &&
        !rules.included(location.info)) {
      reason = "not in the groups published for this model";
    }
    if (!reason.empty()) {
      grouping.reasons[name] = std::move(reason);
    } else if (block.empty() || is_embedding_leaf(leaf_of(module_of(name)))) {
      rest[std::string(module_of(name))].push_back(&location);
    } else {
      rest[owner == members.end() ? block : owner->first].push_back(&location);
    }
  }
  for (auto& [module, tensors] : rest) {
    std::sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) {
      return member_before(module_of(a->info.name), module_of(b->info.name));
    });
    std::vector<const TensorLocation*>& listed = members[module];
    listed.insert(listed.end(), tensors.begin(), tensors.end());
  }
  add_groups(grouping, members);
  return grouping;
}

Result<Grouping> group_by_patterns(const ShardSet& shards, const Rules& rules,
                                   const PatternDict& patterns) {
  Members members;
  std::map<const TensorLocation*, std::string> wanted_by;
  const std::set<std::string_view> modules = modules_of(shards);
  for (const auto& [text, listed] : patterns) {
    const auto refuse = [&text = text](const std::string& why, const std::string& tensor = "") {
      return fail(Error{
          ErrorCode::invalid_argument, "module pattern \"" + text + "\" " + why, {}, tensor, {}});
    };
    DF11_ASSIGN(const PythonPattern pattern, PythonPattern::compile(text));
    bool matched = false;
    for (const std::string_view module : modules) {
      DF11_ASSIGN(const bool matches, pattern.full_match(module));
      if (!matches) continue;
      matched = true;
      for (const std::string& path : paths_of(listed)) {
        const std::string name = joined_name(module, path) + std::string(kWeightSuffix);
        const TensorLocation* tensor = shards.find(name);
        if (tensor == nullptr)
          return refuse("asks for a weight that the source does not have", name);
        if (const auto [other, is_new] = wanted_by.emplace(tensor, text); !is_new) {
          return refuse("asks for a weight that \"" + other->second + "\" has already", name);
        }
        if (rules.excluded(tensor->info)) continue;
        if (const std::string reason = rules.reason_impossible(tensor->info); !reason.empty()) {
          return refuse("asks for a weight that no group can hold: " + reason, name);
        }
        members[std::string(module)].push_back(tensor);
      }
    }
    if (!matched) return refuse("matches no module of the source");
  }

  Grouping grouping;
  for (const auto& [name, location] : shards.tensors()) {
    if (rules.excluded(location.info)) {
      grouping.reasons[name] = "excluded by --exclude";
    } else if (!wanted_by.contains(&location)) {
      grouping.reasons[name] = "in no pattern of --pattern-dict";
    }
  }
  add_groups(grouping, members);
  return grouping;
}

}  // namespace df11
