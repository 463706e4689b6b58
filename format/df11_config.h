// The dfloat11_config entry of config.json, and how it gets in there (spec/df11_format.md section
// 7).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/error.h"
#include "format/json.h"
#include "format/pattern.h"

namespace df11 {

// Version of upstream whose layout we write; upstream's loader ignores it.
inline constexpr std::string_view kDf11LayoutVersion = "0.5.0";

// Module-name pattern to member paths, in file order. No members: the module itself is the Linear
// or Embedding.
using PatternDict = std::vector<std::pair<std::string, std::vector<std::string>>>;

// The pattern_dict in a file that someone wrote: the object of patterns itself, an object with it
// under "pattern_dict", or a config.json with a "dfloat11_config". malformed_config otherwise.
Result<PatternDict> find_pattern_dict(const Json& root);

struct Df11Config {
  std::string version;
  PatternDict pattern_dict;

  // Reads the entry from a parsed config.json.
  // Errors: malformed_config when it is missing or not of the known form; unsupported for another
  // geometry than 8 bytes a thread and 512 threads.
  static Result<Df11Config> from_config(const Json& config);
  // The entry's value as JSON text, indented for a member of a top-level object.
  std::string to_json_text() const;
};

// pattern_dict, compiled. Not for several threads at once.
class ModulePatterns {
 public:
  static Result<ModulePatterns> compile(const PatternDict& patterns);
  // Members of the first pattern that matches `module`; null when none does.
  Result<const std::vector<std::string>*> members_of(std::string_view module) const;
  // Indices, in file order, of all patterns that match `module`.
  Result<std::vector<size_t>> matching(std::string_view module) const;

 private:
  std::vector<std::pair<PythonPattern, std::vector<std::string>>> patterns_;
  std::unique_ptr<MatchBudget> budget_ = std::make_unique<MatchBudget>();  // of all matches
};

// `config_text` with one member "dfloat11_config" of value `value_text` added at the end of its
// top-level object; every other byte is kept. An empty text gives an object with that one member.
// malformed_config when it is no JSON object or has the member already.
Result<std::string> splice_df11_config(std::string_view config_text, std::string_view value_text);

// `config_text` without its top-level member "dfloat11_config" and the comma that goes with it;
// every other byte is kept. What splice_df11_config made of an object of several lines becomes that
// object again. malformed_config when it is no JSON object or has no such member.
Result<std::string> remove_df11_config(std::string_view config_text);

}  // namespace df11
