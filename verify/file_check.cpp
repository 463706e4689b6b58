#include "verify/file_check.h"

#include <algorithm>
#include <map>
#include <optional>

#include "format/directory.h"
#include "format/pattern.h"
#include "verify/tensor_check.h"

namespace df11 {

namespace {
// Files that compression makes itself; they have no counterpart in the source.
bool is_made_here(const std::string& path) {
  return path == kManifestName || path == kConfigName ||
         (path.find('/') == path.npos &&
          (path.ends_with(kSafetensorsSuffix) || path.ends_with(kIndexSuffix)));
}
}  // namespace

bool FileChecker::ignored(const std::string& path) {
  if (path == kManifestName || !any_glob_match(ignore_, path)) return false;
  ignored_.insert(path);
  return true;
}

Result<void> FileChecker::check_index(const std::string& name) {
  DF11_ASSIGN(const std::string text, read_text_file(artifact_.directory() / name, kMaxTextBytes));
  const Result<ShardIndex> index = ShardIndex::parse(text);
  const Result<void> agrees = index ? index->check_agrees(artifact_.shards()) : fail(index.error());
  if (!agrees) findings_.add({"index_differs", name, "", agrees.error().message});
  return {};
}

void FileChecker::check_config(const Checkpoint& source) {
  if (ignored(std::string(kConfigName))) return;
  const Result<std::string> spliced =
      splice_df11_config(source.config_text(), artifact_.config().to_json_text());
  if (spliced && *spliced == artifact_.config_text()) return;
  Result<Json> config = parse_json(artifact_.config_text());
  if (config) {
    config->erase(std::string(kDf11ConfigKey));
    // Values and their types, not order: as texts with sorted keys.
    const auto sorted = [](const Json& value) { return nlohmann::json(value).dump(); };
    if (sorted(*config) == sorted(source.config())) {
      notes_.push_back("config.json is written differently, with the same values as the source's");
      return;
    }
  }
  findings_.add({"file_differs", std::string(kConfigName), "",
                 "differs from the source's in more than dfloat11_config"});
}

HashRequest FileChecker::check_sha256(const ManifestFile& file) {
  HashRequest request;
  request.path = artifact_.directory() / file.path;
  request.size_bytes = file.size_bytes;
  request.done = [this, &file](const Sha256& digest) -> Result<void> {
    ++n_files_;
    if (digest != file.sha256) {
      findings_.add({"file_differs", file.path, "",
                     "SHA-256 is " + digest.hex() + ", the manifest has " + file.sha256.hex()});
    }
    return {};
  };
  return request;
}

Result<void> FileChecker::compare_file(const std::filesystem::path& a,
                                       const std::filesystem::path& b, const std::string& name) {
  DF11_ASSIGN(const File file_a, File::open_read(a));
  DF11_ASSIGN(const File file_b, File::open_read(b));
  if (!artifact_.manifest()) ++n_files_;  // otherwise check_sha256 counts it
  if (file_a.size_bytes() != file_b.size_bytes()) {
    findings_.add({"file_differs", name, "",
                   std::to_string(file_a.size_bytes()) + " bytes in the artifact, " +
                       std::to_string(file_b.size_bytes()) + " in the source"});
    return {};
  }
  std::optional<uint64_t> difference;
  FileBuffer buffer;
  const auto compare = [&](ByteSpan a_bytes, uint64_t offset) -> Result<void> {
    DF11_TRY(executor_.check_cancelled());
    if (difference) return {};
    DF11_ASSIGN(const ByteSpan b_bytes, file_b.read(offset, a_bytes.size(), buffer));
    const auto at = std::mismatch(a_bytes.begin(), a_bytes.end(), b_bytes.begin()).first;
    if (at != a_bytes.end()) difference = offset + static_cast<uint64_t>(at - a_bytes.begin());
    return {};
  };
  DF11_TRY(file_a.for_each_chunk(0, file_a.size_bytes(), compare));
  if (difference) {
    findings_.add(
        {"file_differs", name, "", "first difference at byte " + std::to_string(*difference)});
  }
  return {};
}

Result<std::vector<FileChecker::Task>> FileChecker::plan(const Checkpoint* source) {
  DF11_ASSIGN(const std::vector<DirectoryEntry> entries, list_files(artifact_.directory()));
  std::map<std::string, uint64_t> present;
  for (const DirectoryEntry& entry : entries)
    present.emplace(entry.relative_path, entry.size_bytes);
  std::vector<Task> tasks;

  if (artifact_.manifest()) {
    std::set<std::string> listed = {std::string(kManifestName)};
    for (const ManifestFile& file : artifact_.manifest()->files) {
      listed.insert(file.path);
      if (ignored(file.path)) continue;
      const auto found = present.find(file.path);
      if (found == present.end()) {
        findings_.add({"file_missing", file.path, "", "listed in the manifest, but not here"});
      } else if (found->second != file.size_bytes) {
        findings_.add({"file_differs", file.path, "",
                       std::to_string(found->second) + " bytes, the manifest has " +
                           std::to_string(file.size_bytes)});
      } else {
        total_bytes_ += file.size_bytes;
        hashes_.push_back(check_sha256(file));
      }
    }
    for (const auto& [path, size] : present) {
      if (!listed.contains(path) && !ignored(path)) {
        findings_.add({"file_unlisted", path, "", "not listed in the manifest"});
      }
    }
  }
  for (const auto& [path, size] : present) {
    if (path.find('/') == path.npos && path.ends_with(kIndexSuffix) && !ignored(path)) {
      DF11_TRY(check_index(path));
    }
  }
  if (source == nullptr) return tasks;

  check_config(*source);
  std::set<std::string> in_source;
  for (const DirectoryEntry& entry : source->other_files()) {
    const std::string& path = entry.relative_path;
    // A README.md that made room for the artifact's own is compared where it is kept.
    const std::string stored =
        artifact_.manifest() ? artifact_.manifest()->stored_path(path) : path;
    in_source.insert(stored);
    if (ignored(path)) continue;
    if (!present.contains(stored)) {
      findings_.add({"file_missing", stored, "", "in the source, but not here"});
    } else {
      tasks.push_back([this, source, path, stored] {
        return compare_file(artifact_.directory() / stored, source->directory() / path, stored);
      });
    }
  }
  for (const auto& [path, size] : present) {
    const bool card = artifact_.manifest() && artifact_.manifest()->is_made_card(path);
    if (!in_source.contains(path) && !is_made_here(path) && !card && !ignored(path)) {
      findings_.add({"file_extra", path, "", "not in the source"});
    }
  }
  return tasks;
}

}  // namespace df11
