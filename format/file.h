// Files: owned descriptors, exact positioned I/O.
//
// Reading is pread into caller's buffers, never mmap: a file truncated while it is read must be an
// error, not a signal. All functions retry EINTR and short transfers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/bytes.h"
#include "format/error.h"

namespace df11 {

// Bytes at a time when a file is streamed.
inline constexpr size_t kChunkBytes = size_t{1} << 20;

// Memory that parts of files are read into; reuse it.
//
// They lie in it as they lie in the file, modulo a cache line: copies between pages of the system
// and memory take two to five times as long where they do not (spec/cpu_speed.md, "Copies").
class FileBuffer {
 public:
  // Room for the `n_bytes` at `offset_bytes` of a file, at an even address, for they may be words;
  // what was there before is lost.
  MutableByteSpan at(uint64_t offset_bytes, size_t n_bytes) {
    uint8_t* const room = room_.ensure(n_bytes + kCacheLineBytes);
    const uint64_t even_offset = offset_bytes - offset_bytes % 2;
    bytes_ = {room + (even_offset - reinterpret_cast<uintptr_t>(room)) % kCacheLineBytes, n_bytes};
    return bytes_;
  }
  ByteSpan bytes() const { return bytes_; }

 private:
  static constexpr size_t kCacheLineBytes = 64;
  ScratchBuffer<uint8_t> room_;
  MutableByteSpan bytes_;
};

class File {
 public:
  // Opens an existing regular file (symbolic links are followed) for reading.
  // Errors: not_found, io_error, unsupported when it is no regular file.
  static Result<File> open_read(const std::filesystem::path& path);
  // Creates a new file for writing; fails with already_exists if there is one.
  static Result<File> create(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  // Size when the file was opened.
  uint64_t size_bytes() const { return size_bytes_; }

  // Fills `buffer` from `offset_bytes`. Error source_changed when the file ends before that.
  Result<void> read_exact(MutableByteSpan buffer, uint64_t offset_bytes) const;
  // The same, into `buffer`.
  Result<ByteSpan> read(uint64_t offset_bytes, size_t n_bytes, FileBuffer& buffer) const;
  // Reads `n_bytes` from `begin_bytes` on in order, and calls take(chunk, offset) for each chunk of
  // at most kChunkBytes, with the chunk's offset from `begin_bytes`. Ends at the first error.
  Result<void> for_each_chunk(
      uint64_t begin_bytes, uint64_t n_bytes,
      const std::function<Result<void>(ByteSpan chunk, uint64_t offset_bytes)>& take) const;
  Result<void> write_exact(ByteSpan bytes, uint64_t offset_bytes) const;
  // Asks the file system for `size_bytes` up front, so that a full disk is found early where the
  // file system supports it.
  Result<void> preallocate(uint64_t size_bytes) const;
  // source_changed when size or modification time are no longer those seen at opening.
  Result<void> check_unchanged() const;
  Result<void> sync() const;
  // Asks the system to drop what it caches of the file, so that reading reads the disk. What is not
  // synced yet stays.
  void forget_cached() const;

 private:
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Result<void> remember_stat();
  int fd_ = -1;
  std::string path_;
  uint64_t size_bytes_ = 0;
  int64_t modified_ns_ = 0;
};

// The whole file as text. limit_exceeded when it is larger than `max_bytes`.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t max_bytes);
Result<void> write_text_file(const std::filesystem::path& path, std::string_view text);

uint64_t physical_memory_bytes();  // of this machine; 0 when the system does not say

}  // namespace df11
