#include "tools/cli/verdict.h"

#include <algorithm>
#include <vector>

#include "tools/cli/app.h"
#include "tools/cli/summary.h"

namespace df11::cli {

namespace {

// "EQUAL", or what was checked instead.
std::string headline(const VerifyReport& report) {
  if (report.level == VerifyLevel::kStructure) {
    return report.equal() ? "STRUCTURE OK, weights not checked" : "STRUCTURE BROKEN";
  }
  return report.equal() ? "EQUAL" : "NOT EQUAL";
}

std::string how(const VerifyReport& report) {
  return report.source.empty() ? "decoded and hashed" : "decoded and compared byte for byte";
}

std::string finding_line(const Finding& finding) {
  std::string line = finding.kind + ": ";
  if (!finding.file.empty()) line += finding.file + ": ";
  if (!finding.tensor.empty()) line += "'" + finding.tensor + "': ";
  return printable(line + finding.message);
}

std::string phases_text(const VerifyReport& report) {
  std::string text;
  for (const Phase& phase : report.phases) {
    text += (text.empty() ? "" : ", ") + phase.name + " " + format_seconds(phase.seconds);
  }
  return text;
}

size_t n_lint_errors(const VerifyReport& report) {
  if (!report.lint) return 0;
  return static_cast<size_t>(
      std::count_if(report.lint->begin(), report.lint->end(),
                    [](const auto& f) { return f.severity == LintSeverity::kError; }));
}

// `text` as Markdown that shows it as it is: everything but plain characters as an HTML entity.
std::string markdown(std::string_view text) {
  constexpr std::string_view kPlain = " .,:;-+/()='";
  std::string escaped;
  for (const char c : printable(text)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       kPlain.find(c) != kPlain.npos || static_cast<unsigned char>(c) >= 0x80;
    escaped += plain ? std::string(1, c) : "&#" + std::to_string(c) + ";";
  }
  return escaped;
}

// Escapes of workflow commands: message text, and property values besides.
std::string command_text(std::string_view text, bool property) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%') {
      escaped += "%25";
    } else if (property && c == ':') {
      escaped += "%3A";
    } else if (property && c == ',') {
      escaped += "%2C";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string annotations(std::string_view type, std::string_view title,
                        const std::vector<std::string>& lines, uint64_t n_not_kept) {
  constexpr size_t kMaxPerStep = 10;
  const uint64_t n_all = lines.size() + n_not_kept;
  const size_t n_shown = n_all <= kMaxPerStep ? lines.size() : kMaxPerStep - 1;
  std::string text;
  const auto add = [&](const std::string& line) {
    text += "::" + std::string(type) + " title=" + command_text(title, true) +
            "::" + command_text(line, false) + "\n";
  };
  for (size_t i = 0; i < n_shown; ++i) add(lines[i]);
  if (n_all > n_shown) add("and " + format_count(n_all - n_shown) + " more, see the report");
  return text;
}

}  // namespace

std::string verdict_text(const VerifyReport& report, double seconds) {
  std::string text;
  for (const Finding& finding : report.findings) text += "  " + finding_line(finding) + "\n";
  if (report.n_findings_dropped != 0) {
    text += "  ... and " + format_count(report.n_findings_dropped) + " more\n";
  }
  for (const std::string& path : report.ignored_files)
    text += "  not checked (--ignore): " + printable(path) + "\n";
  for (const SkippedCheck& skipped : report.skipped)
    text += "  not checked (" + skipped.reason + "): " + skipped.check + "\n";
  for (const std::string& note : report.notes) text += "  note: " + printable(note) + "\n";
  for (const LintFinding& finding : report.lint.value_or(std::vector<LintFinding>{}))
    text += "  for the dfloat11 package: " + lint_line(finding) + "\n";
  if (report.lint) {
    text += "  loader lint: " + format_count(n_lint_errors(report)) + " errors, " +
            format_count(report.lint->size() - n_lint_errors(report)) + " warnings\n";
  }

  if (report.source_hashes) {
    text += "  source files with the expected SHA-256, recomputed from the artifact: " +
            format_count(report.source_hashes->n_equal) + " of " +
            format_count(report.source_hashes->n_listed) + ", " +
            format_bytes(static_cast<double>(report.source_hashes->n_bytes)) + "\n";
  }
  text += printable(report.artifact) + ": " + headline(report);
  if (report.level == VerifyLevel::kStructure) {
    return text + ": " + format_count(report.n_artifact_tensors) + " tensors, " +
           format_count(report.n_artifact_groups) + " groups, " +
           format_count(report.shards.size()) + " shards, " + format_seconds(seconds) + "\n";
  }
  if (report.n_tensors != 0 || report.n_files != 0) {
    text += report.source.empty() ? " to what its manifest records: "
                                  : " to " + printable(report.source) + ": ";
    text += format_count(report.n_tensors) + " tensors, " +
            format_bytes(static_cast<double>(report.weight_bytes)) + " of weights " + how(report) +
            ", " + format_count(report.n_files) + " files, " + format_seconds(seconds);
    if (seconds > 0) {
      text += ", " + format_bytes(static_cast<double>(report.weight_bytes) / seconds) + "/s";
    }
  }
  return text + "\n";
}

std::string verdict_markdown(const VerifyReport& report, double seconds) {
  constexpr size_t kMaxListed = 50;
  std::string text = "### " + std::string(report.passed() ? "✅" : "❌") + " " +
                     markdown(report.artifact) + ": " + headline(report) + "\n\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    text += "| " + std::string(name) + " | " + value + " |\n";
  };
  row("check", "result");
  row("---", "---");
  row("compared with",
      report.level == VerifyLevel::kStructure && !report.has_manifest && report.source.empty()
          ? "nothing"
      : report.source.empty() ? "the manifest"
                              : markdown(report.source));
  if (report.level == VerifyLevel::kFull) {
    row("tensors " + how(report), format_count(report.n_tensors) + " of " +
                                      format_count(report.n_artifact_tensors) + ", " +
                                      format_bytes(static_cast<double>(report.weight_bytes)));
    row("groups decoded",
        format_count(report.n_groups) + " of " + format_count(report.n_artifact_groups));
    row("files", format_count(report.n_files));
    if (report.source_hashes) {
      row("source files with the expected SHA-256",
          format_count(report.source_hashes->n_equal) + " of " +
              format_count(report.source_hashes->n_listed));
    }
  }
  for (const std::string& path : report.ignored_files)
    row("not checked (--ignore)", markdown(path));
  for (const SkippedCheck& skipped : report.skipped)
    row("not checked", markdown(skipped.check + ": " + skipped.reason));
  for (const std::string& note : report.notes) row("note", markdown(note));
  row("time", format_seconds(seconds) + " (" + phases_text(report) + ")");

  std::vector<std::string> lines;
  for (const Finding& finding : report.findings) lines.push_back(finding_line(finding));
  for (const LintFinding& finding : report.lint.value_or(std::vector<LintFinding>{}))
    lines.push_back("loader lint: " + lint_line(finding));
  if (!lines.empty()) text += "\n";
  for (size_t i = 0; i < std::min(lines.size(), kMaxListed); ++i)
    text += "- " + markdown(lines[i]) + "\n";
  const uint64_t n_all = lines.size() + report.n_findings_dropped;
  if (n_all > kMaxListed) text += "- and " + format_count(n_all - kMaxListed) + " more\n";
  return text + "\n";
}

std::string verdict_annotations(const VerifyReport& report) {
  std::vector<std::string> errors, warnings;
  for (const Finding& finding : report.findings) errors.push_back(finding_line(finding));
  for (const LintFinding& finding : report.lint.value_or(std::vector<LintFinding>{})) {
    (finding.severity == LintSeverity::kError ? errors : warnings)
        .push_back("loader lint: " + lint_line(finding));
  }
  const std::string title = printable(report.artifact) + ": " + headline(report);
  return annotations("error", title, errors, report.n_findings_dropped) +
         annotations("warning", title, warnings, 0);
}

}  // namespace df11::cli
