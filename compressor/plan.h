// Which tensors form groups, which stay verbatim and why, and which shard each goes to. Derived
// from names, dtypes, shapes and config.json alone: no weights are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compressor/recipes.h"
#include "format/checkpoint.h"
#include "format/df11_config.h"

namespace df11 {

struct PlanOptions {
  std::vector<std::string> include;  // globs on tensor names: group these even if the rules say no
  std::vector<std::string>
      exclude;  // globs on tensor names: keep these verbatim; wins over include
  Granularity granularity = Granularity::kTensor;
  // Groups as upstream's compress_model would make them, in place of the rules and the granularity.
  std::optional<PatternDict> patterns = {};
};

// "tensor", "block" or "pattern_dict": what decided on the groups.
std::string_view granularity_name(const PlanOptions& options);

// One or several weight tensors coded with one codebook, under a module's name.
struct PlannedGroup {
  std::string module;
  std::vector<const TensorLocation*> members;

  uint64_t n_elements() const;
  // Of the members, relative to the module; none when the one member is the module's own weight.
  std::vector<std::string> member_paths() const;
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
  SafetensorsMetadata metadata;
};

struct Plan {
  std::vector<PlannedShard> shards;  // by file name
  PatternDict patterns;              // to be written where they fit: patterns_for
};

// Every 2-D BF16 `.weight` of a repeated block, and the embedding and output head unless they are
// tied, is coded: in a group of its own, or in one with the rest of its block (spec/planning.md).
// Errors: invalid_argument when an include glob matches a tensor that no group can hold, or when
// options.patterns do not fit the source; malformed_config when one does not compile.
Result<Plan> make_plan(const Checkpoint& checkpoint, const PlanOptions& options);

}  // namespace df11
