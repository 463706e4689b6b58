#include "format/hub_record.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

// `git hash-object` and `sha256sum` of a file with "hello\n".
const std::string kHello = "hello\n";
const std::string kHelloGit = "ce013625030ba8dba906f756967f9e9ca394464a";
const std::string kHelloSha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
const std::string kRevision = "0123456789abcdef0123456789abcdef01234567";

class HubRecordTest : public ::testing::Test {
 protected:
  fs::path snapshot(const std::string& repository = "models--Org--Name") const {
    return directory_ / repository / "snapshots" / kRevision;
  }
  void write_cached(const std::string& path, const std::string& blob) const {
    const fs::path at = snapshot() / path;
    write_file(directory_ / "models--Org--Name/blobs" / blob, kHello);
    fs::create_directories(at.parent_path());
    fs::create_symlink(
        fs::path("../..") / (path.find('/') == path.npos ? "" : "..") / "blobs" / blob, at);
  }
  void write_record(const std::string& path, const std::string& text) const {
    write_file(directory_ / "local/.cache/huggingface/download" / (path + ".metadata"), text);
  }

  static std::optional<PublishedHash> found(const fs::path& directory, const std::string& path) {
    const Result<std::optional<PublishedHash>> result = published_hash(directory, path);
    EXPECT_TRUE(succeeded(result));
    return result.value_or(std::nullopt);
  }

  TemporaryDirectory directory_;
};

TEST_F(HubRecordTest, RepositoryNames) {
  for (const char* name : {"Qwen/Qwen3-8B", "gpt2", "a.b/c_d-e.F", "x/y"})
    EXPECT_TRUE(is_repository_name(name)) << name;
  for (const char* name : {"", "/", "a/", "/a", "a/b/c", "../b", "./b", "a/..", "a--b/c", "a/b ",
                           "a/b\n", "-a/b", "a/b.", "a/\xc3\xa9", "a/b](x)"})
    EXPECT_FALSE(is_repository_name(name)) << name;
  EXPECT_FALSE(is_repository_name(std::string(97, 'a')));
}

TEST_F(HubRecordTest, RepositoryOfACacheDirectory) {
  fs::create_directories(snapshot() / "transformer");
  EXPECT_EQ(hub_repository(snapshot()), "Org/Name");
  EXPECT_EQ(hub_repository(snapshot() / ""), "Org/Name");
  EXPECT_EQ(hub_repository(snapshot() / "transformer"), "Org/Name");
  fs::create_directory_symlink(snapshot(), directory_ / "link");
  EXPECT_EQ(hub_repository(directory_ / "link"), "Org/Name");
  EXPECT_EQ(hub_repository(directory_ / "models--Org--Name"), "");
  EXPECT_EQ(hub_repository(directory_ / "nowhere"), "");
  for (const auto& [repository, name] : std::map<std::string, std::string>{{"models--gpt2", "gpt2"},
                                                                           {"models--a--b--c", ""},
                                                                           {"datasets--a--b", ""},
                                                                           {"models--", ""}}) {
    fs::create_directories(snapshot(repository));
    EXPECT_EQ(hub_repository(snapshot(repository)), name) << repository;
  }
}

TEST_F(HubRecordTest, HubCache) {
  write_cached("model.safetensors", kHelloSha256);
  write_cached("transformer/config.json", kHelloGit);
  EXPECT_EQ(found(snapshot(), "model.safetensors"),
            (PublishedHash{"sha256", kHelloSha256, "hub cache", kRevision}));
  EXPECT_EQ(found(snapshot(), "transformer/config.json"),
            (PublishedHash{"git-blob-sha1", kHelloGit, "hub cache", kRevision}));
  EXPECT_EQ(found(snapshot() / "transformer", "config.json"),
            (PublishedHash{"git-blob-sha1", kHelloGit, "hub cache", kRevision}));
  // A directory of links to a snapshot's files: the revision is not to be seen from there.
  fs::create_directories(directory_ / "mine");
  fs::create_symlink(snapshot() / "model.safetensors", directory_ / "mine/model.safetensors");
  EXPECT_EQ(found(directory_ / "mine", "model.safetensors"),
            (PublishedHash{"sha256", kHelloSha256, "hub cache", ""}));
}

TEST_F(HubRecordTest, NoRecordInACache) {
  write_cached("etag", kHelloSha256.substr(1) + "g");
  write_cached("short", kHelloSha256.substr(2));
  write_file(snapshot() / "plain", kHello);
  write_file(directory_ / "blobs" / kHelloSha256, kHello);  // named like a blob, but no link
  fs::create_symlink("nowhere", snapshot() / "dangling");
  for (const char* path : {"etag", "short", "plain", "dangling", "absent"})
    EXPECT_EQ(found(snapshot(), path), std::nullopt) << path;
  EXPECT_EQ(found(directory_ / "blobs", kHelloSha256), std::nullopt);
}

TEST_F(HubRecordTest, DownloadRecord) {
  const fs::path local = directory_ / "local";
  write_record("a.txt", kRevision + "\n" + kHelloGit + "\n1700000000.5\n");
  write_record("transformer/b.bin", kRevision + "\r\n\"" + kHelloSha256 + "\"\r\n1700000000.5\r\n");
  fs::create_directories(local / "transformer");
  EXPECT_EQ(found(local, "a.txt"),
            (PublishedHash{"git-blob-sha1", kHelloGit, "download record", kRevision}));
  const PublishedHash component{"sha256", kHelloSha256, "download record", kRevision};
  EXPECT_EQ(found(local, "transformer/b.bin"), component);
  EXPECT_EQ(found(local / "transformer", "b.bin"), component);
  EXPECT_EQ(found(local / "transformer/", "b.bin"), component);
  EXPECT_EQ(found(local, "b.bin"), std::nullopt);
}

TEST_F(HubRecordTest, RecordsThatAreNone) {
  for (const std::string& text :
       {std::string(), std::string("\n\n\n"), kRevision, kRevision + "\nW/\"x\"\n1\n",
        kRevision + "\n" + std::string(5000, 'a') + "\n",
        kRevision + "\n" + std::string(40, 'A') + "\n"}) {
    write_record("a.txt", text);
    EXPECT_EQ(found(directory_ / "local", "a.txt"), std::nullopt) << text;
  }
  write_record("a.txt", "main\n" + kHelloGit + "\n");
  EXPECT_EQ(found(directory_ / "local", "a.txt")->revision, "");
}

TEST_F(HubRecordTest, HasherChecks) {
  const auto digest = [](const std::string& text, const std::optional<PublishedHash>& published) {
    PublishedHasher hasher(published, text.size());
    hasher.update(as_bytes(text.substr(0, 2)));
    hasher.update(as_bytes(text.substr(2)));
    return hasher.finish();
  };
  const PublishedHash git{"git-blob-sha1", kHelloGit, "hub cache", ""};
  const PublishedHash sha{"sha256", kHelloSha256, "download record", ""};
  for (const std::optional<PublishedHash>& published :
       {std::optional<PublishedHash>(), std::optional(git), std::optional(sha)}) {
    ASSERT_TRUE(succeeded(digest(kHello, published)));
    EXPECT_EQ(digest(kHello, published)->hex(), kHelloSha256);
  }
  EXPECT_TRUE(
      failed_with(digest("hellO\n", git), ErrorCode::damaged, "hub cache has " + kHelloGit));
  EXPECT_TRUE(failed_with(digest("hello", sha), ErrorCode::damaged, "download record"));
  EXPECT_TRUE(succeeded(digest("hellO\n", std::nullopt)));
}

}  // namespace
}  // namespace df11::test
