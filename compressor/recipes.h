// What the planner knows about particular model classes: recipes.json, built into the library.
//
// Rules on names and shapes carry most models; a recipe is for the rest: modules that are no
// Linear, and the groups that upstream published.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/df11_config.h"
#include "format/error.h"
#include "format/json.h"

namespace df11 {

enum class Granularity { kTensor, kBlock };

// The text of recipes.json.
std::string_view recipes_text();

// What recipes.json says about the model of one config.json, found by its `model_type` or
// `_class_name`, and for all but the published groups by text_config.model_type too.
struct Recipe {
  // Whether embedding and head share weights when config.json does not say so.
  bool tied_by_default = false;
  // Upstream's published groups for block granularity; empty when there are none.
  PatternDict patterns;
  // Modules that no group may hold, and why.
  std::vector<std::pair<PythonPattern, std::string>> verbatim;

  // Errors: those of a recipes.json that is wrong.
  static Result<Recipe> for_model(const Json& config, Granularity granularity,
                                  std::string_view text = recipes_text());
};

}  // namespace df11
