// With the source at hand: checks what the manifest says about it.
#pragma once

#include <functional>
#include <vector>

#include "format/checkpoint.h"
#include "format/manifest.h"
#include "format/parallel.h"
#include "format/progress.h"
#include "verify/report.h"

namespace df11 {

// Compares the manifest's tensor list, source file list and restore records with `source`, and
// returns the hashing of each source file, which is checked against the recorded SHA-256.
// Differences become findings "manifest_differs". `ignore` are globs on source files that are not
// looked at. All arguments must outlive the tasks; `total_bytes` grows by what they will read.
Result<std::vector<std::function<Result<void>()>>> check_manifest_against_source(
    const Manifest& manifest, const Checkpoint& source, const std::vector<std::string>& ignore,
    const Executor& executor, Progress& progress, Findings& findings, uint64_t& total_bytes);

}  // namespace df11
