#include "format/json.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

using namespace std::string_literals;

TEST(Json, KeepsOrderAndValues) {
  const Result<Json> json = parse_json(
      R"( {"z": 1, "a": [true, null, -2, 1.5, "x", {"k": {}}], "": "é", "n": 18446744073709551615} )");
  ASSERT_TRUE(succeeded(json));
  EXPECT_EQ(json->dump(),
            R"({"z":1,"a":[true,null,-2,1.5,"x",{"k":{}}],"":"é","n":18446744073709551615})");
  for (const char* scalar : {"0", "-1", "true", "false", "null", "\"\"", "1e5", "[]", "{}"}) {
    EXPECT_TRUE(succeeded(parse_json(scalar))) << scalar;
  }
}

class Strictness : public ::testing::TestWithParam<std::string> {};

TEST_P(Strictness, Refused) {
  EXPECT_TRUE(failed_with(parse_json(GetParam()), ErrorCode::malformed_json)) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    Json, Strictness,
    ::testing::Values("", " ", "{", "}", "[", "[1", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}",
                      "[1,]", "[,1]", "{a:1}", "{'a':1}", "{\"a\":1}x", "{}{}", "{} {}", "// c\n{}",
                      "{/*c*/}", "nul", "tru", "True", "NaN", "Infinity", "-Infinity", "01", "+1",
                      "1.", ".5", "1e", "0x10", "-", "1 2", "\"a", "\"\\x41\"", "\"\\u12\"",
                      "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"tab\there\"",
                      "\"line\nbreak\"", "\"nul\0\""s, "\"\x80\"", "\"\xc0\xaf\"", "\"\xff\"",
                      "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\xfe\xff",
                      "[1]\xff",
                      // Nothing may follow the value but white space: a NUL is none.
                      "{}\0"s, "{}\0{\"a\":1}"s, "\0{}"s, "[1,\0 2]"s,
                      // A byte order mark is no part of JSON text (RFC 8259, section 8.1).
                      "\xef\xbb\xbf{}"));

TEST(Json, DuplicateKeysAreRefusedAtAnyLevel) {
  EXPECT_TRUE(failed_with(parse_json(R"({"a":1,"a":1})"), ErrorCode::malformed_json,
                          "duplicate key \"a\""));
  EXPECT_TRUE(
      failed_with(parse_json(R"({"x":{"b":1,"c":2,"b":3}})"), ErrorCode::malformed_json, "\"b\""));
  EXPECT_TRUE(failed_with(parse_json(R"([[{"":1,"":2}]])"), ErrorCode::malformed_json));
  EXPECT_TRUE(failed_with(parse_json(R"({"a":1,"\u0061":2})"), ErrorCode::malformed_json));
  EXPECT_TRUE(failed_with(parse_json(R"({"a":{},"b":[],"a":[]})"), ErrorCode::malformed_json));
  // Equal keys of different objects, and a key again after its object closed.
  EXPECT_TRUE(succeeded(parse_json(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]})")));
  // Many keys: no quadratic search.
  std::string many = "{";
  for (int i = 0; i < 200'000; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(succeeded(parse_json(many + "\"k\":0}")));
  EXPECT_TRUE(failed_with(parse_json(many + "\"k7\":0}"), ErrorCode::malformed_json, "k7"));
}

std::string nested(int depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, DepthIsLimited) {
  EXPECT_TRUE(succeeded(parse_json(nested(kMaxJsonDepth))));
  EXPECT_TRUE(
      failed_with(parse_json(nested(kMaxJsonDepth + 1)), ErrorCode::malformed_json, "deep"));
  std::string objects;
  for (int i = 0; i < kMaxJsonDepth + 1; ++i) objects += "{\"a\":";
  EXPECT_TRUE(failed_with(parse_json(objects), ErrorCode::malformed_json, "deep"));
  EXPECT_TRUE(
      failed_with(parse_json(std::string(1'000'000, '[')), ErrorCode::malformed_json, "deep"));
}

TEST(Json, ManyElementsInNestedArrays) {
  // The builder keeps pointers to open values while arrays grow.
  std::string text = "[";
  for (int i = 0; i < 1000; ++i) text += "[[" + std::to_string(i) + "],{\"a\":[1,2]}],";
  const Result<Json> json = parse_json(text + "0]");
  ASSERT_TRUE(succeeded(json));
  EXPECT_EQ((*json)[999][0][0], 999);
  EXPECT_EQ((*json)[0][1]["a"][1], 2);
}

TEST(Json, QuotesAsTheReferenceSafetensorsWriterDoes) {
  EXPECT_EQ(json_quote("plain"), "\"plain\"");
  EXPECT_EQ(json_quote("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(json_quote("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(json_quote("\x01\x1f\x7f"s + '\0'), "\"\\u0001\\u001f\x7f\\u0000\"");
  EXPECT_EQ(json_quote("é漢😀"), "\"é漢😀\"");
}

TEST(Json, TypedAccess) {
  const Json json =
      *parse_json(R"({"n": 5, "negative": -5, "float": 5.0, "s": "text", "null": null})");
  EXPECT_EQ(*json_uint(json, "n"), 5u);
  for (const char* key : {"negative", "float", "s", "null", "missing"}) {
    EXPECT_TRUE(failed_with(json_uint(json, key), ErrorCode::malformed_config, key));
  }
  EXPECT_EQ(*json_string(json, "s"), "text");
  for (const char* key : {"n", "null", "missing"}) {
    EXPECT_TRUE(failed_with(json_string(json, key), ErrorCode::malformed_config, key));
  }
  ASSERT_NE(json_find(json, "null"), nullptr);
  EXPECT_EQ(json_find(json, "missing"), nullptr);
  EXPECT_EQ(json_find(Json::array({1}), "n"), nullptr);
  EXPECT_TRUE(failed_with(json_uint(Json(3), "n"), ErrorCode::malformed_config));
}

}  // namespace
}  // namespace df11::test
