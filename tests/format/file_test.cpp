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

TEST(ListFiles, IsRecursiveSortedAndFollowsFileLinks) {
  const TemporaryDirectory directory;
  for (const char* sub : {"b", "b/c", "empty", ".git", ".github", ".cache", "b/.cache"}) {
    fs::create_directory(directory / sub);
  }
  for (const char* name : {"b/c/deep.txt", "b/z", "b.txt", "a", ".git/config", ".gitattributes",
                           ".github/x", ".cache/x", "b/.gitkeep", "b/.cache/kept", ".hidden"}) {
    write(directory / name, name);
  }
  fs::create_symlink("../a", directory / "b/link");
  const Result<std::vector<DirectoryEntry>> entries = list_files(directory.path());
  ASSERT_TRUE(succeeded(entries));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.relative_path);
  EXPECT_EQ(names, (std::vector<std::string>{".hidden", "a", "b.txt", "b/.cache/kept", "b/.gitkeep",
                                             "b/c/deep.txt", "b/link", "b/z"}));
  EXPECT_EQ((*entries)[6].size_bytes, 1u) << "of the file that the link points to";
  EXPECT_EQ((*entries)[5].size_bytes, 12u);
}

TEST(ListFiles, RefusesWhatIsNoFile) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(failed_with(list_files(directory / "missing"), ErrorCode::not_found));
  write(directory / "f", "");
  EXPECT_TRUE(failed_with(list_files(directory / "f"), ErrorCode::not_found));
  EXPECT_EQ(list_files(directory.path())->size(), 1u);
  const auto refused = [&](ErrorCode code, std::string_view text) {
    return failed_with(list_files(directory.path()), code, text);
  };
  fs::create_directory(directory / "d");
  fs::create_directory_symlink("d", directory / "to_directory");
  EXPECT_TRUE(refused(ErrorCode::unsupported, "to_directory"));
  fs::remove(directory / "to_directory");
  fs::create_directory_symlink("..", directory / "d/cycle");
  EXPECT_TRUE(refused(ErrorCode::unsupported, "cycle"));
  fs::remove(directory / "d/cycle");
  fs::create_symlink("nowhere", directory / "dangling");
  EXPECT_TRUE(refused(ErrorCode::not_found, "dangling"));
  fs::remove(directory / "dangling");
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(refused(ErrorCode::unsupported, "fifo"));
  // Not where tools keep their own things.
  fs::remove(directory / "fifo");
  fs::create_directory(directory / ".cache");
  ASSERT_EQ(::mkfifo((directory / ".cache/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(succeeded(list_files(directory.path())));
}

TEST(SafeRelativePath, StaysInside) {
  for (const std::string& good : {"a"s, "a/b"s, ".hidden"s, "a/..b"s, "a..b"s, "..."s,
                                  "model-00001.safetensors"s, "é/漢"s, "a b"s}) {
    EXPECT_TRUE(is_safe_relative_path(good)) << good;
  }
  for (const std::string& bad : {""s, "/"s, "/a"s, "a/"s, "a//b"s, "."s, ".."s, "./a"s, "a/./b"s,
                                 "../a"s, "a/.."s, "a/../b"s, "a\\b"s, "..\\a"s, "a\0b"s, "\0"s}) {
    EXPECT_FALSE(is_safe_relative_path(bad)) << bad;
  }
}

TEST(Housekeeping, Names) {
  for (const char* name : {".git", ".gitattributes", ".github", ".cache"})
    EXPECT_TRUE(is_housekeeping_name(name));
  for (const char* name : {"git", ".cached", "cache", "", ".hidden"})
    EXPECT_FALSE(is_housekeeping_name(name));
}

TEST(Rename, NeverReplaces) {
  const TemporaryDirectory directory;
  write(directory / "from", "1");
  write(directory / "to", "2");
  EXPECT_TRUE(
      failed_with(rename_durably(directory / "from", directory / "to"), ErrorCode::already_exists));
  EXPECT_EQ(*read_text_file(directory / "to", 10), "2");
  ASSERT_TRUE(succeeded(rename_durably(directory / "from", directory / "new")));
  EXPECT_EQ(*read_text_file(directory / "new", 10), "1");
  EXPECT_TRUE(
      failed_with(rename_durably(directory / "from", directory / "x"), ErrorCode::not_found));
  fs::create_directory(directory / "d");
  fs::create_directory(directory / "empty");
  EXPECT_TRUE(
      failed_with(rename_durably(directory / "d", directory / "empty"), ErrorCode::already_exists));
  ASSERT_TRUE(succeeded(rename_durably(directory / "d", directory / "e")));
  EXPECT_TRUE(fs::is_directory(directory / "e"));
}

TEST(Exchange, SwapsTwoPaths) {
  const TemporaryDirectory directory;
  write(directory / "a", "1");
  fs::create_directory(directory / "b");
  ASSERT_TRUE(succeeded(exchange_paths(directory / "a", directory / "b")));
  EXPECT_TRUE(fs::is_directory(directory / "a"));
  EXPECT_EQ(*read_text_file(directory / "b", 10), "1");
  EXPECT_TRUE(failed_with(exchange_paths(directory / "a", directory / "c"), ErrorCode::not_found));
}

TEST(Directories, AreMadeSyncedAndRemoved) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(succeeded(make_directories(directory / "x/y/z")));
  ASSERT_TRUE(succeeded(make_directories(directory / "x/y/z")));
  ASSERT_TRUE(succeeded(sync_directory(directory / "x/y")));
  write(directory / "x/y/f", "1");
  EXPECT_FALSE(make_directories(directory / "x/y/f/g"));
  EXPECT_TRUE(failed_with(sync_directory(directory / "x/y/f"), ErrorCode::not_found));
  ASSERT_TRUE(succeeded(remove_tree(directory / "x")));
  EXPECT_FALSE(fs::exists(directory / "x"));
  ASSERT_TRUE(succeeded(remove_tree(directory / "x")));
}

TEST(DirectoryLock, HoldsOneAtATime) {
  const TemporaryDirectory directory;
  {
    Result<DirectoryLock> lock = DirectoryLock::acquire(directory.path());
    ASSERT_TRUE(succeeded(lock));
    EXPECT_TRUE(failed_with(DirectoryLock::acquire(directory.path()), ErrorCode::already_exists));
    const DirectoryLock moved = std::move(*lock);
    EXPECT_TRUE(failed_with(DirectoryLock::acquire(directory.path()), ErrorCode::already_exists));
  }
  EXPECT_TRUE(succeeded(DirectoryLock::acquire(directory.path())));
  EXPECT_TRUE(failed_with(DirectoryLock::acquire(directory / "missing"), ErrorCode::not_found));
}

}  // namespace
}  // namespace df11::test
