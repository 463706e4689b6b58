// Which tensors form groups, which stay verbatim and why, and which shard each goes to. Derived
// from names, dtypes, shapes and config.json alone: no weights are read.
#pragma once

#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "format/df11_config.h"

namespace df11 {

struct PlanOptions {
  std::vector<std::string> include;  // globs on tensor names: group these even if the rules say no
  std::vector<std::string>
      exclude;  // globs on tensor names: keep these verbatim; wins over include
};

// One or several weight tensors coded with one codebook, under a module's name.
struct PlannedGroup {
  std::string module;
  std::vector<const TensorLocation*> members;

  uint64_t n_elements() const;
};

struct VerbatimTensor {
  const TensorLocation* tensor;
  std::string reason;
};

// What one output file holds.
struct PlannedShard {
  std::string file_name;
  std::vector<PlannedGroup> groups;      // by module
  std::vector<VerbatimTensor> verbatim;  // by name
};

struct Plan {
  std::vector<PlannedShard> shards;  // by file name
};

// Per-tensor groups: every 2-D BF16 `.weight` of a repeated block, and the embedding and output
// head unless they are tied, forms a group of its own (spec/planning.md). Errors: invalid_argument
// when an include pattern matches a tensor that no group can hold.
Result<Plan> make_plan(const Checkpoint& checkpoint, const PlanOptions& options);

// The pattern_dict for per-tensor groups of these modules. Numbers in names become \d+ where that
// matches no module of `other_modules`, which hold weights but form no group.
PatternDict patterns_for(const std::vector<std::string>& group_modules,
                         const std::vector<std::string>& other_modules);

}  // namespace df11
