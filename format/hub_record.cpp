#include "format/hub_record.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "format/file.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxNameBytes = 96;        // of a hub's repository names
constexpr uint64_t kMaxRecordBytes = 4096;  // three short lines
constexpr std::string_view kCachePrefix = "models--";

bool is_hex(std::string_view text, size_t n_digits) {
  return text.size() == n_digits && hex_decode(text).has_value();
}

std::string revision_or_empty(std::string_view text) {
  return is_hex(text, 40) ? std::string(text) : "";
}

std::optional<PublishedHash> from_hex(std::string_view hex, std::string recorded_in,
                                      std::string revision) {
  const bool sha256 = is_hex(hex, 64);
  if (!sha256 && !is_hex(hex, 40)) return std::nullopt;
  return PublishedHash{sha256 ? "sha256" : "git-blob-sha1", std::string(hex),
                       std::move(recorded_in), std::move(revision)};
}

// `directory` with its links resolved, as components; none when that fails.
std::vector<std::string> real_components(const fs::path& directory) {
  std::error_code error;
  const fs::path real = fs::canonical(directory, error);
  std::vector<std::string> components;
  for (const fs::path& component : error ? fs::path() : real) {
    components.push_back(component.string());
  }
  return components;
}

// Index of "models--ORG--NAME" in …/models--ORG--NAME/snapshots/REVISION/…; nothing when the path
// is no such path.
std::optional<size_t> cache_component(const std::vector<std::string>& components) {
  for (size_t i = 0; i + 2 < components.size(); ++i) {
    if (components[i].starts_with(kCachePrefix) && components[i + 1] == "snapshots") return i;
  }
  return std::nullopt;
}

std::optional<PublishedHash> in_hub_cache(const fs::path& directory, const fs::path& file) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(file, error))) return std::nullopt;
  const fs::path blob = fs::canonical(file, error);
  if (error || blob.parent_path().filename() != "blobs") return std::nullopt;
  const std::vector<std::string> components = real_components(directory);
  const std::optional<size_t> at = cache_component(components);
  return from_hex(blob.filename().string(), "hub cache",
                  at ? revision_or_empty(components[*at + 2]) : "");
}

Result<std::optional<PublishedHash>> in_download_record(const fs::path& root,
                                                        const std::string& path) {
  const Result<std::string> text =
      read_text_file(root / ".cache/huggingface/download" / (path + ".metadata"), kMaxRecordBytes);
  if (!text) {
    const ErrorCode code = text.error().code;
    if (code == ErrorCode::not_found || code == ErrorCode::unsupported ||
        code == ErrorCode::limit_exceeded) {
      return std::nullopt;  // no record, or none of this form
    }
    return fail(text.error());
  }
  // Lines: commit, hash (as an HTTP entity tag), time.
  std::string_view rest = *text;
  const auto line = [&] {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view result = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (result.ends_with('\r')) result.remove_suffix(1);
    return result;
  };
  const std::string revision = revision_or_empty(line());
  std::string_view tag = line();
  if (tag.size() >= 2 && tag.starts_with('"') && tag.ends_with('"')) {
    tag = tag.substr(1, tag.size() - 2);
  }
  return from_hex(tag, "download record", revision);
}

}  // namespace

bool is_repository_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || std::count(name.begin(), name.end(), '/') > 1)
    return false;
  const size_t slash = name.find('/');
  for (const std::string_view part :
       {name.substr(0, slash),
        slash == name.npos ? std::string_view("x") : name.substr(slash + 1)}) {
    const auto is_end = [](char c) { return c == '-' || c == '.'; };
    if (part.empty() || is_end(part.front()) || is_end(part.back()) ||
        part.find("--") != part.npos || part.find("..") != part.npos ||
        !std::all_of(part.begin(), part.end(), [](unsigned char c) {
          return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
        })) {
      return false;
    }
  }
  return true;
}

std::string hub_repository(const fs::path& directory) {
  const std::vector<std::string> components = real_components(directory);
  const std::optional<size_t> at = cache_component(components);
  if (!at) return "";
  std::string name = components[*at].substr(kCachePrefix.size());
  if (const size_t dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
  return is_repository_name(name) ? name : "";
}

Result<std::optional<PublishedHash>> published_hash(const fs::path& directory,
                                                    const std::string& relative_path) {
  if (auto found = in_hub_cache(directory, directory / relative_path)) return found;
  DF11_ASSIGN(std::optional<PublishedHash> found, in_download_record(directory, relative_path));
  if (found) return found;
  std::error_code error;
  const fs::path real = fs::canonical(directory, error);
  if (error || !real.has_filename()) return std::nullopt;
  return in_download_record(real.parent_path(), real.filename().string() + "/" + relative_path);
}

PublishedHasher::PublishedHasher(std::optional<PublishedHash> published, uint64_t size_bytes)
    : published_(std::move(published)) {
  if (published_ && published_->algorithm == "git-blob-sha1") git_blob_.emplace(size_bytes);
}

void PublishedHasher::update(ByteSpan bytes) {
  sha256_.update(bytes);
  if (git_blob_) git_blob_->update(bytes);
}

void PublishedHasher::update_pair(PublishedHasher& a, ByteSpan a_bytes, PublishedHasher& b,
                                  ByteSpan b_bytes) {
  Sha256Hasher::update_pair(a.sha256_, a_bytes, b.sha256_, b_bytes);
  if (a.git_blob_) a.git_blob_->update(a_bytes);
  if (b.git_blob_) b.git_blob_->update(b_bytes);
}

Result<Sha256> PublishedHasher::finish() {
  const Sha256 sha256 = sha256_.digest();
  if (!published_) return sha256;
  const std::string hex = git_blob_ ? git_blob_->digest().hex() : sha256.hex();
  if (hex == published_->hex) return sha256;
  return fail(ErrorCode::damaged,
              "its " + published_->algorithm + " is " + hex + ", but the " +
                  published_->recorded_in + " has " + published_->hex +
                  " as published: damaged, or changed after its download (if that is meant, remove "
                  "the record)");
}

}  // namespace df11
