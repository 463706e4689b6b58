// Compression of a whole checkpoint directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "compressor/plan.h"
#include "format/error.h"
#include "format/loader_lint.h"
#include "format/manifest.h"
#include "format/parallel.h"
#include "format/progress.h"

namespace df11 {

struct CompressOptions {
  PlanOptions plan;
  std::vector<std::string> omit;  // globs on source files to leave out
  bool dry_run = false;           // count and plan, write nothing; `output` is not looked at
  bool force = false;             // replace an existing DF11 artifact at the output path
  bool resume = false;            // use what an interrupted run has left
  bool card = true;               // write a model card as README.md
  std::string base_model = {};    // "ORG/NAME" for the card; empty: found out
  uint64_t max_shard_bytes = 0;   // 0: a shard for each block of the model
};

struct CompressSummary {
  uint64_t source_weight_bytes = 0;   // all tensors of the source
  uint64_t grouped_weight_bytes = 0;  // of those, the ones in groups
  uint64_t stored_group_bytes = 0;    // what the groups take
  uint64_t source_bytes = 0;          // all files of the source
  uint64_t artifact_bytes = 0;        // all files of the artifact; exact in a dry run too
  uint64_t n_reused = 0;              // shards that an interrupted run had finished
  uint64_t n_published = 0;           // source files with a published hash (Manifest::source_files)
  Manifest manifest;                  // hashes are zero in a dry run
  // What upstream's runtime cannot load; in a dry run, what of it is known without writing.
  std::vector<LintFinding> lint;
  std::vector<std::string> notes;  // what the user should know, a line each
};

// Compresses the checkpoint at `source` into the new directory `output`.
//
// The output appears complete or not at all: it is written to "<output>.df11-partial", synced, and
// renamed. A run that is killed, or cancelled once a shard is finished, leaves that directory, and
// one with `resume` takes from it the shards that were made from these very tensors in this very
// way and that still have the SHA-256 they had. The bytes of the output depend on the source and
// the other options only. Errors: those of Checkpoint::open and make_plan; already_exists;
// invalid_argument when one directory lies in the other or `base_model` is no name; damaged when a
// file is not what its publisher's hash says; source_changed; I/O errors; cancelled. `source` is
// never modified.
Result<CompressSummary> compress(const std::filesystem::path& source,
                                 const std::filesystem::path& output,
                                 const CompressOptions& options, const Executor& executor,
                                 Progress& progress);

}  // namespace df11
