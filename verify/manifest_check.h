// With the source at hand: checks what the manifest says about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "format/hash_queue.h"
#include "format/manifest.h"
#include "verify/report.h"

namespace df11 {

// Compares the manifest's tensor list, source file list and restore records with `source`, and
// returns what is to be hashed: each source file, whose SHA-256 is compared with the recorded one.
// Differences become findings "manifest_differs". `ignore` are globs on source files that are not
// looked at. All arguments must outlive the requests; `total_bytes` grows by what they will read.
Result<std::vector<HashRequest>> check_manifest_against_source(
    const Manifest& manifest, const Checkpoint& source, const std::vector<std::string>& ignore,
    Findings& findings, uint64_t& total_bytes);

}  // namespace df11
