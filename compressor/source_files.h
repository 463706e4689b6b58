// The files of the source around its tensors: hashed, held against what their publisher recorded,
// copied, described in the manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "format/hash_queue.h"
#include "format/hub_record.h"
#include "format/manifest.h"
#include "format/parallel.h"
#include "format/progress.h"

namespace df11 {

class SourceFiles {
 public:
  // `card`: the artifact gets a README.md of its own, and the source's is kept under another name.
  // Errors: I/O errors of looking for published hashes.
  static Result<SourceFiles> find(const Checkpoint& checkpoint, bool card);

  // What hashes a whole shard. This object must outlive it.
  HashRequest shard_hash(size_t shard);

  // The files that are copied.
  size_t n_copied() const { return copied_.size(); }
  uint64_t copied_bytes(size_t i) const { return copied_[i].size_bytes; }
  // Copies one to `directory`, synced. Errors: damaged, source_changed, I/O errors, cancelled.
  Result<void> copy(size_t i, const std::filesystem::path& directory, const Executor& executor,
                    Progress& progress);

  // Where the source's README.md is kept; empty when it has none, or when it keeps its name.
  std::string kept_card() const;

  // Fills in source_files, omitted_files, restore, and the copied ones of `files`. Hashes of what
  // was not read are zero. Errors: damaged, I/O errors.
  Result<void> describe(Manifest& manifest) const;

 private:
  explicit SourceFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<void> describe_text(const std::string& name, std::string text, Manifest& manifest) const;

  const Checkpoint& checkpoint_;
  std::vector<ManifestFile> shards_;  // in the order of the checkpoint's
  std::vector<ManifestFile> copied_;
};

}  // namespace df11
