#include "format/front_matter.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

std::string items_of(const FrontMatter& matter, std::string_view key) {
  const CardValue* value = matter.find(key);
  if (value == nullptr) return "(none)";
  std::string text = value->is_list ? "list" : "scalar";
  for (const std::string& item : value->items) text += "|" + item;
  return text;
}

TEST(FrontMatter, ReadsScalarsAndLists) {
  const Result<FrontMatter> matter = FrontMatter::parse(
      "---\n"
      "license: apache-2.0\n"
      "language:\n- en\n- no\n"
      "tags: [a, 'b c']\n"
      "license_name: \"x: y\"\n"
      "empty:\n"
      "model-index:\n- name: m\n  results: [{task: {type: t}}]\n"
      "version: 1.0\n"
      "---\n# Title\nlicense: mit\n");
  ASSERT_TRUE(succeeded(matter));
  EXPECT_EQ(items_of(*matter, "license"), "scalar|apache-2.0");
  EXPECT_EQ(items_of(*matter, "language"), "list|en|no");
  EXPECT_EQ(items_of(*matter, "tags"), "list|a|b c");
  EXPECT_EQ(items_of(*matter, "license_name"), "scalar|x: y");
  EXPECT_EQ(items_of(*matter, "version"), "scalar|1.0");
  EXPECT_EQ(items_of(*matter, "empty"), "(none)");
  EXPECT_EQ(items_of(*matter, "model-index"), "(none)");
  EXPECT_EQ(matter->entries.size(), 5u);
}

TEST(FrontMatter, CardsWithoutABlock) {
  for (const char* card : {"", "# Title\n", "text\n---\nlicense: mit\n---\n", "---\n---\n# Title\n",
                           "----\nlicense: mit\n----\n", "---\n# a comment\n---\n"}) {
    const Result<FrontMatter> matter = FrontMatter::parse(card);
    ASSERT_TRUE(succeeded(matter)) << card;
    EXPECT_TRUE(matter->entries.empty()) << card;
  }
}

TEST(FrontMatter, LineEndsByteOrderMarkAndNoFinalNewline) {
  for (const char* card : {"---\r\nlicense: mit\r\n---\r\n# T\r\n",
                           "\xef\xbb\xbf---\nlicense: mit\n---", "\n\n---\nlicense: mit\n---\n"}) {
    const Result<FrontMatter> matter = FrontMatter::parse(card);
    ASSERT_TRUE(succeeded(matter)) << card;
    EXPECT_EQ(items_of(*matter, "license"), "scalar|mit") << card;
  }
}

TEST(FrontMatter, BrokenBlocks) {
  const auto refused = [](const std::string& card, std::string_view text) {
    return failed_with(FrontMatter::parse(card), ErrorCode::malformed_config, text);
  };
  EXPECT_TRUE(refused("---\nlicense: mit\n", "closing"));
  EXPECT_TRUE(refused("---\n- a\n- b\n---\n", "no map"));
  EXPECT_TRUE(refused("---\njust text\n---\n", "no map"));
  EXPECT_TRUE(refused("---\na: [1\n---\n", "line"));
  EXPECT_TRUE(refused("---\na: b: c\n---\n", "line"));
  EXPECT_TRUE(refused("---\na: *nowhere\n---\n", "line"));
  EXPECT_TRUE(refused("---\n\ta: 1\n---\n", "line"));
}

TEST(FrontMatter, HostileBlocks) {
  const auto card = [](const std::string& block) { return "---\n" + block + "\n---\n"; };
  for (const char* bracket : {"[", "{", "- ", "? "}) {
    std::string deep = "a: ";
    if (std::string_view(bracket).size() == 2) deep = "";
    for (int i = 0; i < 200'000; ++i) deep += bracket;
    EXPECT_FALSE(FrontMatter::parse(card(deep))) << bracket;
  }
  EXPECT_TRUE(failed_with(FrontMatter::parse(card(std::string(5u << 20, 'a') + ": b")),
                          ErrorCode::malformed_config, "4 MiB"));
  // Each line names the one before ten times: 10^30 items if they were written out.
  std::string bomb = "license: mit\na0: &a0 [x]\n";
  for (int i = 1; i <= 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 1; j < 10; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  const Result<FrontMatter> matter = FrontMatter::parse(card(bomb));
  ASSERT_TRUE(succeeded(matter));
  EXPECT_EQ(items_of(*matter, "license"), "scalar|mit");
  EXPECT_EQ(matter->entries.size(), 2u);  // of the lists only the first has scalars
}

TEST(FrontMatter, WritesWhatItReads) {
  FrontMatter matter;
  matter.add("base_model", CardValue::list({"Qwen/Qwen3-8B"}));
  matter.add("license", CardValue::scalar("apache-2.0"));
  matter.add("tags", CardValue::list({"dfloat11", "lossless compression"}));
  EXPECT_EQ(matter.to_text(),
            "---\nbase_model:\n  - Qwen/Qwen3-8B\nlicense: apache-2.0\ntags:\n  - dfloat11\n"
            "  - lossless compression\n---\n");
  for (const std::string text : {"no",         "Yes",
                                 "null",       "1.0",
                                 "2024-01-01", "",
                                 " x ",        "a: b",
                                 "a #b",       "- a",
                                 "*a",         "\"",
                                 "'",          "line\nbreak",
                                 "\t",         "é漢",
                                 "@x",         "%x",
                                 "{a}",        "[a]",
                                 "---",        "https://example.org/LICENSE"}) {
    FrontMatter one;
    one.add("key", CardValue::scalar(text));
    const Result<FrontMatter> again = FrontMatter::parse(one.to_text() + "# Title\n");
    ASSERT_TRUE(succeeded(again)) << text;
    ASSERT_EQ(again->entries.size(), 1u) << text;
    EXPECT_EQ(again->entries[0], one.entries[0]) << one.to_text();
  }
  FrontMatter norwegian;
  norwegian.add("language", CardValue::scalar("no"));
  EXPECT_EQ(norwegian.to_text(), "---\nlanguage: \"no\"\n---\n");  // bare, it is the boolean false
}

}  // namespace
}  // namespace df11::test
