// What lets an interrupted run go on: beside each shard that is written and hashed lies a record of
// what it was made from and what it became. It may not be on the disk yet, which find_finished()
// looks at. Records never become part of an output.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "compressor/shard_job.h"
#include "format/error.h"
#include "format/hash.h"

namespace df11 {

// The SHA-256 of `job`'s shard if an interrupted run has finished it in `directory`, made from what
// the job would make it from, and its bytes still are what they were. Otherwise nothing, and
// nothing is left in the shard's place. Errors: I/O errors, cancelled.
Result<std::optional<Sha256>> find_finished(ShardJob& job, const std::filesystem::path& directory,
                                            const Executor& executor, Progress& progress);

// Records that the job's shard is finished. Errors: I/O errors.
Result<void> record_finished(const ShardJob& job, const Sha256& digest,
                             const std::filesystem::path& directory);

// The shards in `directory` that have a record, and the records. Errors: I/O errors.
Result<std::set<std::string>> finished_files(const std::filesystem::path& directory);

// `files` and the names that their records would have.
std::set<std::string> with_records(std::set<std::string> files);

}  // namespace df11
