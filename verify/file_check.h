// Checks the files of an artifact: listed, present, unchanged, equal to the source's.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "format/artifact.h"
#include "format/checkpoint.h"
#include "format/hash_queue.h"
#include "format/parallel.h"
#include "verify/report.h"

namespace df11 {

class FileChecker {
 public:
  FileChecker(const Artifact& artifact, const std::vector<std::string>& ignore,
              const Executor& executor, Findings& findings)
      : artifact_(artifact), ignore_(ignore), executor_(executor), findings_(findings) {}

  using Task = std::function<Result<void>()>;

  // Compares the directory's listing with the manifest; hashing the listed files is left to
  // hashes(), comparing files with the source's to what is returned. Without a manifest, only the
  // index is checked. `source` may be null.
  Result<std::vector<Task>> plan(const Checkpoint* source);
  std::vector<HashRequest> hashes() && { return std::move(hashes_); }

  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t n_files() const { return n_files_; }
  std::vector<std::string> ignored_files() const { return {ignored_.begin(), ignored_.end()}; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool ignored(const std::string& path);
  Result<void> check_index(const std::string& name);
  void check_config(const Checkpoint& source);
  HashRequest check_sha256(const ManifestFile& file);
  Result<void> compare_file(const std::filesystem::path& a, const std::filesystem::path& b,
                            const std::string& name);

  const Artifact& artifact_;
  const std::vector<std::string>& ignore_;
  const Executor& executor_;
  Findings& findings_;
  std::set<std::string> ignored_;
  std::vector<std::string> notes_;
  std::vector<HashRequest> hashes_;
  uint64_t total_bytes_ = 0;
  std::atomic<uint64_t> n_files_{0};
};

}  // namespace df11
