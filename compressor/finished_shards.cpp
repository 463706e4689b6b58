#include "compressor/finished_shards.h"

#include <string_view>

#include "format/file.h"
#include "format/json.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kRecordSuffix = ".df11-done";
constexpr uint64_t kMaxRecordBytes = 4096;

struct Record {
  Sha256 made_from;  // ShardJob::made_from()
  Sha256 sha256;     // of the shard
};

fs::path record_path(const fs::path& shard) {
  return shard.string() + std::string(kRecordSuffix);
}

Result<Record> read_record(const fs::path& path) {
  DF11_ASSIGN(const std::string text, read_text_file(path, kMaxRecordBytes));
  DF11_ASSIGN(const Json json, parse_json(text));
  DF11_ASSIGN(const std::string made_from, json_string(json, "made_from"));
  DF11_ASSIGN(const std::string sha256, json_string(json, "sha256"));
  Record record;
  DF11_ASSIGN(record.made_from, parse_sha256(made_from));
  DF11_ASSIGN(record.sha256, parse_sha256(sha256));
  return record;
}

// Whether the shard at `path` is what `record` says, and what `job` would write.
Result<bool> holds(const Record& record, ShardJob& job, const fs::path& path,
                   const Executor& executor, Progress& progress) {
  DF11_TRY(job.hash_verbatim(executor, progress));
  if (job.made_from() != record.made_from) return false;
  DF11_ASSIGN(const std::optional<File> shard,
              open_intact(path, job.header().file_bytes(), record.sha256, executor));
  // It is recorded when it is hashed, which may be before it is synced (LateSync).
  if (shard) DF11_TRY(shard->sync());
  return shard.has_value();
}

}  // namespace

Result<std::optional<Sha256>> find_finished(ShardJob& job, const fs::path& directory,
                                            const Executor& executor, Progress& progress) {
  const fs::path shard = directory / job.file_name();
  const Result<Record> record = read_record(record_path(shard));
  if (record) {
    DF11_ASSIGN(const bool reusable, holds(*record, job, shard, executor, progress));
    if (reusable) {
      job.skip_pass_2(progress);
      return record->sha256;
    }
  }
  DF11_TRY(remove_tree(record_path(shard)));
  DF11_TRY(remove_tree(shard));
  return std::nullopt;
}

Result<void> record_finished(const ShardJob& job, const Sha256& digest, const fs::path& directory) {
  const Json json = {{"made_from", job.made_from().hex()}, {"sha256", digest.hex()}};
  return write_text_file(record_path(directory / job.file_name()), json.dump());
}

std::set<std::string> finished_files(const fs::path& directory) {
  std::set<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const fs::path record = record_path(entry.path());
    if (!fs::exists(record, error) || !read_record(record)) continue;
    files.insert({name, record.filename().string()});
  }
  return files;
}

}  // namespace df11
