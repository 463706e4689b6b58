#include "directories/family.h"

#include <algorithm>
#include <stdexcept>

namespace df11::test {

namespace {

// "a.{0..2}.b" -> "a.0.b", "a.1.b", "a.2.b".
Names expanded(const std::string& text) {
  const size_t open = text.find('{'), dots = text.find("..", open), close = text.find('}');
  if (open == text.npos) return {text};
  Names names;
  for (int i = std::stoi(text.substr(open + 1)); i <= std::stoi(text.substr(dots + 2)); ++i)
    names.push_back(text.substr(0, open) + std::to_string(i) + text.substr(close + 1));
  return names;
}

}  // namespace

Json read_json(const fs::path& path) {
  const Result<Json> json = parse_json(read_file(path));
  if (!json) throw std::runtime_error(path.string() + ": " + json.error().describe());
  return *json;
}

PatternDict pattern_dict(const Json& object) {
  return find_pattern_dict(object).value();
}

Names family_names() {
  Names names;
  for (const auto& entry : fs::directory_iterator(DF11_FAMILIES_DIR))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Family::Family(const std::string& name)
    : root_(read_json(fs::path(DF11_FAMILIES_DIR) / (name + ".json"))) {}

void Family::write_checkpoint(const fs::path& directory, bool normal_weights) const {
  std::vector<Tensor> tensors;
  for (const auto& [names, description] : root_["tensors"].items()) {
    const Dtype dtype = parse_dtype(description[0].get<std::string>()).value();
    Shape shape(description.begin() + 1, description.end());
    if (normal_weights && shape.size() == 2) {  // as they are, coding would not make them smaller
      for (uint64_t& extent : shape) extent *= 8;
    }
    for (const std::string& name : expanded(names)) {
      tensors.push_back(normal_weights && dtype == Dtype::kBF16
                            ? weights(name, shape, tensors.size() + 1)
                            : zeros(name, dtype, shape));
    }
  }
  write_safetensors(directory / "model.safetensors", tensors);
  write_file(directory / "config.json", root_["config"].dump());
}

NamesByKey Family::groups(const std::string& granularity) const {
  NamesByKey groups;
  const Json& expected = root_[granularity];
  if (granularity == "tensor") {
    for (const Json& names : expected["coded"]) {
      for (const std::string& module : expanded(names)) groups[module] = {};
    }
    return groups;
  }
  for (const auto& [names, members] : expected["groups"].items()) {
    for (const std::string& module : expanded(names)) groups[module] = members.get<Names>();
  }
  return groups;
}

std::map<std::string, std::string> Family::verbatim(const std::string& granularity) const {
  std::map<std::string, std::string> reasons;
  for (const Json* object : {&root_, &root_[granularity]}) {
    const Json* verbatim = json_find(*object, "verbatim");
    if (verbatim == nullptr) continue;
    for (const auto& [reason, names] : verbatim->items()) {
      for (const Json& name : names) {
        for (const std::string& tensor : expanded(name)) reasons[tensor] = reason;
      }
    }
  }
  return reasons;
}

PatternDict Family::patterns() const {
  const Json& expected = root_["block"];
  if (const Json* name = json_find(expected, "published"); name != nullptr) {
    static const Json published = read_json(DF11_GOLDEN_DIR "/published_pattern_dicts.json");
    return pattern_dict(published[name->get<std::string>()]);
  }
  return json_find(expected, "pattern_dict") == nullptr ? PatternDict{} : pattern_dict(expected);
}

}  // namespace df11::test
