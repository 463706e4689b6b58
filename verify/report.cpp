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

std::string to_json(const VerifyReport& report, double seconds) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"kind", finding.kind},
                        {"file", finding.file},
                        {"tensor", finding.tensor},
                        {"message", finding.message}});
  }
  const Json root = {
      {"report", "df11-verify"},
      {"report_version", 1},
      {"tool_version", kVersion},
      {"verdict", report.equal() ? "equal" : "not_equal"},
      {"artifact", report.artifact},
      {"source", report.source},
      {"has_manifest", report.has_manifest},
      {"method", report.source.empty() ? "decoded_and_hashed" : "decoded_and_compared"},
      {"decoder", report.decoder},
      {"groups", report.n_groups},
      {"tensors", report.n_tensors},
      {"weight_bytes", report.weight_bytes},
      {"files", report.n_files},
      {"seconds", seconds},
      {"ignored_files", report.ignored_files},
      {"notes", report.notes},
      {"findings", std::move(findings)},
      {"findings_dropped", report.n_findings_dropped}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace df11
