// Patterns: shell globs for files and tensor names, Python regular expressions for module names.
#pragma once

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

// A Python `re` pattern, matched as re.fullmatch does, through PCRE2 with match limits.
class PythonPattern {
 public:
  // malformed_config when the pattern does not compile.
  static Result<PythonPattern> compile(const std::string& pattern);
  // malformed_config when a match exceeds PCRE2's step or memory limits (a hostile pattern).
  Result<bool> full_match(std::string_view text) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

// `text` with every character that is special in a Python pattern escaped.
std::string escape_python_pattern(std::string_view text);

}  // namespace df11
