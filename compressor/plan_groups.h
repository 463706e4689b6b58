// Which coded tensors share a codebook (spec/planning.md section 3).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compressor/plan_rules.h"

namespace df11 {

struct Grouping {
  // By the module whose shard holds them: usually one group, that module's own. A block without any
  // group may have an entry, to have a shard.
  std::map<std::string, std::vector<PlannedGroup>> groups;
  std::map<std::string, std::string> reasons;  // of every other tensor, by name
};

// A group for every tensor that the rules let in.
Result<Grouping> group_by_tensor(const ShardSet& shards, const Rules& rules);

// A group for every repeated block: as `published` says where its patterns match a block, else with
// all of the block's tensors that the rules let in.
Result<Grouping> group_by_block(const ShardSet& shards, const Rules& rules,
                                const PatternDict& published);

// A group for every module that a pattern matches, as upstream's compress_model makes them; all
// else is verbatim. Errors: invalid_argument when a pattern matches no module, names a weight that
// does not exist or that no group can hold, or when two patterns want the same one.
Result<Grouping> group_by_patterns(const ShardSet& shards, const Rules& rules,
                                   const PatternDict& patterns);

}  // namespace df11
