#include "verify/report.h"

#include <iterator>

#include "format/json.h"
#include "format/version.h"

namespace df11 {

void Findings::add(Finding finding) {
  const std::lock_guard lock(mutex_);
  findings_.insert(std::move(finding));
  if (findings_.size() > kMaxKept) {
    findings_.erase(std::prev(findings_.end()));
    ++n_dropped_;
  }
}

void Findings::add(std::string kind, const Error& error) {
  std::string message = error.message;
  if (error.offset_bytes)
    message = "at byte " + std::to_string(*error.offset_bytes) + ": " + message;
  add({std::move(kind), error.file, error.tensor, std::move(message)});
}

void Findings::move_to(VerifyReport& report) {
  report.findings.assign(findings_.begin(), findings_.end());
  report.n_findings_dropped = n_dropped_;
}

std::string_view VerifyReport::verdict() const {
  if (level == VerifyLevel::kStructure) return equal() ? "structure_ok" : "structure_broken";
  return equal() ? "equal" : "not_equal";
}

std::string_view VerifyReport::method() const {
  if (level == VerifyLevel::kStructure) return "structure_only";
  return source.empty() ? "decoded_and_hashed" : "decoded_and_compared";
}

namespace {

Json to_json(const Finding& finding) {
  Json entry = {{"kind", finding.kind},
                {"file", finding.file},
                {"tensor", finding.tensor},
                {"message", finding.message}};
  if (const std::optional<Difference>& at = finding.difference) {
    entry["offset_bytes"] = at->offset_bytes;
    entry["element"] = at->element ? Json(*at->element) : Json(nullptr);
    entry["artifact_word"] = at->artifact_word;
    entry["source_word"] = at->source_word;
  }
  return entry;
}

}  // namespace

std::string to_json(const VerifyReport& report, double seconds) {
  Json findings = Json::array(), skipped = Json::array(), phases = Json::object();
  Json first_difference = nullptr, source_hashes = nullptr;
  for (const Finding& finding : report.findings) {
    findings.push_back(to_json(finding));
    if (first_difference.is_null() && finding.kind == "tensor_differs")
      first_difference = findings.back();
  }
  for (const SkippedCheck& skip : report.skipped)
    skipped.push_back({{"check", skip.check}, {"reason", skip.reason}});
  for (const Phase& phase : report.phases) phases[phase.name] = phase.seconds;
  if (report.source_hashes) {
    source_hashes = {{"listed", report.source_hashes->n_listed},
                     {"equal", report.source_hashes->n_equal},
                     {"bytes", report.source_hashes->n_bytes}};
  }
  const Json root = {{"report", "df11-verify"},
                     {"schema_version", 1},
                     {"tool_version", kVersion},
                     {"verdict", report.verdict()},
                     {"proven_equal", report.proven_equal()},
                     {"passed", report.passed()},
                     {"level", report.level == VerifyLevel::kFull ? "full" : "structure"},
                     {"method", report.method()},
                     {"artifact", report.artifact},
                     {"source", report.source},
                     {"has_manifest", report.has_manifest},
                     {"decoder", report.decoder},
                     {"artifact_shards", report.shards.size()},
                     {"artifact_groups", report.n_artifact_groups},
                     {"artifact_tensors", report.n_artifact_tensors},
                     {"groups", report.n_groups},
                     {"tensors", report.n_tensors},
                     {"weight_bytes", report.weight_bytes},
                     {"files", report.n_files},
                     {"seconds", seconds},
                     {"phase_seconds", std::move(phases)},
                     {"expected_source_sha256", std::move(source_hashes)},
                     {"ignored_files", report.ignored_files},
                     {"skipped", std::move(skipped)},
                     {"notes", report.notes},
                     {"first_difference", std::move(first_difference)},
                     {"findings", std::move(findings)},
                     {"findings_dropped", report.n_findings_dropped},
                     {"lint", report.lint ? lint_to_json(*report.lint) : Json(nullptr)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace df11
