#include "compressor/recipes.h"

#include <algorithm>
#include <set>

namespace df11 {

namespace {

using Names = std::set<std::string>;

void add_name(Names& names, const Json& object, std::string_view key) {
  const Json* value = json_find(object, key);
  if (value != nullptr && value->is_string()) names.insert(value->get<std::string>());
}

Result<const Json*> list_of(const Json& object, std::string_view key) {
  const Json* list = json_find(object, key);
  if (list == nullptr || !list->is_array()) {
    return fail(ErrorCode::malformed_config, "recipes: no list \"" + std::string(key) + "\"");
  }
  return list;
}

Result<bool> names_model(const Json& entry, std::string_view key, const Names& names) {
  DF11_ASSIGN(const Json* models, list_of(entry, key));
  return std::any_of(models->begin(), models->end(), [&](const Json& model) {
    return model.is_string() && names.contains(model.get_ref<const std::string&>());
  });
}

}  // namespace

Result<Recipe> Recipe::for_model(const Json& config, Granularity granularity,
                                 std::string_view text) {
  Names names;
  add_name(names, config, "model_type");
  add_name(names, config, "_class_name");
  Names parts = names;
  if (const Json* part = json_find(config, "text_config"); part != nullptr)
    add_name(parts, *part, "model_type");

  DF11_ASSIGN(const Json root, parse_json(text));
  Recipe recipe;
  DF11_ASSIGN(recipe.tied_by_default, names_model(root, "tied_by_default", parts));

  DF11_ASSIGN(const Json* verbatim, list_of(root, "verbatim"));
  for (const Json& entry : *verbatim) {
    DF11_ASSIGN(const bool applies, names_model(entry, "models", parts));
    const Json* only = json_find(entry, "granularity");
    if (!applies ||
        (only != nullptr && (*only == "tensor") != (granularity == Granularity::kTensor)))
      continue;
    DF11_ASSIGN(const std::string modules, json_string(entry, "modules"));
    DF11_ASSIGN(PythonPattern pattern, PythonPattern::compile(modules));
    DF11_ASSIGN(std::string reason, json_string(entry, "reason"));
    recipe.verbatim.emplace_back(std::move(pattern), std::move(reason));
  }

  if (granularity != Granularity::kBlock) return recipe;
  DF11_ASSIGN(const Json* published, list_of(root, "published"));
  for (const Json& entry : *published) {
    DF11_ASSIGN(const bool applies, names_model(entry, "models", names));
    if (!applies) continue;
    DF11_ASSIGN(recipe.patterns, find_pattern_dict(entry));
    break;
  }
  return recipe;
}

}  // namespace df11
