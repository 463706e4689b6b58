// Texts made to cost time or memory. Each takes a second or less; a quadratic parser would take
// many minutes, and the time limit of the test would end it.
#include <gtest/gtest.h>

#include <set>

#include "format/json.h"
#include "format/safetensors.h"
#include "support/colliding_keys.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

constexpr int kPairs = 17;  // 131,072 keys of 272 characters

const std::vector<std::string>& keys() {
  static const std::vector<std::string> keys = colliding_keys(kPairs);
  return keys;
}

TEST(HostileText, KeysCollideInTheStandardHash) {
#ifdef __GLIBCXX__
  const std::hash<std::string> hash;
  for (const std::string& key : keys()) ASSERT_EQ(hash(key), hash(keys()[0]));
#endif
  EXPECT_EQ(std::set<std::string>(keys().begin(), keys().end()).size(), size_t{1} << kPairs);
}

TEST(HostileText, ObjectWithCollidingKeys) {
  std::string text = "{";
  for (const std::string& key : keys()) text += "\"" + key + "\":0,";
  text.back() = '}';
  const Result<Json> json = parse_json(text);
  ASSERT_TRUE(succeeded(json));
  EXPECT_EQ(json->size(), keys().size());
}

TEST(HostileText, HeaderWithCollidingNames) {
  std::string tensors, metadata;
  for (const std::string& key : keys()) {
    tensors += ",\"" + key + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    metadata += (metadata.empty() ? "\"" : ",\"") + key + "\":\"\"";
  }
  const Result<SafetensorsHeader> header =
      SafetensorsHeader::parse("{\"__metadata__\":{" + metadata + "}" + tensors + "}", 0);
  ASSERT_TRUE(succeeded(header));
  EXPECT_EQ(header->tensors().size(), keys().size());
}

TEST(HostileText, ValuesAreLimited) {
  const auto zeros = [](uint64_t n) {
    std::string text(2 * n + 1, ',');
    for (uint64_t i = 0; i < n; ++i) text[2 * i + 1] = '0';
    text.front() = '[';
    text.back() = ']';
    return text;
  };
  EXPECT_TRUE(succeeded(parse_json(zeros(kMaxJsonValues - 1))));  // and the array
  EXPECT_TRUE(failed_with(parse_json(zeros(kMaxJsonValues)), ErrorCode::malformed_json, "values"));
  std::string arrays = "[";
  for (uint64_t i = 0; i < kMaxJsonValues; ++i) arrays += "[],";
  EXPECT_TRUE(failed_with(parse_json(arrays + "[]]"), ErrorCode::malformed_json, "values"));
}

}  // namespace
}  // namespace df11::test
