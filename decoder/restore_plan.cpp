#include "decoder/restore_plan.h"

#include "format/directory.h"

namespace df11 {

namespace {

auto refuse(ErrorCode code, std::string message, const std::string& path,
            const std::string& tensor = {}) {
  return fail(Error{code, std::move(message), path, tensor, {}});
}

}  // namespace

Result<RestorePlanner> RestorePlanner::make(const Artifact& artifact) {
  RestorePlanner planner;
  planner.manifest_ = &*artifact.manifest();
  DF11_ASSIGN(planner.stored_, stored_tensors(artifact));
  for (const ManifestFile& file : planner.manifest_->files) {
    planner.by_path_[file.path] = &file;
    planner.by_sha256_.try_emplace(file.sha256.hex(), &file);
  }
  return planner;
}

Result<RestoredFile> RestorePlanner::plan(const ManifestFile& source) const {
  // Compression never lists these, and tools like git act on them.
  if (is_housekeeping_name(source.path.substr(0, source.path.find('/'))))
    return refuse(ErrorCode::malformed_manifest, "no name of a source file", source.path);
  RestoredFile file{source.path, source.size_bytes, source.sha256, {}, {}, {}};
  const auto record = manifest_->restore.find(source.path);
  if (record == manifest_->restore.end()) {
    DF11_ASSIGN(file.copied_from, holder_of(source));
    return file;
  }
  file.head = record->second;
  if (file.head.size() != source.size_bytes) DF11_TRY(add_tensors(file));
  return file;
}

// The file of the artifact with the source file's bytes: of the same name, or of another one when
// something of ours has the name now.
Result<std::string> RestorePlanner::holder_of(const ManifestFile& source) const {
  const auto same_path = by_path_.find(source.path);
  if (same_path != by_path_.end() && same_path->second->sha256 == source.sha256) return source.path;
  const auto same_bytes = by_sha256_.find(source.sha256.hex());
  if (same_bytes != by_sha256_.end()) return same_bytes->second->path;
  return refuse(ErrorCode::malformed_manifest,
                "neither a restore record nor a file of the artifact holds its bytes", source.path);
}

// `file.head` is what precedes the data section of a shard.
Result<void> RestorePlanner::add_tensors(RestoredFile& file) const {
  constexpr size_t kLengthBytes = 8;
  const std::string_view head = file.head;
  if (head.size() < kLengthBytes || head.size() > file.size_bytes ||
      load_le64(as_bytes(head).data()) != head.size() - kLengthBytes) {
    return refuse(ErrorCode::malformed_manifest, "its restore record is no shard's header",
                  file.path);
  }
  Result<SafetensorsHeader> header =
      SafetensorsHeader::parse(head.substr(kLengthBytes), file.size_bytes - head.size());
  if (!header) return fail(std::move(header).error().in_file(file.path));
  for (const TensorInfo& info : header->tensors()) {
    const auto stored = stored_.find(info.name);
    if (stored == stored_.end())
      return refuse(ErrorCode::damaged, "the artifact does not hold it", file.path, info.name);
    file.tensors.push_back({info, stored->second});
  }
  return {};
}

uint64_t RestorePlan::total_bytes() const {
  uint64_t bytes = 0;
  for (const RestoredFile& file : files) bytes += file.size_bytes;
  return bytes;
}

Result<RestorePlan> plan_restore(const Artifact& artifact) {
  const Manifest& manifest = *artifact.manifest();
  DF11_ASSIGN(const RestorePlanner planner, RestorePlanner::make(artifact));
  RestorePlan plan;
  plan.omitted_files = manifest.omitted_files;
  for (const ManifestFile& source : manifest.source_files) {
    DF11_ASSIGN(RestoredFile file, planner.plan(source));
    plan.files.push_back(std::move(file));
  }
  return plan;
}

}  // namespace df11
