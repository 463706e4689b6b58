// Which files come out of an artifact, and where each one's bytes are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decoder/tensor_reader.h"
#include "format/artifact.h"
#include "format/error.h"
#include "format/hash.h"

namespace df11 {

// `transformers` writes shards of at most so many bytes of tensors.
inline constexpr uint64_t kMaxShardBytes = 5'000'000'000;

struct RestoredTensor {
  TensorInfo info;  // in the restored file
  StoredTensor stored;
};

// A file is a copy of a file of the artifact, or else a head followed by tensors.
struct RestoredFile {
  std::string path;
  uint64_t size_bytes = 0;
  std::optional<Sha256> sha256;  // as the manifest records it
  std::string copied_from;       // path within the artifact; empty when it is no copy
  std::string head;
  std::vector<RestoredTensor> tensors;  // in the order of their bytes
};

struct RestorePlan {
  std::vector<RestoredFile> files;         // by path
  std::vector<std::string> omitted_files;  // of the source: compression left them out
  std::vector<std::string> flat_tensors;   // written with one dimension: their shape is not known

  uint64_t total_bytes() const;
};

// Plans the source's files, byte for byte, one at a time.
class RestorePlanner {
 public:
  // The artifact must have a manifest, and must outlive the planner. Errors: malformed_group.
  static Result<RestorePlanner> make(const Artifact& artifact);

  // A file of the manifest's `source_files`. Errors: damaged, malformed_*.
  Result<RestoredFile> plan(const ManifestFile& source) const;

 private:
  Result<std::string> holder_of(const ManifestFile& source) const;
  Result<void> add_tensors(RestoredFile& file) const;

  const Manifest* manifest_ = nullptr;
  std::map<std::string, StoredTensor> stored_;
  std::map<std::string, const ManifestFile*> by_path_, by_sha256_;
};

// All of the source's files, as the artifact's manifest describes them
// (spec/manifest.md section 5). The artifact must have one, and must outlive the plan.
// Errors: damaged, malformed_*.
Result<RestorePlan> plan_restore(const Artifact& artifact);

// The tensors, in new safetensors shards of at most `max_shard_bytes` of them; config.json without
// DF11's entry; all other files (spec/cli.md, "--tensors-only"). `artifact` must outlive the plan.
// Errors: malformed_*, limit_exceeded, I/O errors.
Result<RestorePlan> plan_tensors_only(const Artifact& artifact,
                                      uint64_t max_shard_bytes = kMaxShardBytes);

}  // namespace df11
