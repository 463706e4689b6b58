#include "format/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(File, ReadsExactlyWhatIsAskedFor) {
  const TemporaryDirectory directory;
  write(directory / "f", "0123456789");
  const Result<File> file = File::open_read(directory / "f");
  ASSERT_TRUE(succeeded(file));
  EXPECT_EQ(file->size_bytes(), 10u);
  EXPECT_EQ(file->path(), directory / "f");
  uint8_t bytes[4];
  ASSERT_TRUE(succeeded(file->read_exact(bytes, 6)));
  EXPECT_EQ(std::string(bytes, bytes + 4), "6789");
  EXPECT_TRUE(succeeded(file->read_exact({}, 100)));
  const Result<void> past = file->read_exact(bytes, 7);
  ASSERT_TRUE(failed_with(past, ErrorCode::source_changed, (directory / "f").string()));
  EXPECT_EQ(past.error().offset_bytes, 10u);
  EXPECT_TRUE(failed_with(file->read_exact(bytes, 10), ErrorCode::source_changed));
  EXPECT_TRUE(failed_with(file->read_exact(bytes, uint64_t{1} << 40), ErrorCode::source_changed));
}

TEST(File, StreamsARangeInChunks) {
  const TemporaryDirectory directory;
  std::string text(2 * kChunkBytes + 300, '\0');
  std::iota(text.begin(), text.end(), '\0');
  text[kChunkBytes + 7] = '!';
  write(directory / "f", text);
  const File file = *File::open_read(directory / "f");
  std::string seen;
  std::vector<uint64_t> offsets;
  const auto take = [&](ByteSpan chunk, uint64_t offset) -> Result<void> {
    offsets.push_back(offset);
    seen.append(chunk.begin(), chunk.end());
    return {};
  };
  ASSERT_TRUE(succeeded(file.for_each_chunk(7, text.size() - 10, take)));
  EXPECT_EQ(seen, text.substr(7, text.size() - 10));
  EXPECT_EQ(offsets, (std::vector<uint64_t>{0, kChunkBytes, 2 * kChunkBytes}));
  ASSERT_TRUE(succeeded(file.for_each_chunk(5, 0, take)));
  EXPECT_EQ(offsets.size(), 3u);
  EXPECT_TRUE(failed_with(file.for_each_chunk(8, text.size(), take), ErrorCode::source_changed));
  const auto refuse = [&](ByteSpan, uint64_t) -> Result<void> {
    offsets.push_back(0);
    return fail(ErrorCode::cancelled, "enough");
  };
  offsets.clear();
  EXPECT_TRUE(failed_with(file.for_each_chunk(0, text.size(), refuse), ErrorCode::cancelled));
  EXPECT_EQ(offsets.size(), 1u);
}

TEST(FileBuffer, HoldsAnyPartAtAnEvenAddress) {
  const TemporaryDirectory directory;
  std::string text(1000, '\0');
  std::iota(text.begin(), text.end(), '\0');
  write(directory / "f", text);
  const Result<File> file = File::open_read(directory / "f");
  ASSERT_TRUE(succeeded(file));
  FileBuffer buffer;
  for (const size_t n_bytes : {0u, 1u, 63u, 64u, 65u, 200u}) {
    for (size_t offset = 0; offset < 200; ++offset) {
      const Result<ByteSpan> bytes = file->read(offset, n_bytes, buffer);
      ASSERT_TRUE(succeeded(bytes));
      EXPECT_EQ(std::string(bytes->begin(), bytes->end()), text.substr(offset, n_bytes));
      EXPECT_EQ(bytes->data(), buffer.bytes().data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes->data()) % 64, (offset & ~size_t{1}) % 64);
    }
  }
  EXPECT_TRUE(failed_with(file->read(990, 11, buffer), ErrorCode::source_changed));
}

TEST(File, NoticesTruncationAndChange) {
  const TemporaryDirectory directory;
  write(directory / "f", std::string(5000, 'x'));
  const File file = *File::open_read(directory / "f");
  EXPECT_TRUE(succeeded(file.check_unchanged()));
  fs::resize_file(directory / "f", 100);
  std::vector<uint8_t> bytes(5000);
  EXPECT_TRUE(failed_with(file.read_exact(bytes, 0), ErrorCode::source_changed));
  EXPECT_TRUE(failed_with(file.check_unchanged(), ErrorCode::source_changed));
  write(directory / "g", "abc");
  const File other = *File::open_read(directory / "g");
  // Same size, another time.
  const timespec times[2] = {{1, 0}, {1, 1}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (directory / "g").c_str(), times, 0), 0);
  EXPECT_TRUE(failed_with(other.check_unchanged(), ErrorCode::source_changed));
}

TEST(File, OpensRegularFilesOnly) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(failed_with(File::open_read(directory / "missing"), ErrorCode::not_found));
  EXPECT_TRUE(failed_with(File::open_read(directory / "missing" / "f"), ErrorCode::not_found));
  EXPECT_TRUE(failed_with(File::open_read(directory.path()), ErrorCode::unsupported));
  // Opening a FIFO must not wait for a writer.
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(failed_with(File::open_read(directory / "fifo"), ErrorCode::unsupported));
  write(directory / "f", "abc");
  fs::create_symlink("f", directory / "link");
  EXPECT_TRUE(succeeded(File::open_read(directory / "link")));
  fs::create_symlink("nowhere", directory / "dangling");
  EXPECT_TRUE(failed_with(File::open_read(directory / "dangling"), ErrorCode::not_found));
}

TEST(File, CreatesNewFilesOnly) {
  const TemporaryDirectory directory;
  {
    Result<File> file = File::create(directory / "f");
    ASSERT_TRUE(succeeded(file));
    ASSERT_TRUE(succeeded(file->preallocate(8)));
    const uint8_t tail[] = {'5', '6', '7'}, head[] = {'0', '1', '2', '3', '4'};
    ASSERT_TRUE(succeeded(file->write_exact(tail, 5)));
    ASSERT_TRUE(succeeded(file->write_exact(head, 0)));
    ASSERT_TRUE(succeeded(file->sync()));
    File moved = std::move(*file);
    *file = std::move(moved);  // and back
    uint8_t bytes[3];
    ASSERT_TRUE(succeeded(file->read_exact(bytes, 4)));
    EXPECT_EQ(std::string(bytes, bytes + 3), "456");
  }
  EXPECT_EQ(*read_text_file(directory / "f", 100), "01234567");
  EXPECT_TRUE(failed_with(File::create(directory / "f"), ErrorCode::already_exists));
  EXPECT_TRUE(failed_with(File::create(directory / "no" / "f"), ErrorCode::not_found));
  fs::create_symlink("nowhere", directory / "dangling");
  EXPECT_TRUE(failed_with(File::create(directory / "dangling"), ErrorCode::already_exists));
}

TEST(File, OpenedForReadingCannotBeWritten) {
  const TemporaryDirectory directory;
  write(directory / "f", "abc");
  const File file = *File::open_read(directory / "f");
  const uint8_t byte = 1;
  EXPECT_TRUE(failed_with(file.write_exact({&byte, 1}, 0), ErrorCode::io_error, "cannot write"));
}

TEST(TextFile, HasALimit) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(succeeded(write_text_file(directory / "t", "text\0text"s)));
  EXPECT_EQ(*read_text_file(directory / "t", 9), "text\0text"s);
  EXPECT_TRUE(failed_with(read_text_file(directory / "t", 8), ErrorCode::limit_exceeded));
  EXPECT_TRUE(failed_with(write_text_file(directory / "t", ""), ErrorCode::already_exists));
  ASSERT_TRUE(succeeded(write_text_file(directory / "empty", "")));
  EXPECT_EQ(*read_text_file(directory / "empty", 0), "");
}

}  // namespace
}  // namespace df11::test
