#include "verify/source_hash.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <set>

#include "format/pattern.h"

namespace df11 {

namespace {

auto does_not_fit(std::string message) {
  return fail(ErrorCode::malformed_manifest, std::move(message));
}

ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

SourceHasher::SourceHasher(const Artifact& artifact, const Decoder& decoder,
                           const Executor& executor, Progress& progress)
    : artifact_(artifact), decoder_(decoder), executor_(executor), progress_(progress) {
  for (const TensorLocation* tensor : artifact.verbatim()) places_[tensor->info.name] = {tensor};
  for (const GroupEntry& group : artifact.groups()) {
    for (size_t i = 0; i < group.members.size(); ++i)
      places_[group.members[i]] = {nullptr, &group, i};
  }
}

Result<void> SourceHasher::stream_verbatim(const TensorLocation& tensor, const Consume& consume) {
  const auto take = [&](ByteSpan chunk, uint64_t) -> Result<void> {
    DF11_TRY(executor_.check_cancelled());
    consume(chunk);
    progress_.add(chunk.size());
    return {};
  };
  return artifact_.shards().shards()[tensor.shard].file.for_each_chunk(
      tensor.file_offset_bytes, tensor.info.size_bytes(), take);
}

Result<void> SourceHasher::stream_member(const GroupEntry& entry, size_t member, uint64_t n_bytes,
                                         const Consume& consume) {
  DF11_ASSIGN(const GroupReader reader, GroupReader::open(artifact_, entry, decoder_));
  const std::vector<uint64_t>& sizes = reader.group().member_elements;
  uint64_t begin = 0;
  for (size_t i = 0; i < member; ++i) begin += sizes[i];
  const uint64_t end = begin + sizes[member];
  if (2 * sizes[member] != n_bytes) return does_not_fit("the tensor has another size");

  // Runs that hold weights of the member.
  size_t first = 0, last = reader.n_runs();
  while (first < last && reader.first_element(first + 1) <= begin) ++first;
  while (last > first && reader.first_element(last - 1) >= end) --last;
  std::vector<std::optional<Pool<RunBuffers>::Lease>> held(last - first);
  std::vector<std::span<const uint16_t>> words(last - first);
  const auto decode = [&](size_t i) -> Result<void> {
    held[i].emplace(buffers_.take());
    DF11_ASSIGN(words[i], reader.decode_run(first + i, **held[i]));
    return {};
  };
  const auto hash = [&](size_t i) -> Result<void> {
    const uint64_t run_begin = reader.first_element(first + i);
    const uint64_t from = std::max(begin, run_begin) - run_begin;
    const uint64_t to = std::min(end, run_begin + words[i].size()) - run_begin;
    const std::span<const uint16_t> part = words[i].subspan(from, to - from);
    consume({reinterpret_cast<const uint8_t*>(part.data()), part.size_bytes()});
    progress_.add(part.size_bytes());
    held[i].reset();
    return {};
  };
  return executor_.for_each_ordered(last - first, static_cast<size_t>(executor_.n_threads()) + 1,
                                    decode, hash);
}

Result<Sha256> SourceHasher::sha256_of_restored(const std::string& path) {
  const Manifest& manifest = *artifact_.manifest();
  const std::string& record = manifest.restore.at(path);
  Sha256Hasher hasher;
  hasher.update(as_bytes(record));
  const Consume consume = [&](ByteSpan bytes) { hasher.update(bytes); };

  // Spec/manifest.md section 1: of a shard, the record is everything before its data section.
  std::set<std::string> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.source_file == path) tensors.insert(tensor.name);
  }
  if (tensors.empty()) return hasher.digest();
  const auto file =
      std::find_if(manifest.source_files.begin(), manifest.source_files.end(),
                   [&](const ManifestFile& candidate) { return candidate.path == path; });
  if (file == manifest.source_files.end() || file->size_bytes < record.size() || record.size() < 8)
    return does_not_fit("the restore record is no beginning of the source file");
  DF11_ASSIGN(const SafetensorsHeader header,
              SafetensorsHeader::parse(std::string_view(record).substr(8),
                                       file->size_bytes - record.size()));
  for (const TensorInfo& info : header.tensors()) {
    const auto place = places_.find(info.name);
    if (place == places_.end() || tensors.erase(info.name) == 0)
      return does_not_fit("'" + info.name +
                          "' of the source's shard is not in artifact and manifest");
    const Place& at = place->second;
    if (at.group != nullptr) {
      DF11_TRY(stream_member(*at.group, at.member, info.size_bytes(), consume));
    } else if (at.verbatim->info.size_bytes() == info.size_bytes()) {
      DF11_TRY(stream_verbatim(*at.verbatim, consume));
    } else {
      return does_not_fit("'" + info.name + "' has another size");
    }
  }
  if (!tensors.empty())
    return does_not_fit("'" + *tensors.begin() + "' is not in the source's shard");
  return hasher.digest();
}

Result<SourceHashOutcome> check_source_hashes(const Artifact& artifact, const Sha256List& expected,
                                              const std::vector<std::string>& ignore,
                                              const Decoder& decoder, const Executor& executor,
                                              Progress& progress, Findings& findings) {
  const Manifest& manifest = *artifact.manifest();
  SourceHashOutcome outcome;
  std::map<std::string, const ManifestFile*> source_files;
  for (const ManifestFile& file : manifest.source_files) source_files[file.path] = &file;
  std::set<std::string> present;  // SHA-256 of the artifact's files
  for (const ManifestFile& file : manifest.files) {
    if (!any_glob_match(ignore, file.path)) present.insert(file.sha256.hex());
  }
  const auto differs = [&](const std::string& path, std::string message) {
    findings.add({"source_sha256_differs", path, "", std::move(message)});
  };

  std::vector<const ManifestFile*> to_restore;
  const auto confirm = [&](const ManifestFile& file) {
    ++outcome.hashes.n_equal;
    outcome.hashes.n_bytes += file.size_bytes;
  };
  for (const auto& [path, sha256] : expected) {
    ++outcome.hashes.n_listed;
    if (any_glob_match(ignore, path)) {
      outcome.ignored_files.push_back(path);
      continue;
    }
    const auto file = source_files.find(path);
    if (file == source_files.end()) {
      differs(path, "in the list of expected hashes, but no source file of the manifest");
    } else if (file->second->sha256 != sha256) {
      differs(path, "SHA-256 is " + file->second->sha256.hex() + " in the manifest, " +
                        sha256.hex() + " was expected");
    } else if (manifest.restore.contains(path)) {
      to_restore.push_back(file->second);
    } else if (present.contains(sha256.hex())) {
      confirm(*file->second);
    } else {
      differs(path, "no file of the artifact has its bytes");
    }
  }
  std::set<std::string> shards;
  for (const ManifestTensor& tensor : manifest.tensors) shards.insert(tensor.source_file);
  for (const auto& [path, file] : source_files) {
    if (expected.contains(path) || any_glob_match(ignore, path)) continue;
    if (shards.contains(path)) {
      differs(path, "holds weights, but is not in the list of expected hashes");
    } else {
      ++outcome.n_unlisted;
    }
  }

  SourceHasher hasher(artifact, decoder, executor, progress);
  std::vector<Result<Sha256>> digests(to_restore.size(), Sha256{});
  DF11_TRY(executor.for_each(to_restore.size(), [&](size_t i) -> Result<void> {
    digests[i] = hasher.sha256_of_restored(to_restore[i]->path);
    if (!digests[i] && !is_damage(digests[i].error().code)) return fail(digests[i].error());
    return {};
  }));
  for (size_t i = 0; i < to_restore.size(); ++i) {
    const ManifestFile& file = *to_restore[i];
    if (!digests[i]) {
      differs(file.path, "cannot be recomputed: " + digests[i].error().message);
    } else if (*digests[i] != file.sha256) {
      differs(file.path, "SHA-256 of what the artifact gives back is " + digests[i]->hex() + ", " +
                             file.sha256.hex() + " was expected");
    } else {
      confirm(file);
    }
  }
  return outcome;
}

}  // namespace df11
