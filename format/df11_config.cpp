#include "format/df11_config.h"

#include "format/checkpoint.h"
#include "format/df11_layout.h"

namespace df11 {

namespace {
auto bad_config(std::string message) {
  return fail(ErrorCode::malformed_config, std::string(kDf11ConfigKey) + ": " + std::move(message));
}

Result<PatternDict> parse_pattern_dict(const Json& object) {
  PatternDict patterns;
  for (const auto& [pattern, members] : object.get_ref<const Json::object_t&>()) {
    std::vector<std::string> paths;
    if (!members.is_array()) return bad_config("members of \"" + pattern + "\" are no list");
    for (const Json& member : members) {
      if (!member.is_string()) return bad_config("a member of \"" + pattern + "\" is no string");
      paths.push_back(member.get<std::string>());
    }
    patterns.emplace_back(pattern, std::move(paths));
  }
  return patterns;
}
}  // namespace

Result<PatternDict> find_pattern_dict(const Json& root) {
  const Json* object = &root;
  if (const Json* config = json_find(*object, kDf11ConfigKey); config != nullptr) object = config;
  const Json* inner = json_find(*object, "pattern_dict");
  if (inner != nullptr) object = inner;
  // A config.json without either key is an object too, but one of other values.
  if (!object->is_object()) return bad_config("the pattern_dict is no object");
  return parse_pattern_dict(*object);
}

Result<Df11Config> Df11Config::from_config(const Json& config) {
  const Json* entry = json_find(config, kDf11ConfigKey);
  if (entry == nullptr) return bad_config("not in config.json");
  if (!entry->is_object()) return bad_config("not an object");
  Df11Config result;
  DF11_ASSIGN(result.version, json_string(*entry, "version"));

  const Json* threads = json_find(*entry, "threads_per_block");
  const Json* bytes = json_find(*entry, "bytes_per_thread");
  if (threads == nullptr || bytes == nullptr) return bad_config("no geometry");
  if (*threads != Json::array({kWindowsPerBlock}) || *bytes != kWindowBytes) {
    return fail(ErrorCode::unsupported, std::string(kDf11ConfigKey) + ": geometry is " +
                                            threads->dump() + " threads of " + bytes->dump() +
                                            " bytes, not [512] of 8");
  }

  const Json* patterns = json_find(*entry, "pattern_dict");
  if (patterns == nullptr || !patterns->is_object())
    return bad_config("no \"pattern_dict\" object");
  DF11_ASSIGN(result.pattern_dict, parse_pattern_dict(*patterns));
  return result;
}

std::string Df11Config::to_json_text() const {
  Json patterns = Json::object();
  for (const auto& [pattern, members] : pattern_dict) patterns[pattern] = members;
  const Json entry = {{"version", version},
                      {"threads_per_block", {kWindowsPerBlock}},
                      {"bytes_per_thread", kWindowBytes},
                      {"pattern_dict", std::move(patterns)}};
  const std::string text = entry.dump(2);
  std::string indented;
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  return indented;
}

Result<ModulePatterns> ModulePatterns::compile(const PatternDict& patterns) {
  ModulePatterns compiled;
  for (const auto& [pattern, members] : patterns) {
    DF11_ASSIGN(PythonPattern regex, PythonPattern::compile(pattern));
    compiled.patterns_.emplace_back(std::move(regex), members);
  }
  return compiled;
}

Result<const std::vector<std::string>*> ModulePatterns::members_of(std::string_view module) const {
  for (const auto& [pattern, members] : patterns_) {
    DF11_ASSIGN(const bool matches, pattern.full_match(module, *budget_));
    if (matches) return &members;
  }
  return nullptr;
}

Result<std::vector<size_t>> ModulePatterns::matching(std::string_view module) const {
  std::vector<size_t> indices;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    DF11_ASSIGN(const bool matches, patterns_[i].first.full_match(module, *budget_));
    if (matches) indices.push_back(i);
  }
  return indices;
}

Result<std::string> splice_df11_config(std::string_view config_text, std::string_view value_text) {
  const std::string member = json_quote(kDf11ConfigKey) + ": " + std::string(value_text);
  if (config_text.empty()) return "{\n  " + member + "\n}\n";
  DF11_ASSIGN(const Json config, parse_json(config_text));
  if (!config.is_object()) return bad_config("config.json is no object");
  if (json_find(config, kDf11ConfigKey) != nullptr) return bad_config("already in config.json");

  // The text is one valid object, so its last '}' closes it.
  const size_t brace = config_text.rfind('}');
  const size_t last = config_text.find_last_not_of(" \t\r\n", brace - 1);
  std::string text(config_text.substr(0, last + 1));
  if (!config.empty()) text += ',';
  text += "\n  " + member;
  // What stood between the last member and the brace stays; an object on one line gets a line
  // break.
  if (last + 1 == brace) text += '\n';
  text += config_text.substr(last + 1);
  return text;
}

namespace {

constexpr std::string_view kJsonSpace = " \t\r\n";

// One past the end of the JSON string that begins at `at`. The text is valid JSON.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// The ',' or '}' after the member value that begins at `at`.
size_t end_of_value(std::string_view text, size_t at) {
  for (int depth = 0;;) {
    const char c = text[at];
    if (depth == 0 && (c == ',' || c == '}')) return at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    at = c == '"' ? end_of_string(text, at) : at + 1;
  }
}

}  // namespace

Result<std::string> remove_df11_config(std::string_view config_text) {
  DF11_ASSIGN(const Json config, parse_json(config_text));
  if (json_find(config, kDf11ConfigKey) == nullptr) return bad_config("not in config.json");

  // The text is one valid object with that member: walk its members.
  size_t before = config_text.find('{');  // the '{' or ',' before the member
  for (;;) {
    const size_t key = config_text.find('"', before);
    const size_t key_end = end_of_string(config_text, key);
    const size_t after = end_of_value(config_text, config_text.find(':', key_end) + 1);
    DF11_ASSIGN(const Json name, parse_json(config_text.substr(key, key_end - key)));
    if (name != kDf11ConfigKey) {
      before = after;
      continue;
    }
    // The comma before the member goes with it; the one after it, if it is the first of several.
    size_t begin = before, end = after;
    if (config_text[before] == '{') {
      begin = before + 1;
      if (config_text[after] == ',') end = after + 1;
    }
    if (config_text[end] == '}')
      end = config_text.find_last_not_of(kJsonSpace, end - 1) + 1;  // what precedes the brace stays
    return std::string(config_text.substr(0, begin)) + std::string(config_text.substr(end));
  }
}

}  // namespace df11
