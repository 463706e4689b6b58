#include "format/partial_output.h"

#include <gtest/gtest.h>

#include <fstream>

#include "format/file.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;

class PartialOutputTest : public ::testing::Test {
 protected:
  fs::path output() const { return directory_ / "output"; }
  fs::path partial() const { return partial_path(output()); }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const fs::path& path) {
    return read_text_file(path, 100).value_or("none");
  }

  // Writes an output of one file; `meanwhile` happens before it is published.
  Result<void> publish(const ReplaceRule& may_replace, const std::function<void()>& meanwhile,
                       bool resume = false) const {
    DF11_ASSIGN(PartialOutput made, PartialOutput::create(output(), may_replace, resume));
    write(made.path() / "sub/file", "new");
    meanwhile();
    return made.publish();
  }

  TemporaryDirectory directory_;
};

const ReplaceRule kAny = [](const fs::path&) { return Result<void>(); };
// Only a directory that holds the file "mine".
Result<void> only_mine(const fs::path& directory) {
  if (fs::exists(directory / "mine")) return {};
  return fail(ErrorCode::already_exists, "not mine");
}

TEST_F(PartialOutputTest, AppearsWhenItIsPublished) {
  for (const ReplaceRule& rule : {ReplaceRule(), kAny}) {
    ASSERT_TRUE(succeeded(publish(rule, [&] { EXPECT_FALSE(fs::exists(output())); })));
    EXPECT_EQ(read(output() / "sub/file"), "new");
    EXPECT_FALSE(fs::exists(partial()));
    fs::remove_all(output());
  }
}

TEST_F(PartialOutputTest, WhatComesMeanwhileIsNotReplaced) {
  const auto check = [&](const ReplaceRule& rule, const fs::path& theirs, std::string_view text) {
    const auto meanwhile = [&] { write(theirs, "precious"); };
    const Result<void> published = publish(rule, meanwhile);
    EXPECT_TRUE(failed_with(published, ErrorCode::already_exists, text));
    EXPECT_TRUE(failed_with(published, ErrorCode::already_exists,
                            "the output is complete, as " + partial().string()));
    EXPECT_EQ(read(theirs), "precious");
    EXPECT_EQ(read(partial() / "sub/file"), "new");
    fs::remove_all(output());
  };
  check(nullptr, output(), "exists");
  check(nullptr, output() / "file", "exists");
  check(kAny, output(), "directories only");
  check(only_mine, output() / "file", "not mine");
}

TEST_F(PartialOutputTest, WhatMayBeReplacedIs) {
  ASSERT_TRUE(succeeded(publish(only_mine, [&] { write(output() / "mine", "old"); })));
  EXPECT_EQ(read(output() / "sub/file"), "new");
  EXPECT_FALSE(fs::exists(output() / "mine"));
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(PartialOutputTest, UnpublishedItIsRemovedUnlessItWasResumed) {
  const auto make = [&](bool resume) {
    const Result<PartialOutput> made = PartialOutput::create(output(), nullptr, resume);
    ASSERT_TRUE(succeeded(made));
    write(made->path() / "file", "some");
  };
  make(false);
  EXPECT_FALSE(fs::exists(partial()));
  make(true);
  EXPECT_EQ(read(partial() / "file"), "some");
  // What was resumed goes as usual when it is published, and so does what it replaces.
  ASSERT_TRUE(succeeded(publish(
      only_mine, [&] { write(output() / "mine", "old"); }, true)));
  EXPECT_EQ(read(output() / "file"), "some");
  EXPECT_FALSE(fs::exists(partial()));
  make(false);
  EXPECT_FALSE(fs::exists(partial()));
}

}  // namespace
}  // namespace df11::test
