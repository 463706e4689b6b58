// What a download from a model hub leaves beside the files: which repository they are from, and the
// hash that the hub published for each (spec/manifest.md section 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "format/error.h"
#include "format/hash.h"

namespace df11 {

// "ORG/NAME", or "NAME" alone, as hubs allow it.
bool is_repository_name(std::string_view name);

// The repository of a directory in a hub cache, …/models--ORG--NAME/snapshots/REVISION or below
// it: "ORG/NAME"; empty elsewhere.
std::string hub_repository(const std::filesystem::path& directory);

// A published hash of one file and where the record of it is.
struct PublishedHash {
  std::string algorithm;  // "sha256", or "git-blob-sha1" of files that are kept in git itself
  std::string hex;
  std::string recorded_in;  // "hub cache" or "download record"
  std::string revision;     // commit of the repository, 40 hex digits; empty when unknown

  friend bool operator==(const PublishedHash&, const PublishedHash&) = default;
};

// Looks for a record of `relative_path` in `directory`: a symbolic link into a hub cache's blobs,
// which are named by their hash, or .cache/huggingface/download/PATH.metadata there or in the
// parent directory (for components of a pipeline). Nothing when there is none that means anything.
// Errors: I/O errors, so that a failing disk does not pass for a missing record.
Result<std::optional<PublishedHash>> published_hash(const std::filesystem::path& directory,
                                                    const std::string& relative_path);

// SHA-256 of a file that is streamed past, and the check of its published hash.
class PublishedHasher {
 public:
  PublishedHasher(std::optional<PublishedHash> published, uint64_t size_bytes);
  void update(ByteSpan bytes);
  static void update_pair(PublishedHasher& a, ByteSpan a_bytes, PublishedHasher& b,
                          ByteSpan b_bytes);  // as Sha256Hasher's
  // Once. damaged when the bytes are not those that were published.
  Result<Sha256> finish();

 private:
  std::optional<PublishedHash> published_;
  Sha256Hasher sha256_;
  std::optional<GitBlobHasher> git_blob_;
};

}  // namespace df11
