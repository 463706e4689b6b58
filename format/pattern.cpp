#include "format/pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <new>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace df11 {

namespace {
constexpr uint32_t kHeapLimitKib = 20'000;
constexpr size_t kMaxPatternBytes = 64 * 1024;

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}
}  // namespace

bool glob_match(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string escape_glob(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool any_glob_match(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, text); });
}

struct PythonPattern::Code {
  pcre2_code* code = nullptr;
  std::string text;
  ~Code() { pcre2_code_free(code); }
};

Result<PythonPattern> PythonPattern::compile(const std::string& pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail(ErrorCode::limit_exceeded, "a module pattern is longer than 64 KiB");
  }
  int error_code = 0;
  PCRE2_SIZE error_offset = 0;
  auto compiled = std::make_shared<Code>();
  compiled->text = pattern;
  // Python patterns on str are Unicode, \\d and \\w included.
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED | PCRE2_ENDANCHORED |
                                     PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY,
                                 &error_code, &error_offset, nullptr);
  if (compiled->code == nullptr) {
    return fail(ErrorCode::malformed_config,
                "module pattern \"" + pattern + "\" does not compile: " +
                    pcre2_message(error_code) + " at character " + std::to_string(error_offset));
  }
  PythonPattern result;
  result.code_ = std::move(compiled);
  return result;
}

Result<bool> PythonPattern::full_match(std::string_view text, MatchBudget& budget) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  if (!data || !limits) throw std::bad_alloc();
  pcre2_set_heap_limit(limits.get(), kHeapLimitKib);
  // PCRE2 does not say how many steps a match took, so the limit is raised until it suffices.
  constexpr uint32_t kFirstLimit = 100;
  int status = PCRE2_ERROR_MATCHLIMIT;
  for (uint32_t limit = kFirstLimit; status == PCRE2_ERROR_MATCHLIMIT; limit *= 10) {
    const uint64_t cost = limit * (1 + text.size() / 64);
    if (cost > budget.steps) break;
    budget.steps -= cost;
    pcre2_set_match_limit(limits.get(), limit);
    status = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                         data.get(), limits.get());
  }
  if (status >= 0) return true;
  if (status == PCRE2_ERROR_NOMATCH) return false;
  return fail(ErrorCode::malformed_config,
              "module pattern \"" + code_->text +
                  "\" cannot be matched within limits: " + pcre2_message(status));
}

Result<bool> PythonPattern::full_match(std::string_view text) const {
  MatchBudget budget;
  return full_match(text, budget);
}

std::string escape_python_pattern(std::string_view text) {
  static constexpr std::string_view kSpecial = R"(.^$*+?{}[]\|()-&~# )";
  std::string escaped;
  for (const char c : text) {
    if (kSpecial.find(c) != kSpecial.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace df11
