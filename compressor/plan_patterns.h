// The pattern_dict that config.json gets (spec/planning.md section 5).
#pragma once

#include <string>
#include <vector>

#include "format/df11_config.h"

namespace df11 {

struct CodedModule {
  std::string module;
  std::vector<std::string> members;  // paths; empty when it is the module's own weight
};

// Patterns of which exactly one matches each of `groups`, with its members, and none a module of
// `others`, which keep their weights, or one that contains modules.
//
// Those of `preferred` are used where all that they match are groups with the listed members; what
// is left is named by patterns with \d+ for numbers where those match nothing else, and else by its
// own name. Errors: malformed_config when a preferred pattern does not compile.
Result<PatternDict> patterns_for(const std::vector<CodedModule>& groups,
                                 const std::vector<std::string>& others,
                                 const PatternDict& preferred);

}  // namespace df11
