#include "format/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace df11 {

namespace fs = std::filesystem;

namespace {

int open_directory(const fs::path& path) {
  int fd;
  do fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

bool is_housekeeping_name(std::string_view top_level_name) {
  return top_level_name.starts_with(".git") || top_level_name == ".cache";
}

bool is_safe_relative_path(std::string_view name) {
  if (name.empty() || name.find('\0') != name.npos || name.find('\\') != name.npos) return false;
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view component = name.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == name.npos) return true;
    name.remove_prefix(slash + 1);
  }
}

Result<std::vector<DirectoryEntry>> list_files(const fs::path& directory) {
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error), end;
  if (error) return fail(system_error(error.value(), "cannot list", directory.string()));
  std::vector<DirectoryEntry> entries;
  for (; it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (it.depth() == 0 && is_housekeeping_name(path.filename().string())) {
      it.disable_recursion_pending();
      continue;
    }
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) {
      return fail(system_error(errno, "cannot stat", path.string()));
    }
    if (S_ISDIR(info.st_mode)) {
      if (it->is_symlink(error)) {
        return fail(Error{ErrorCode::unsupported,
                          "a symbolic link to a directory is not followed",
                          path.string(),
                          {},
                          {}});
      }
      continue;
    }
    if (!S_ISREG(info.st_mode)) {
      return fail(Error{ErrorCode::unsupported, "not a regular file", path.string(), {}, {}});
    }
    entries.push_back(
        {path.lexically_relative(directory).generic_string(), static_cast<uint64_t>(info.st_size)});
  }
  if (error) return fail(system_error(error.value(), "cannot list", directory.string()));
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.relative_path < b.relative_path; });
  return entries;
}

Result<std::vector<fs::directory_entry>> list_directory(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(directory, error), end; it != end; it.increment(error))
    entries.push_back(*it);
  if (error) return fail(system_error(error.value(), "cannot list", directory.string()));
  return entries;
}

Result<void> make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail(system_error(error.value(), "cannot create directory", path.string()));
  return {};
}

Result<void> remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return fail(system_error(error.value(), "cannot remove", path.string()));
  return {};
}

Result<void> sync_directory(const fs::path& path) {
  const int fd = open_directory(path);
  if (fd < 0) return fail(system_error(errno, "cannot open directory", path.string()));
  const int status = ::fsync(fd);
  const int saved = errno;
  ::close(fd);
  if (status != 0) return fail(system_error(saved, "cannot sync directory", path.string()));
  return {};
}

Result<void> sync_parent(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return sync_directory(parent.empty() ? fs::path(".") : parent);
}

namespace {
Error rename_error(int errno_value, const fs::path& from, const fs::path& to) {
  return system_error(errno_value, "cannot rename " + from.string() + " to this", to.string());
}

Result<void> rename_plainly(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return fail(rename_error(errno, from, to));
}
}  // namespace

Result<void> rename_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL) return fail(rename_error(errno, from, to));
  // The file system has no RENAME_NOREPLACE. A plain rename refuses a non-empty directory too.
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(to, ignored))) return fail(rename_error(EEXIST, from, to));
  return rename_plainly(from, to);
}

Result<fs::path> replace_path(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return from;
  if (errno != EINVAL) return fail(rename_error(errno, from, to));
  // The file system has no RENAME_EXCHANGE: for a moment nothing has the name.
  fs::path aside = to;
  aside += kReplacedSuffix;
  DF11_TRY(rename_new(to, aside));
  if (Result<void> moved = rename_plainly(from, to); !moved) {
    (void)rename_plainly(aside, to);
    return fail(std::move(moved).error());
  }
  return aside;
}

Result<DirectoryLock> DirectoryLock::acquire(const fs::path& directory) {
  const int fd = open_directory(directory);
  if (fd < 0) return fail(system_error(errno, "cannot open directory", directory.string()));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int saved = errno;
    ::close(fd);
    if (saved == EWOULDBLOCK) {
      return fail(Error{ErrorCode::already_exists,
                        "another process is writing here",
                        directory.string(),
                        {},
                        {}});
    }
    return fail(system_error(saved, "cannot lock", directory.string()));
  }
  return DirectoryLock(fd);
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace df11
