#include "format/directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "format/file.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
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

TEST(ListDirectory, NamesWhatLiesInIt) {
  const TemporaryDirectory directory;
  write(directory / "f", "1");
  fs::create_directories(directory / "d/e");
  fs::create_symlink("nowhere", directory / ".link");
  const Result<std::vector<fs::directory_entry>> entries = list_directory(directory.path());
  ASSERT_TRUE(succeeded(entries));
  std::set<std::string> names;
  for (const fs::directory_entry& entry : *entries) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"f", "d", ".link"}));
  EXPECT_TRUE(failed_with(list_directory(directory / "missing"), ErrorCode::not_found));
  EXPECT_FALSE(list_directory(directory / "f"));
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
      failed_with(rename_new(directory / "from", directory / "to"), ErrorCode::already_exists));
  EXPECT_EQ(*read_text_file(directory / "to", 10), "2");
  ASSERT_TRUE(succeeded(rename_new(directory / "from", directory / "new")));
  EXPECT_EQ(*read_text_file(directory / "new", 10), "1");
  EXPECT_TRUE(failed_with(rename_new(directory / "from", directory / "x"), ErrorCode::not_found));
  fs::create_directory(directory / "d");
  fs::create_directory(directory / "empty");
  EXPECT_TRUE(
      failed_with(rename_new(directory / "d", directory / "empty"), ErrorCode::already_exists));
  ASSERT_TRUE(succeeded(rename_new(directory / "d", directory / "e")));
  EXPECT_TRUE(fs::is_directory(directory / "e"));
}

TEST(Replace, GivesBackWhatWasThere) {
  const TemporaryDirectory directory;
  write(directory / "a", "1");
  fs::create_directory(directory / "b");
  const Result<fs::path> old = replace_path(directory / "a", directory / "b");
  ASSERT_TRUE(succeeded(old));
  EXPECT_TRUE(fs::is_directory(*old));
  EXPECT_EQ(*read_text_file(directory / "b", 10), "1");
  EXPECT_TRUE(failed_with(replace_path(directory / "b", directory / "c"), ErrorCode::not_found));
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
