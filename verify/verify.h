// Proof that an artifact holds exactly its source: every tensor, every byte, every file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decoder/decoder.h"
#include "format/error.h"
#include "format/parallel.h"
#include "format/progress.h"
#include "verify/report.h"
#include "verify/sha256_list.h"

namespace df11 {

struct VerifyOptions {
  // Compare with this checkpoint, byte for byte; otherwise with the manifest's hashes.
  std::optional<std::filesystem::path> source;
  // Globs on files of either directory that are not looked at.
  std::vector<std::string> ignore;
  // At kStructure, no weights are read; a manifest or source is compared if there is one.
  VerifyLevel level = VerifyLevel::kFull;
  // SHA-256 of source files that were published elsewhere; needs level full and a manifest.
  std::optional<Sha256List> expected_source_sha256;
  // Whether to look for what upstream's runtime cannot load, too.
  bool lint = false;
};

// Checks the artifact at `directory`.
//
// Differences and corruption are findings of the report; an Error means that the check could not be
// done (a directory that does not exist, no manifest and no source, a failing disk, cancelled).
Result<VerifyReport> verify(const std::filesystem::path& directory, const VerifyOptions& options,
                            const Decoder& decoder, const Executor& executor, Progress& progress);

}  // namespace df11
