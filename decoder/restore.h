// From an artifact back to the checkpoint it was made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "decoder/decoder.h"
#include "decoder/restore_plan.h"
#include "format/manifest.h"
#include "format/parallel.h"
#include "format/progress.h"

namespace df11 {

struct RestoreOptions {
  bool tensors_only = false;  // plan_tensors_only, whether or not there is a manifest
  bool verify = false;        // read the written files again and compare their SHA-256
  bool resume = false;        // use what an interrupted run has left
  bool force = false;  // replace an output that holds no other files than those to be written
};

struct RestoreSummary {
  std::vector<ManifestFile> files;         // written, by path
  uint64_t n_tensors = 0;                  // in them
  uint64_t n_reused = 0;                   // files that an interrupted run had finished
  std::vector<std::string> omitted_files;  // see RestorePlan
  std::vector<std::string> flat_tensors;

  uint64_t total_bytes() const;
};

// Writes the source of the artifact at `directory` to the new directory `output`.
//
// SHA-256 of each file is computed as it is written and must be the one in the manifest. The output
// appears complete or not at all, as with compress(). A run that is killed, or cancelled once a
// file is finished, leaves its partial output; one with `resume` takes from it the files that have
// the size and SHA-256 in the manifest. Errors: unsupported (no artifact); invalid_argument (no
// manifest and not tensors_only; one directory lies in the other); already_exists; damaged,
// corrupt_stream, malformed_* for a damaged artifact; I/O errors; cancelled.
Result<RestoreSummary> restore(const std::filesystem::path& directory,
                               const std::filesystem::path& output, const RestoreOptions& options,
                               const Decoder& decoder, const Executor& executor,
                               Progress& progress);

// Streams a file of a plan: calls write(bytes, offset) for parts of it, from several threads at
// once, with at most `max_in_flight` decoded runs in memory, and returns the SHA-256 of all of it.
// Errors: damaged, corrupt_stream, malformed_group; those of `write`; I/O errors; cancelled.
Result<Sha256> stream_file(const RestoredFile& file, const Artifact& artifact,
                           const Decoder& decoder, const Executor& executor, size_t max_in_flight,
                           const std::function<Result<void>(ByteSpan, uint64_t)>& write);

}  // namespace df11
