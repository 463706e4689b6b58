// Whether a tensor may be coded, from its name, dtype and shape, config.json and the recipe of the
// model (spec/planning.md section 2).
#pragma once

#include <string>

#include "compressor/plan.h"
#include "compressor/recipes.h"

namespace df11 {

class Rules {
 public:
  // All three must outlive the rules.
  Rules(const Checkpoint& checkpoint, const PlanOptions& options, const Recipe& recipe);

  // Why no option can put `tensor` into a group; empty when one can.
  std::string reason_impossible(const TensorInfo& tensor) const;
  bool excluded(const TensorInfo& tensor) const;
  bool included(const TensorInfo& tensor) const;

  // Why `tensor` stays verbatim; empty when it is to be coded. `published`: upstream's pattern for
  // this model names it, which settles where in the model a weight may be.
  // Errors: invalid_argument when --include asks for what is impossible.
  Result<std::string> reason_verbatim(const TensorInfo& tensor, bool published) const;

 private:
  const PlanOptions& options_;
  const ShardSet& shards_;
  const Recipe& recipe_;
  bool tied_;
};

}  // namespace df11
