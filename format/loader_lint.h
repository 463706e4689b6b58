// What makes upstream's runtime refuse an artifact, or load something else without saying so
// (spec/df11_format.md sections 9 and 10; the rules by id are in spec/verify_report.md).
//
// Artifact::open and load_group refuse what no reader can use; these rules are about valid groups.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "format/artifact.h"

namespace df11 {

enum class LintSeverity : uint8_t {
  kError,    // loading fails, or the model computes with other weights
  kWarning,  // it depends on the model's classes, or costs something else
};
std::string_view lint_severity_name(LintSeverity severity);  // "error", "warning"

struct LintFinding {
  std::string rule;  // stable: "block_over_shared_memory", …
  LintSeverity severity = LintSeverity::kError;
  std::string module;  // or tensor; empty when none is concerned
  std::string file;    // within the artifact
  std::string message;

  friend bool operator<(const LintFinding& a, const LintFinding& b) {
    return std::tie(a.file, a.module, a.rule, a.message) <
           std::tie(b.file, b.module, b.rule, b.message);
  }
};

bool has_errors(const std::vector<LintFinding>& findings);
// A list of {rule, severity, module, file, message}.
Json lint_to_json(const std::vector<LintFinding>& findings);

// All rules; reads the groups' tables and positions, no weights. Findings are sorted.
// Errors: I/O errors.
Result<std::vector<LintFinding>> lint_for_upstream(const Artifact& artifact);

// The rules that need no groups on disk: what a manifest says will be, or is, coded.
std::vector<LintFinding> lint_planned(const Json& config, const Manifest& manifest);

}  // namespace df11
