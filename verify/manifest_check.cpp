#include "verify/manifest_check.h"

#include <map>
#include <set>
#include <string>

#include "format/directory.h"
#include "format/hash.h"
#include "format/pattern.h"

namespace df11 {

namespace {

class ManifestChecker {
 public:
  ManifestChecker(const Manifest& manifest, const Checkpoint& source, Findings& findings)
      : manifest_(manifest), source_(source), findings_(findings) {}

  void check_tensors() {
    std::set<std::string> listed;
    for (const ManifestTensor& tensor : manifest_.tensors) {
      listed.insert(tensor.name);
      const TensorLocation* location = source_.shards().find(tensor.name);
      if (location == nullptr) {
        differs(tensor.name, "listed in the manifest, but not in the source");
        continue;
      }
      const std::string& file = source_.shards().shards()[location->shard].name;
      if (tensor.dtype != location->info.dtype || tensor.shape != location->info.shape ||
          tensor.source_file != file) {
        differs(tensor.name, "dtype, shape or file differ from the source's");
      }
    }
    for (const auto& [name, location] : source_.shards().tensors()) {
      if (!listed.contains(name)) differs(name, "in the source, but not listed in the manifest");
    }
  }

  // Restore records: what precedes the data of each shard, index and config.json.
  Result<void> check_restore() {
    std::map<std::string, std::string> expected;
    for (const Shard& shard : source_.shards().shards()) {
      std::string& head = expected[shard.name];
      head.resize(shard.header.data_offset_bytes());
      DF11_TRY(shard.file.read_exact({reinterpret_cast<uint8_t*>(head.data()), head.size()}, 0));
    }
    if (!source_.index_name().empty()) {
      DF11_ASSIGN(expected[source_.index_name()],
                  read_text_file(source_.directory() / source_.index_name(), kMaxTextBytes));
    }
    if (source_.has_config()) expected[std::string(kConfigName)] = source_.config_text();
    for (const auto& [path, bytes] : expected) {
      const auto record = manifest_.restore.find(path);
      if (record == manifest_.restore.end() || record->second != bytes) {
        findings_.add(
            {"manifest_differs", path, "", "its restore record is not the source's bytes"});
      }
    }
    for (const auto& [path, bytes] : manifest_.restore) {
      if (!expected.contains(path)) {
        findings_.add({"manifest_differs", path, "", "a restore record of no file of the source"});
      }
    }
    return {};
  }

  // The source's files by path, with their sizes.
  std::map<std::string, uint64_t> source_files() const {
    std::map<std::string, uint64_t> files;
    for (const Shard& shard : source_.shards().shards())
      files[shard.name] = shard.file.size_bytes();
    for (const DirectoryEntry& entry : source_.other_files()) {
      files[entry.relative_path] = entry.size_bytes;
    }
    const auto restored_size = [&](const std::string& path) {
      const auto record = manifest_.restore.find(path);  // equal to the file: check_restore
      return record == manifest_.restore.end() ? 0 : record->second.size();
    };
    if (!source_.index_name().empty())
      files[source_.index_name()] = restored_size(source_.index_name());
    if (source_.has_config()) files[std::string(kConfigName)] = source_.config_text().size();
    return files;
  }

 private:
  void differs(const std::string& tensor, std::string message) {
    findings_.add({"manifest_differs", "", tensor, std::move(message)});
  }

  const Manifest& manifest_;
  const Checkpoint& source_;
  Findings& findings_;
};

}  // namespace

Result<std::vector<HashRequest>> check_manifest_against_source(
    const Manifest& manifest, const Checkpoint& source, const std::vector<std::string>& ignore,
    Findings& findings, uint64_t& total_bytes) {
  ManifestChecker checker(manifest, source, findings);
  checker.check_tensors();
  DF11_TRY(checker.check_restore());

  const std::map<std::string, uint64_t> present = checker.source_files();
  std::set<std::string> listed;
  std::vector<HashRequest> requests;
  for (const ManifestFile& file : manifest.source_files) {
    listed.insert(file.path);
    if (any_glob_match(ignore, file.path)) continue;
    const auto found = present.find(file.path);
    if (found == present.end() || found->second != file.size_bytes) {
      findings.add({"manifest_differs", file.path, "",
                    found == present.end() ? "a source file that is not there"
                                           : "not the source file's size"});
      continue;
    }
    total_bytes += file.size_bytes;
    HashRequest& request = requests.emplace_back();
    request.path = source.directory() / file.path;
    request.size_bytes = file.size_bytes;
    request.done = [&file, &findings](const Sha256& digest) -> Result<void> {
      if (digest != file.sha256)
        findings.add({"manifest_differs", file.path, "", "not the SHA-256 of the source file"});
      return {};
    };
  }
  for (const auto& [path, size] : present) {
    if (!listed.contains(path) && !any_glob_match(ignore, path)) {
      findings.add({"manifest_differs", path, "", "in the source, but not listed in the manifest"});
    }
  }
  return requests;
}

}  // namespace df11
