// What a verification found, as data, JSON and JUnit XML; text for people is made in tools/.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "format/error.h"
#include "format/loader_lint.h"

namespace df11 {

enum class VerifyLevel : uint8_t {
  kStructure,  // headers, groups' tables and positions, index, listing, manifest: no weights
  kFull,       // and every byte of every tensor and file
};

// Where a tensor first differs from the source's. Words are hex ("0x3f80"), as wide as the dtype.
struct Difference {
  uint64_t offset_bytes = 0;        // in the tensor
  std::optional<uint64_t> element;  // nothing for dtypes of less than a byte
  std::string artifact_word, source_word;
};

// One thing that is not as it must be.
struct Finding {
  std::string kind;    // stable: "tensor_differs", "file_missing", … (spec/verify_report.md)
  std::string file;    // within the artifact, or a path
  std::string tensor;  // empty when no tensor is concerned
  std::string message;
  std::optional<Difference> difference = {};

  friend bool operator<(const Finding& a, const Finding& b) {
    return std::tie(a.file, a.tensor, a.kind, a.message) <
           std::tie(b.file, b.tensor, b.kind, b.message);
  }
};

// A check that was not done, and why that is all right.
struct SkippedCheck {
  std::string check;
  std::string reason;
};

struct Phase {
  std::string name;
  double seconds = 0;
};

// Source files whose SHA-256 was recomputed from the artifact and compared with a published list.
struct SourceHashes {
  uint64_t n_listed = 0;
  uint64_t n_equal = 0;
  uint64_t n_bytes = 0;  // of the equal ones
};

struct VerifyReport {
  std::string artifact;
  std::string source;  // empty: against the manifest
  VerifyLevel level = VerifyLevel::kFull;
  bool has_manifest = false;
  std::string decoder;                     // "cpu", …
  uint64_t n_artifact_tensors = 0;         // in the artifact, groups' members included
  uint64_t n_artifact_groups = 0;          // in the artifact
  uint64_t n_groups = 0;                   // decoded in full
  uint64_t n_tensors = 0;                  // compared or hashed in full, groups' members included
  uint64_t weight_bytes = 0;               // of those tensors
  uint64_t n_files = 0;                    // whose SHA-256 or bytes were checked
  std::vector<std::string> shards;         // of the artifact
  std::vector<std::string> ignored_files;  // skipped by --ignore
  std::vector<SkippedCheck> skipped;       // other checks that were not done
  std::vector<std::string> notes;          // what was accepted with a remark
  std::optional<SourceHashes> source_hashes;
  std::vector<Finding> findings;    // sorted; empty: everything that was checked is equal
  uint64_t n_findings_dropped = 0;  // beyond the kept ones
  std::optional<std::vector<LintFinding>> lint;  // nothing when it was not asked for
  std::vector<Phase> phases;                     // in order

  bool equal() const { return findings.empty(); }
  // Every byte was checked, and no check left out on request.
  bool proven_equal() const {
    return level == VerifyLevel::kFull && equal() && ignored_files.empty() && skipped.empty();
  }
  // What was asked for holds: exit code 0.
  bool passed() const { return equal() && !(lint && has_errors(*lint)); }
  // "equal", "not_equal", "structure_ok" or "structure_broken".
  std::string_view verdict() const;
  // "decoded_and_compared", "decoded_and_hashed" or "structure_only".
  std::string_view method() const;
};

std::string to_json(const VerifyReport& report, double seconds);
// One test case for each shard, file check and lint without a finding, and one for each finding.
std::string to_junit(const VerifyReport& report, double seconds);

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
