// df11_manifest.json: round trip, seal, and what is refused even under a right seal.
#include "format/manifest.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

Manifest example() {
  Manifest manifest;
  manifest.tool_version = "1.2.3";
  manifest.settings = {{"granularity", "tensor"}, {"include", ""}, {"omit", "onnx/* \"*.bin\""}};
  Sha256 sha;
  for (size_t i = 0; i < sha.bytes.size(); ++i) sha.bytes[i] = static_cast<uint8_t>(7 * i + 1);
  Xxh128 xxh;
  for (size_t i = 0; i < xxh.bytes.size(); ++i) xxh.bytes[i] = static_cast<uint8_t>(0xf0 + i);
  manifest.source_files = {{"model.safetensors", 12345, sha}, {"config.json", 2, sha}};
  manifest.omitted_files = {"onnx/model \u00fc.onnx"};
  manifest.tensors = {
      {"a.weight", Dtype::kBF16, {64, 96}, "model.safetensors", xxh, "a", ""},
      {"b", Dtype::kF8E4M3, {}, "model.safetensors", xxh, "", "rank 0, not a matrix"}};
  manifest.groups = {{"a", "a.safetensors", 6144, 2048, 9000, 2.6254321, 17, "huffman"}};
  manifest.files = {{"a.safetensors", (uint64_t{1} << 60) + 1, sha}};
  manifest.restore = {{"config.json", "{}"},
                      {"model.safetensors", std::string("\x08\0\0\0\0\0\0\0{}", 10)}};
  return manifest;
}

// The smallest text that parses, as JSON to spoil.
Json example_json() {
  const std::string text = example().to_text();
  Json root = *parse_json(text);
  root.erase("manifest_sha256");
  return root;
}

TEST(Manifest, RoundTrip) {
  const Manifest manifest = example();
  const std::string text = manifest.to_text();
  const Result<Manifest> parsed = Manifest::parse(text);
  ASSERT_TRUE(succeeded(parsed));
  EXPECT_EQ(parsed->to_text(), text);
  EXPECT_EQ(parsed->tool_version, manifest.tool_version);
  EXPECT_EQ(parsed->settings, manifest.settings);
  EXPECT_EQ(parsed->omitted_files, manifest.omitted_files);
  EXPECT_EQ(parsed->restore, manifest.restore);
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors[0].group, "a");
  EXPECT_EQ(parsed->tensors[1].dtype, Dtype::kF8E4M3);
  EXPECT_EQ(parsed->tensors[1].shape, Shape{});
  EXPECT_EQ(parsed->tensors[1].reason, "rank 0, not a matrix");
  EXPECT_EQ(parsed->tensors[1].xxh3_128, manifest.tensors[1].xxh3_128);
  ASSERT_EQ(parsed->groups.size(), 1u);
  EXPECT_EQ(parsed->groups[0].entropy_bits, 2.6254321);
  EXPECT_EQ(parsed->groups[0].longest_code_bits, 17);
  EXPECT_EQ(parsed->files[0].size_bytes, (uint64_t{1} << 60) + 1);
  EXPECT_EQ(parsed->files[0].sha256, manifest.files[0].sha256);
}

TEST(Manifest, EmptyRoundTrip) {
  EXPECT_TRUE(succeeded(Manifest::parse(Manifest().to_text())));
}

// What spec/manifest.md tells other tools to do: hash all that precedes the seal's comma.
TEST(Manifest, SealIsTheHashOfWhatPrecedesIt) {
  const std::string text = example().to_text();
  const size_t seal = text.find(",\n \"manifest_sha256\": \"");
  ASSERT_NE(seal, text.npos);
  const std::string_view sealed_part = std::string_view(text).substr(0, seal);
  EXPECT_EQ((*parse_json(text))["manifest_sha256"], sha256(as_bytes(sealed_part)).hex());
  EXPECT_EQ(sealed(example_json()), text);
}

TEST(Manifest, EveryFlippedBitIsRefused) {
  const std::string text = example().to_text();
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ 1 << bit);
      ASSERT_FALSE(Manifest::parse(flipped)) << "byte " << i << " bit " << bit;
    }
  }
}

TEST(Manifest, EveryTruncationIsRefused) {
  const std::string text = example().to_text();
  for (size_t n = 0; n < text.size(); ++n) ASSERT_FALSE(Manifest::parse(text.substr(0, n))) << n;
  EXPECT_TRUE(failed_with(Manifest::parse(text + "\n"), ErrorCode::malformed_manifest));
  EXPECT_TRUE(failed_with(Manifest::parse(text + text), ErrorCode::malformed_manifest));
}

TEST(Manifest, OtherVersions) {
  Json root = example_json();
  root["format_version"] = 2;
  EXPECT_TRUE(
      failed_with(Manifest::parse(sealed(root)), ErrorCode::unsupported, "format_version 2"));
  root["format_version"] = "1";
  EXPECT_FALSE(Manifest::parse(sealed(root)));
  root["format_version"] = 1;
  EXPECT_TRUE(succeeded(Manifest::parse(sealed(root))));
  root["format"] = "another-manifest";
  EXPECT_TRUE(failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest));
}

TEST(Manifest, UnsafePaths) {
  for (const std::string& path :
       {std::string("../x"), std::string("/etc/passwd"), std::string("a/../../b"), std::string(""),
        std::string("."), std::string("a//b"), std::string("a\\b"), std::string("a\0b", 3)}) {
    for (const char* list : {"files", "source_files", "restore"}) {
      Json root = example_json();
      root[list][0]["path"] = path;
      EXPECT_TRUE(
          failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest, "unsafe path"))
          << list << " " << path;
    }
    Json tensor = example_json(), group = example_json(), omitted = example_json();
    tensor["tensors"][0]["source_file"] = path;
    group["groups"][0]["file"] = path;
    omitted["omitted_files"] = {path};
    for (const Json& root : {tensor, group, omitted}) {
      EXPECT_TRUE(
          failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest, "unsafe path"))
          << path;
    }
  }
}

TEST(Manifest, CodesOver32BitsAreRefused) {
  Json root = example_json();
  root["groups"][0]["longest_code_bits"] = 32;
  EXPECT_TRUE(succeeded(Manifest::parse(sealed(root))));
  for (const uint64_t n_bits : {uint64_t{33}, uint64_t{1} << 32, uint64_t{1} << 40}) {
    root["groups"][0]["longest_code_bits"] = n_bits;
    EXPECT_TRUE(
        failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest, "32 bits"));
  }
}

TEST(Manifest, RestoreRecords) {
  Json root = example_json();
  // Must be refused before anything of that size is allocated.
  for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}}) {
    root["restore"][0]["size_bytes"] = size;
    EXPECT_TRUE(
        failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest, "too large"))
        << size;
  }
  for (const int size : {0, 1, 3, 1000}) {  // the record holds 2 bytes
    root["restore"][0]["size_bytes"] = size;
    EXPECT_TRUE(
        failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest, "damaged"))
        << size;
  }
  root["restore"][0]["size_bytes"] = 2;
  for (const char* hex : {"", "00", "28b52ffd", "zz"}) {
    root["restore"][0]["zstd_hex"] = hex;
    EXPECT_TRUE(failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest)) << hex;
  }
}

// The header promises malformed_manifest for whatever is wrong under a right seal.
TEST(Manifest, MembersMissingOrOfAnotherType) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> lists = {
      {"source_files", {"path", "size_bytes", "sha256"}},
      {"files", {"path", "size_bytes", "sha256"}},
      {"tensors", {"name", "dtype", "shape", "source_file", "xxh3_128"}},
      {"groups",
       {"module", "file", "elements", "code_bytes", "stored_bytes", "exponent_entropy_bits",
        "longest_code_bits", "code_rule"}},
      {"restore", {"path", "size_bytes", "zstd_hex"}}};
  const auto refused = [](const Json& root) {
    return failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest);
  };
  for (const auto& [list, members] : lists) {
    Json root = example_json();
    root.erase(list);
    EXPECT_TRUE(refused(root)) << list;
    for (const char* member : members) {
      root = example_json();
      root[list][0].erase(member);
      EXPECT_TRUE(refused(root)) << list << "." << member;
      root[list][0][member] = Json::object();
      EXPECT_TRUE(refused(root)) << list << "." << member << " object";
    }
    root = example_json();
    root[list][0] = nullptr;
    EXPECT_TRUE(refused(root)) << list;
  }
  Json root = example_json();
  root["tensors"][0]["dtype"] = "BF17";
  EXPECT_TRUE(refused(root));
  root = example_json();
  root["tensors"][0]["shape"] = {uint64_t{1} << 40, uint64_t{1} << 40};
  EXPECT_TRUE(refused(root));
  root = example_json();
  root["omitted_files"] = {1};
  EXPECT_TRUE(refused(root));
  for (const char* hex : {"", "00", "ABCDEF"}) {
    root = example_json();
    root["files"][0]["sha256"] = hex;
    EXPECT_TRUE(refused(root)) << hex;
  }
}

TEST(Manifest, EntriesThatAreThereTwice) {
  for (const char* list : {"source_files", "files", "tensors", "groups", "restore"}) {
    Json root = example_json();
    root[list].push_back(Json(root[list][0]));
    EXPECT_TRUE(failed_with(Manifest::parse(sealed(root)), ErrorCode::malformed_manifest)) << list;
  }
}

TEST(Manifest, NoJson) {
  for (const char* text : {"", "{}", "null", "\xff"}) {
    EXPECT_TRUE(failed_with(Manifest::parse(text), ErrorCode::malformed_manifest)) << text;
  }
}

}  // namespace
}  // namespace df11::test
