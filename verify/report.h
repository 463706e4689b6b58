// What a verification found, as data and as JSON; text for people is made in tools/.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "format/error.h"

namespace df11 {

// One thing that is not as it must be.
struct Finding {
  std::string kind;    // stable: "tensor_differs", "file_missing", … (spec/verify_report.md)
  std::string file;    // within the artifact, or a path
  std::string tensor;  // empty when no tensor is concerned
  std::string message;

  friend bool operator<(const Finding& a, const Finding& b) {
    return std::tie(a.file, a.tensor, a.kind, a.message) <
           std::tie(b.file, b.tensor, b.kind, b.message);
  }
};

struct VerifyReport {
  std::string artifact;
  std::string source;  // empty: against the manifest
  bool has_manifest = false;
  std::string decoder;                     // "cpu", …
  uint64_t n_groups = 0;                   // decoded in full
  uint64_t n_tensors = 0;                  // compared or hashed in full, groups' members included
  uint64_t weight_bytes = 0;               // of those tensors
  uint64_t n_files = 0;                    // whose SHA-256 or bytes were checked
  std::vector<std::string> ignored_files;  // skipped by --ignore
  std::vector<std::string> notes;          // what was accepted with a remark
  std::vector<Finding> findings;           // sorted; empty: everything is equal
  uint64_t n_findings_dropped = 0;         // beyond the kept ones

  bool equal() const { return findings.empty(); }
};

std::string to_json(const VerifyReport& report, double seconds);

// Collects findings from several threads.
class Findings {
 public:
  static constexpr size_t kMaxKept = 1000;

  void add(Finding finding);
  // An error met while checking: the artifact is not what it should be.
  void add(std::string kind, const Error& error);
  void move_to(VerifyReport& report);

 private:
  std::mutex mutex_;
  std::set<Finding> findings_;  // the first kMaxKept in order, whichever thread finds them when
  uint64_t n_dropped_ = 0;
};

}  // namespace df11
