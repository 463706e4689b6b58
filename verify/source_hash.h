// The SHA-256 of files of the source, recomputed from what the artifact holds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "decoder/group_reader.h"
#include "format/artifact.h"
#include "format/hash.h"
#include "format/parallel.h"
#include "format/progress.h"
#include "verify/report.h"
#include "verify/sha256_list.h"

namespace df11 {

class SourceHasher {
 public:
  // `artifact` must have a manifest.
  SourceHasher(const Artifact& artifact, const Decoder& decoder, const Executor& executor,
               Progress& progress);

  // The SHA-256 of a source file whose bytes are a restore record and the tensors that the record,
  // the beginning of a shard, declares. Tensors are decoded and hashed in file order; memory: a few
  // runs.
  // Errors: malformed_manifest when record and artifact do not fit, corrupt_stream, I/O errors.
  Result<Sha256> sha256_of_restored(const std::string& path);

 private:
  // Where a tensor's bytes are: verbatim, or as a member of a group.
  struct Place {
    const TensorLocation* verbatim = nullptr;
    const GroupEntry* group = nullptr;
    size_t member = 0;
  };
  using Consume = std::function<void(ByteSpan)>;

  Result<void> stream_verbatim(const TensorLocation& tensor, const Consume& consume);
  Result<void> stream_member(const GroupEntry& entry, size_t member, uint64_t n_bytes,
                             const Consume& consume);

  const Artifact& artifact_;
  const Decoder& decoder_;
  const Executor& executor_;
  Progress& progress_;
  std::map<std::string, Place> places_;
  Pool<RunBuffers> buffers_;
};

// What check_source_hashes did.
struct SourceHashOutcome {
  SourceHashes hashes;
  std::vector<std::string> ignored_files;
  uint64_t n_unlisted = 0;  // source files without weights that are not in the list
};

// Ties the artifact to hashes of its source that were published elsewhere: each listed file must be
// a source file of the manifest with that hash, and its bytes, as the artifact gives them back,
// must have it. Every shard of the source must be listed. Whatever is not so is a finding
// "source_sha256_differs". `ignore` are globs on source files that are not looked at. `artifact`
// must have a manifest.
//
// Copied files count by the SHA-256 of the artifact's files, which verify() checks.
// Errors: I/O errors, cancelled.
Result<SourceHashOutcome> check_source_hashes(const Artifact& artifact, const Sha256List& expected,
                                              const std::vector<std::string>& ignore,
                                              const Decoder& decoder, const Executor& executor,
                                              Progress& progress, Findings& findings);

}  // namespace df11
