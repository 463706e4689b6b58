#include "compressor/plan_patterns.h"

#include <map>
#include <set>
#include <string_view>

#include "format/module_names.h"

namespace df11 {

namespace {

// The module's name as a pattern, with \d+ for its numbers.
std::string generalised(std::string_view module) {
  std::string pattern;
  for (const std::string_view part : name_components(module)) {
    pattern += is_all_digits(part) ? "\\d+" : escape_python_pattern(part);
    pattern += "\\.";
  }
  return pattern.substr(0, pattern.size() - 2);  // no dot after the last part
}

class Patterns {
 public:
  Patterns(const std::vector<CodedModule>& groups, const std::vector<std::string>& others) {
    for (const CodedModule& group : groups) pending_[group.module] = &group.members;
    std::set<std::string_view> weights(others.begin(), others.end());
    for (const CodedModule& group : groups) weights.insert(group.module);
    std::set<std::string_view> all;
    for (std::string_view module : weights) {
      while (all.insert(module).second && !parent_of(module).empty()) module = parent_of(module);
    }
    weights_.assign(weights.begin(), weights.end());
    all_.assign(all.begin(), all.end());
  }

  Result<void> add_preferred(const PatternDict& preferred) {
    for (const auto& [text, members] : preferred) {
      DF11_ASSIGN(const PythonPattern pattern, PythonPattern::compile(text));
      std::vector<std::string_view> matched;
      bool fits = true;
      for (const std::string_view module : candidates(members)) {
        DF11_ASSIGN(const bool matches, pattern.full_match(module));
        if (!matches) continue;
        matched.push_back(module);
        const auto group = pending_.find(module);
        fits &= group != pending_.end() && *group->second == members;
      }
      if (!fits || matched.empty()) continue;
      for (const std::string_view module : matched) pending_.erase(module);
      patterns_.emplace_back(text, members);
    }
    return {};
  }

  void add_derived() {
    // Pattern text and members -> the modules it is for.
    std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::string_view>> alike;
    for (const auto& [module, members] : pending_) {
      alike[{generalised(module), *members}].push_back(module);
    }
    std::map<std::string, size_t> n_weights, n_all;  // modules that a pattern would match
    for (const std::string_view module : weights_) ++n_weights[generalised(module)];
    for (const std::string_view module : all_) ++n_all[generalised(module)];
    for (const auto& [module, members] : pending_) {
      const std::string text = generalised(module);
      const std::vector<std::string_view>& modules = alike[{text, *members}];
      if (modules.size() == (members->empty() ? n_weights : n_all)[text]) {
        if (modules.front() == module) patterns_.emplace_back(text, *members);
      } else if (members->empty()) {
        patterns_.emplace_back(escape_python_pattern(module), *members);
      } else if (modules.front() == module) {
        add_alternatives(modules, *members);
      }
    }
  }

  PatternDict take() { return std::move(patterns_); }

 private:
  // A pattern without members is about modules that have a weight themselves.
  const std::vector<std::string_view>& candidates(const std::vector<std::string>& members) const {
    return members.empty() ? weights_ : all_;
  }

  // Long lists of members are written once for many modules.
  void add_alternatives(const std::vector<std::string_view>& modules,
                        const std::vector<std::string>& members) {
    constexpr size_t kMaxPatternBytes = 8192;
    std::string text;
    for (const std::string_view module : modules) {
      const std::string name = escape_python_pattern(module);
      if (!text.empty() && text.size() + name.size() > kMaxPatternBytes) {
        patterns_.emplace_back(std::move(text), members);
        text.clear();
      }
      text += (text.empty() ? "" : "|") + name;
    }
    patterns_.emplace_back(std::move(text), members);
  }

  std::map<std::string_view, const std::vector<std::string>*> pending_;
  std::vector<std::string_view> weights_;  // modules with a weight, coded or not
  std::vector<std::string_view> all_;      // and all that contain them
  PatternDict patterns_;
};

}  // namespace

Result<PatternDict> patterns_for(const std::vector<CodedModule>& groups,
                                 const std::vector<std::string>& others,
                                 const PatternDict& preferred) {
  Patterns patterns(groups, others);
  DF11_TRY(patterns.add_preferred(preferred));
  patterns.add_derived();
  return patterns.take();
}

}  // namespace df11
