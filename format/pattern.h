// Patterns: shell globs for files and tensor names, Python regular expressions for module names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/error.h"

namespace df11 {

// fnmatch(3) without special treatment of '/' or leading dots: '*' matches any run of characters.
bool glob_match(const std::string& pattern, const std::string& text);
// A glob that matches `text` alone.
std::string escape_glob(std::string_view text);
bool any_glob_match(const std::vector<std::string>& patterns, const std::string& text);

// Bounds what many matches cost together, so that hostile patterns over many names take seconds,
// not hours: the 45,000 modules of a DeepSeek-V3 against 15 patterns need a third of it.
struct MatchBudget {
  uint64_t steps = 400'000'000;  // of PCRE2's match limit, for each 64 bytes of the text
};

// A Python `re` pattern, matched as re.fullmatch does, through PCRE2 with match limits.
class PythonPattern {
 public:
  // malformed_config when the pattern does not compile.
  static Result<PythonPattern> compile(const std::string& pattern);
  // malformed_config when the budget does not suffice, or a match exceeds PCRE2's limits.
  Result<bool> full_match(std::string_view text, MatchBudget& budget) const;
  // With a budget of its own.
  Result<bool> full_match(std::string_view text) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

// `text` with every character that is special in a Python pattern escaped.
std::string escape_python_pattern(std::string_view text);

}  // namespace df11
