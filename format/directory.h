// Directories: listing, making, removing, syncing, renaming, locking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "format/error.h"

namespace df11 {

struct DirectoryEntry {
  std::string relative_path;  // '/'-separated, no leading "./"
  uint64_t size_bytes;
};
// All regular files below `directory`, sorted by path; symbolic links to files are followed, links
// to directories and special files are errors (unsupported). Top-level entries that version control
// and download tools keep beside the files (".git*", ".cache") are left out.
Result<std::vector<DirectoryEntry>> list_files(const std::filesystem::path& directory);

// What lies in `directory` itself, in no order; nothing is followed or left out.
Result<std::vector<std::filesystem::directory_entry>> list_directory(
    const std::filesystem::path& directory);

// True for the top-level names that list_files leaves out.
bool is_housekeeping_name(std::string_view top_level_name);

// True when `name` may be joined to a directory without leaving it: relative, no empty, "." or ".."
// component, no NUL, no backslash.
bool is_safe_relative_path(std::string_view name);

Result<void> make_directories(const std::filesystem::path& path);
Result<void> remove_tree(const std::filesystem::path& path);
Result<void> sync_directory(const std::filesystem::path& path);
// Makes durable what name `path` has: syncs the directory it lies in.
Result<void> sync_parent(const std::filesystem::path& path);
// already_exists when there is something at `to`.
Result<void> rename_new(const std::filesystem::path& from, const std::filesystem::path& to);
// Gives `from` the name `to`, and what has that another: `from` where the file system can exchange
// two names in one step, else `to` + kReplacedSuffix. That one is returned.
Result<std::filesystem::path> replace_path(const std::filesystem::path& from,
                                           const std::filesystem::path& to);
inline constexpr std::string_view kReplacedSuffix = ".df11-replaced";

// A directory held for this process alone while the object lives (flock).
class DirectoryLock {
 public:
  // already_exists when another process holds it.
  static Result<DirectoryLock> acquire(const std::filesystem::path& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace df11
