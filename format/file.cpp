#include "format/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace df11 {

namespace fs = std::filesystem;

namespace {

// Linux transfers at most 0x7ffff000 bytes a call.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd;
  do fd = ::open(path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

int64_t modified_ns(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

Result<void> File::remember_stat() {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return fail(system_error(errno, "cannot stat", path_));
  if (!S_ISREG(info.st_mode)) {
    return fail(Error{ErrorCode::unsupported, "not a regular file", path_, {}, {}});
  }
  size_bytes_ = static_cast<uint64_t>(info.st_size);
  modified_ns_ = modified_ns(info);
  return {};
}

Result<File> File::open_read(const fs::path& path) {
  // O_NONBLOCK: opening a FIFO by mistake must not hang; it changes nothing for regular files.
  const int fd = open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) return fail(system_error(errno, "cannot open", path.string()));
  File file(fd, path.string());
  DF11_TRY(file.remember_stat());
  return file;
}

Result<File> File::create(const fs::path& path) {
  const int fd = open_retrying(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0666);
  if (fd < 0) return fail(system_error(errno, "cannot create", path.string()));
  return File(fd, path.string());
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      size_bytes_(other.size_bytes_),
      modified_ns_(other.modified_ns_) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
    size_bytes_ = other.size_bytes_;
    modified_ns_ = other.modified_ns_;
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> File::read_exact(MutableByteSpan buffer, uint64_t offset_bytes) const {
  while (!buffer.empty()) {
    const size_t wanted_bytes = std::min(buffer.size(), kMaxTransferBytes);
    const ssize_t n = ::pread(fd_, buffer.data(), wanted_bytes, static_cast<off_t>(offset_bytes));
    if (n < 0) {
      if (errno == EINTR) continue;
      Error error = system_error(errno, "cannot read", path_);
      error.offset_bytes = offset_bytes;
      return fail(std::move(error));
    }
    if (n == 0) {
      return fail(Error{ErrorCode::source_changed,
                        "the file ends before its declared size",
                        path_,
                        {},
                        offset_bytes});
    }
    buffer = buffer.subspan(static_cast<size_t>(n));
    offset_bytes += static_cast<uint64_t>(n);
  }
  return {};
}

Result<ByteSpan> File::read(uint64_t offset_bytes, size_t n_bytes, FileBuffer& buffer) const {
  DF11_TRY(read_exact(buffer.at(offset_bytes, n_bytes), offset_bytes));
  return buffer.bytes();
}

Result<void> File::for_each_chunk(
    uint64_t begin_bytes, uint64_t n_bytes,
    const std::function<Result<void>(ByteSpan, uint64_t)>& take) const {
  FileBuffer buffer;
  for (uint64_t offset = 0; offset < n_bytes; offset += kChunkBytes) {
    const size_t n_chunk_bytes = std::min<uint64_t>(kChunkBytes, n_bytes - offset);
    DF11_ASSIGN(const ByteSpan chunk, read(begin_bytes + offset, n_chunk_bytes, buffer));
    DF11_TRY(take(chunk, offset));
  }
  return {};
}

Result<void> File::write_exact(ByteSpan bytes, uint64_t offset_bytes) const {
  while (!bytes.empty()) {
    const size_t wanted_bytes = std::min(bytes.size(), kMaxTransferBytes);
    const ssize_t n = ::pwrite(fd_, bytes.data(), wanted_bytes, static_cast<off_t>(offset_bytes));
    if (n < 0) {
      if (errno == EINTR) continue;
      Error error = system_error(errno, "cannot write", path_);
      error.offset_bytes = offset_bytes;
      return fail(std::move(error));
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset_bytes += static_cast<uint64_t>(n);
  }
  return {};
}

Result<void> File::preallocate(uint64_t size_bytes) const {
  if (size_bytes == 0) return {};
  int status;
  do status = ::fallocate(fd_, 0, 0, static_cast<off_t>(size_bytes));
  while (status != 0 && errno == EINTR);
  if (status == 0) return {};
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    do status = ::ftruncate(fd_, static_cast<off_t>(size_bytes));
    while (status != 0 && errno == EINTR);
    if (status == 0) return {};
  }
  return fail(
      system_error(errno, "cannot reserve " + std::to_string(size_bytes) + " bytes", path_));
}

Result<void> File::check_unchanged() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return fail(system_error(errno, "cannot stat", path_));
  if (static_cast<uint64_t>(info.st_size) != size_bytes_ || modified_ns(info) != modified_ns_) {
    return fail(Error{
        ErrorCode::source_changed, "the file changed while it was being read", path_, {}, {}});
  }
  return {};
}

Result<void> File::sync() const {
  int status;
  do status = ::fsync(fd_);
  while (status != 0 && errno == EINTR);
  if (status != 0) return fail(system_error(errno, "cannot sync", path_));
  return {};
}

void File::forget_cached() const {
  (void)::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

Result<std::string> read_text_file(const fs::path& path, uint64_t max_bytes) {
  DF11_ASSIGN(const File file, File::open_read(path));
  if (file.size_bytes() > max_bytes) {
    return fail(Error{ErrorCode::limit_exceeded,
                      "the file has " + std::to_string(file.size_bytes()) +
                          " bytes, more than the " + std::to_string(max_bytes) + " allowed here",
                      path.string(),
                      {},
                      {}});
  }
  std::string text(file.size_bytes(), '\0');
  DF11_TRY(file.read_exact({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0));
  return text;
}

Result<void> write_text_file(const fs::path& path, std::string_view text) {
  DF11_ASSIGN(const File file, File::create(path));
  DF11_TRY(file.write_exact(as_bytes(text), 0));
  return file.sync();
}

uint64_t physical_memory_bytes() {
  const long n_pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  return n_pages > 0 && page_bytes > 0
             ? static_cast<uint64_t>(n_pages) * static_cast<uint64_t>(page_bytes)
             : 0;
}

}  // namespace df11
