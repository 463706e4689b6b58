#include "compressor/source_files.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "format/front_matter.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

// A name for the source's README.md that no file or directory of the source has.
std::string free_card_name(const Checkpoint& checkpoint) {
  std::set<std::string> taken;
  for (const DirectoryEntry& entry : checkpoint.other_files()) {
    taken.insert(entry.relative_path.substr(0, entry.relative_path.find('/')));
  }
  std::string name = "README.source.md";
  for (int i = 2; taken.contains(name); ++i) name = "README.source." + std::to_string(i) + ".md";
  return name;
}

// Reads all of `file`, which is `entry` of the source, and hands the chunks to `take`.
Result<Sha256> hash_file(const File& file, const ManifestFile& entry,
                         const std::function<Result<void>(ByteSpan, uint64_t)>& take) {
  PublishedHasher hasher(entry.published, file.size_bytes());
  DF11_TRY(file.for_each_chunk(0, file.size_bytes(),
                               [&](ByteSpan chunk, uint64_t offset) -> Result<void> {
                                 hasher.update(chunk);
                                 return take(chunk, offset);
                               }));
  Result<Sha256> digest = hasher.finish();
  if (!digest) return fail(std::move(digest).error().in_file(file.path()));
  return digest;
}

}  // namespace

Result<SourceFiles> SourceFiles::find(const Checkpoint& checkpoint, bool card) {
  const fs::path& directory = checkpoint.directory();
  SourceFiles files(checkpoint);
  for (const Shard& shard : checkpoint.shards().shards()) {
    ManifestFile& entry = files.shards_.emplace_back();
    entry.path = shard.name;
    entry.size_bytes = shard.file.size_bytes();
    DF11_ASSIGN(entry.published, published_hash(directory, shard.name));
  }
  for (const DirectoryEntry& file : checkpoint.other_files()) {
    ManifestFile& entry = files.copied_.emplace_back();
    entry.path = file.relative_path;
    entry.size_bytes = file.size_bytes;
    if (card && entry.path == kCardName) entry.stored_as = free_card_name(checkpoint);
    DF11_ASSIGN(entry.published, published_hash(directory, entry.path));
  }
  return files;
}

HashRequest SourceFiles::shard_hash(size_t shard) {
  ManifestFile& entry = shards_[shard];
  HashRequest request;
  request.file = &checkpoint_.shards().shards()[shard].file;
  request.size_bytes = entry.size_bytes;
  request.published = entry.published;
  request.done = [&entry](const Sha256& digest) -> Result<void> {
    entry.sha256 = digest;
    return {};
  };
  return request;
}

Result<void> SourceFiles::copy(size_t i, const fs::path& directory, const Executor& executor,
                               Progress& progress) {
  ManifestFile& entry = copied_[i];
  const fs::path target = directory / entry.stored_path();
  DF11_ASSIGN(const File from, File::open_read(checkpoint_.directory() / entry.path));
  if (from.size_bytes() != entry.size_bytes) {
    return fail(Error{ErrorCode::source_changed,
                      "the file changed while it was being read",
                      from.path(),
                      {},
                      {}});
  }
  DF11_TRY(make_directories(target.parent_path()));
  DF11_ASSIGN(const File to, File::create(target));
  const auto write = [&](ByteSpan chunk, uint64_t offset) -> Result<void> {
    DF11_TRY(to.write_exact(chunk, offset));
    progress.add(chunk.size());
    return executor.check_cancelled();
  };
  DF11_ASSIGN(entry.sha256, hash_file(from, entry, write));
  DF11_TRY(from.check_unchanged());
  return to.sync();
}

std::string SourceFiles::kept_card() const {
  const auto kept = std::find_if(copied_.begin(), copied_.end(),
                                 [](const ManifestFile& file) { return !file.stored_as.empty(); });
  return kept == copied_.end() ? "" : kept->stored_as;
}

Result<void> SourceFiles::describe_text(const std::string& name, std::string text,
                                        Manifest& manifest) const {
  const ByteSpan bytes = as_bytes(text);
  ManifestFile entry{name, text.size(), {}};
  DF11_ASSIGN(entry.published, published_hash(checkpoint_.directory(), name));
  PublishedHasher hasher(entry.published, text.size());
  hasher.update(bytes);
  Result<Sha256> digest = hasher.finish();
  if (!digest) {
    return fail(std::move(digest).error().in_file((checkpoint_.directory() / name).string()));
  }
  entry.sha256 = *digest;
  manifest.source_files.push_back(std::move(entry));
  manifest.restore[name] = std::move(text);
  return {};
}

// Other files are copied; these are restored from their records: shards from what precedes their
// data and the tensors, index and config.json from the whole text.
Result<void> SourceFiles::describe(Manifest& manifest) const {
  manifest.omitted_files = checkpoint_.omitted_files();
  manifest.source_files = shards_;
  for (const Shard& shard : checkpoint_.shards().shards()) {
    std::string& head = manifest.restore[shard.name];
    head.resize(shard.header.data_offset_bytes());
    DF11_TRY(shard.file.read_exact({reinterpret_cast<uint8_t*>(head.data()), head.size()}, 0));
  }
  if (const std::string& index = checkpoint_.index_name(); !index.empty()) {
    DF11_ASSIGN(std::string text, read_text_file(checkpoint_.directory() / index, kMaxTextBytes));
    DF11_TRY(describe_text(index, std::move(text), manifest));
  }
  if (checkpoint_.has_config()) {
    DF11_TRY(describe_text(std::string(kConfigName), checkpoint_.config_text(), manifest));
  }
  for (const ManifestFile& file : copied_) {
    manifest.source_files.push_back(file);
    manifest.files.push_back({file.stored_path(), file.size_bytes, file.sha256});
  }
  std::sort(manifest.source_files.begin(), manifest.source_files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  return {};
}

}  // namespace df11
