// The SHA-256 of files of the source, recomputed from what the artifact holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/decoder.h"
#include "format/artifact.h"
#include "format/parallel.h"
#include "format/progress.h"
#include "verify/report.h"
#include "verify/sha256_list.h"

namespace df11 {

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
