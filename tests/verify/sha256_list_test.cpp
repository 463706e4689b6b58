// Lists of hashes as sha256sum prints them.
#include "verify/sha256_list.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

const std::string kHexA(64, 'a');
const std::string kHexB(64, 'b');

TEST(Sha256List, TextAndBinaryLines) {
  const Result<Sha256List> list =
      parse_sha256_list(kHexA + "  one file\n\n" + kHexB + " *./b/two\n" + kHexA + "  last");
  ASSERT_TRUE(succeeded(list));
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ(list->at("one file").hex(), kHexA);
  EXPECT_EQ(list->at("b/two").hex(), kHexB);
  EXPECT_EQ(list->at("last").hex(), kHexA);
}

TEST(Sha256List, EscapedNamesAndUpperCase) {
  const Result<Sha256List> list =
      parse_sha256_list("\\" + kHexA + "  a\\nb\\\\c\\r\n" + std::string(64, 'B') + "  d\\n\n");
  ASSERT_TRUE(succeeded(list));
  EXPECT_EQ(list->begin()->first, "a\nb\\c\r");
  EXPECT_EQ(list->at("d\\n").hex(), kHexB);  // no escapes without the mark
}

TEST(Sha256List, Refused) {
  for (const std::string& text :
       {std::string("\n"), std::string(), kHexA, kHexA + "  ", kHexA + " x", kHexA + "x  x",
        std::string(64, 'g') + "  x", "SHA256 (x) = " + kHexA, "\\" + kHexA + "  a\\x",
        "\\" + kHexA + "  a\\", kHexA + "  x\n" + kHexB + "  ./x\n"}) {
    EXPECT_TRUE(failed_with(parse_sha256_list(text), ErrorCode::invalid_argument)) << text;
  }
  EXPECT_TRUE(
      failed_with(parse_sha256_list(kHexA + "  x\nno\n"), ErrorCode::invalid_argument, "line 2"));
  EXPECT_TRUE(succeeded(parse_sha256_list(kHexA + "  x\n" + kHexA + "  x\n")));
}

}  // namespace
}  // namespace df11::test
