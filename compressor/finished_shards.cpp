#include "compressor/finished_shards.h"

#include <string_view>

#include "format/directory.h"
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

Result<Record> parse_record(const std::string& text) {
  DF11_ASSIGN(const Json json, parse_json(text));
  DF11_ASSIGN(const std::string made_from, json_string(json, "made_from"));
  DF11_ASSIGN(const std::string sha256, json_string(json, "sha256"));
  Record record;
  DF11_ASSIGN(record.made_from, parse_sha256(made_from));
  DF11_ASSIGN(record.sha256, parse_sha256(sha256));
  return record;
}

// Nothing if there is none, or not a whole one.
Result<std::optional<Record>> read_record(const fs::path& path) {
  const Result<std::string> text = read_text_file(path, kMaxRecordBytes);
  if (!text) {
    const ErrorCode code = text.error().code;
    if (is_no_file(code) || code == ErrorCode::limit_exceeded) return std::nullopt;
    return fail(text.error());
  }
  Result<Record> record = parse_record(*text);
  return record ? std::optional(*record) : std::nullopt;
}

// Whether the shard at `path` is what `record` says, and what `job` would write.
Result<bool> holds(const Record& record, ShardJob& job, const fs::path& path,
                   const Executor& executor, Progress& progress) {
  DF11_TRY(job.hash_verbatim(executor, progress));
  if (job.made_from() != record.made_from) return false;
  return is_intact(path, job.header().file_bytes(), record.sha256, executor);
}

}  // namespace

Result<std::optional<Sha256>> find_finished(ShardJob& job, const fs::path& directory,
                                            const Executor& executor, Progress& progress) {
  const fs::path shard = directory / job.file_name();
  DF11_ASSIGN(const std::optional<Record> record, read_record(record_path(shard)));
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

std::set<std::string> with_records(std::set<std::string> files) {
  std::set<std::string> records;
  for (const std::string& file : files) records.insert(record_path(file).string());
  files.merge(records);
  return files;
}

Result<std::set<std::string>> finished_files(const fs::path& directory) {
  std::set<std::string> files;
  DF11_ASSIGN(const std::vector<fs::directory_entry> entries, list_directory(directory));
  for (const fs::directory_entry& entry : entries) {
    const fs::path path = record_path(entry.path());
    DF11_ASSIGN(const std::optional<Record> record, read_record(path));
    if (record) files.insert({entry.path().filename().string(), path.filename().string()});
  }
  return files;
}

}  // namespace df11
