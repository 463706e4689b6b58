#include "verify/source_hash.h"

#include <map>
#include <set>
#include <vector>

#include "decoder/restore.h"
#include "format/pattern.h"

namespace df11 {

namespace {

// The SHA-256 of a source file that the artifact holds as a restore record and tensors.
// Errors: malformed_manifest when record and list of tensors do not fit; those of stream_file.
Result<Sha256> sha256_of_restored(const ManifestFile& file, const RestorePlanner& planner,
                                  const Artifact& artifact, const Decoder& decoder,
                                  const Executor& executor, Progress& progress) {
  DF11_ASSIGN(const RestoredFile restored, planner.plan(file));
  // Empty tensors leave no trace in the bytes.
  std::set<std::string> listed, planned;
  for (const ManifestTensor& tensor : artifact.manifest()->tensors) {
    if (tensor.source_file == file.path && tensor_bytes(tensor.dtype, tensor.shape) != 0u)
      listed.insert(tensor.name);
  }
  for (const RestoredTensor& tensor : restored.tensors) {
    if (tensor.info.size_bytes() != 0) planned.insert(tensor.info.name);
  }
  if (listed != planned) {
    return fail(ErrorCode::malformed_manifest,
                "its restore record and the manifest's list of tensors do not fit");
  }
  return stream_file(restored, artifact, decoder, executor,
                     static_cast<size_t>(executor.n_threads()) + 1,
                     [&](ByteSpan bytes, uint64_t) -> Result<void> {
                       progress.add(bytes.size());
                       return {};
                     });
}

}  // namespace

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

  const Result<RestorePlanner> planner = RestorePlanner::make(artifact);
  std::vector<Result<Sha256>> digests(to_restore.size(), Sha256{});
  DF11_TRY(executor.for_each(to_restore.size(), [&](size_t i) -> Result<void> {
    digests[i] = planner ? sha256_of_restored(*to_restore[i], *planner, artifact, decoder, executor,
                                              progress)
                         : fail(planner.error());
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
