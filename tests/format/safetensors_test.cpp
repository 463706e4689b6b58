#include "format/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using namespace std::string_literals;

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(Dtypes, NamesAndSizes) {
  const std::vector<std::pair<std::string, uint64_t>> all = {
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Result<Dtype> dtype = parse_dtype(all[i].first);
    ASSERT_TRUE(succeeded(dtype));
    EXPECT_EQ(static_cast<size_t>(*dtype), i) << "the writer sorts by this order";
    EXPECT_EQ(dtype_name(*dtype), all[i].first);
    EXPECT_EQ(dtype_bits(*dtype), all[i].second);
  }
  for (const char* name : {"", "bf16", "BF16 ", "F128", "BF1"}) {
    EXPECT_TRUE(failed_with(parse_dtype(name), ErrorCode::malformed_safetensors)) << name;
  }
}

TEST(Sizes, OfShapes) {
  EXPECT_EQ(shape_elements({}), 1u);
  EXPECT_EQ(shape_elements({3, 0, 5}), 0u);
  EXPECT_EQ(shape_elements({uint64_t{1} << 32, uint64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(shape_elements({uint64_t{1} << 63, 2, 0}), std::nullopt)
      << "even if a later 0 would hide it";
  EXPECT_EQ(shape_elements({0, uint64_t{1} << 63, 2}), 0u);
  EXPECT_EQ(tensor_bytes(Dtype::kBF16, {3, 5}), 30u);
  EXPECT_EQ(tensor_bytes(Dtype::kBF16, {}), 2u);
  EXPECT_EQ(tensor_bytes(Dtype::kF4, {2}), 1u);
  EXPECT_EQ(tensor_bytes(Dtype::kF4, {3}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Dtype::kF6E2M3, {4}), 3u);
  EXPECT_EQ(tensor_bytes(Dtype::kF6E3M2, {2}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Dtype::kU64, {uint64_t{1} << 57}), uint64_t{1} << 60);
  EXPECT_EQ(tensor_bytes(Dtype::kU64, {uint64_t{1} << 58}), std::nullopt)
      << "the number of bits overflows";
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text({4096, 1024}), "[4096, 1024]");
}

TEST(Parse, TakesWhatIsValid) {
  // Any order of keys, of tensors and of metadata; white space; escapes; empty and rank-0 tensors.
  const std::string json =
      "{ \"z\" : {\"shape\":[2,1], "
      "\"data_offsets\":[4,8],\n\"dtype\":\"BF16\"},\t\"__metadata__\":{\"b\":\"1\",\"a\":\"\"}," +
      tensor("\\u00e9\\n", "F32", "[]", "[0,4]") + "," + tensor("empty", "U8", "[0,7]", "[4,4]") +
      "," + tensor("f4", "F4", "[1,2]", "[8,9]") + "," + tensor("f6", "F6_E2M3", "[8]", "[9,15]") +
      "}   ";
  const Result<SafetensorsHeader> header = SafetensorsHeader::parse(json, 15);
  ASSERT_TRUE(succeeded(header));
  ASSERT_EQ(header->tensors().size(), 5u);
  EXPECT_EQ(header->tensors()[0].name, "é\n");
  EXPECT_EQ(header->tensors()[0].n_elements(), 1u);
  EXPECT_EQ(header->tensors()[1].name, "empty");
  EXPECT_EQ(header->tensors()[1].size_bytes(), 0u);
  EXPECT_EQ(header->tensors()[2].name, "z");
  EXPECT_EQ(header->tensors()[2].shape, (Shape{2, 1}));
  EXPECT_EQ(header->tensors()[3].name, "f4");
  EXPECT_EQ(header->tensors()[4].size_bytes(), 6u);
  EXPECT_EQ(header->metadata(), (SafetensorsMetadata{{"b", "1"}, {"a", ""}}));
  EXPECT_EQ(header->data_offset_bytes(), 8 + json.size());
  EXPECT_EQ(header->data_bytes(), 15u);
  EXPECT_EQ(header->file_bytes(), 8 + json.size() + 15);
}

TEST(Parse, TakesEmptyHeadersAndMetadata) {
  for (const char* json : {"{}", "{} ", R"({"__metadata__":{}})"}) {
    const Result<SafetensorsHeader> header = SafetensorsHeader::parse(json, 0);
    ASSERT_TRUE(succeeded(header)) << json;
    EXPECT_TRUE(header->tensors().empty());
    EXPECT_EQ(header->data_bytes(), 0u);
  }
}

TEST(Parse, EmptyTensorsMayShareAnOffset) {
  const std::string json =
      "{" + tensor("b", "U8", "[2]", "[0,2]") + "," + tensor("c", "U8", "[0]", "[0,0]") + "," +
      tensor("a", "BF16", "[0]", "[2,2]") + "," + tensor("d", "BF16", "[5,0]", "[2,2]") + "}";
  const Result<SafetensorsHeader> header = SafetensorsHeader::parse(json, 2);
  ASSERT_TRUE(succeeded(header));
  EXPECT_EQ(header->tensors()[0].name, "c");
  EXPECT_EQ(header->tensors()[3].end_bytes, 2u);
}

TEST(Parse, Rank64IsTheHighest) {
  std::string shape = "[";
  for (int i = 0; i < 63; ++i) shape += "1,";
  EXPECT_TRUE(
      succeeded(SafetensorsHeader::parse("{" + tensor("a", "U8", shape + "2]", "[0,2]") + "}", 2)));
}

TEST(Parse, ErrorNamesTheTensor) {
  const Result<SafetensorsHeader> header =
      SafetensorsHeader::parse("{" + tensor("my.weight", "U8", "[3]", "[0,2]") + "}", 2);
  ASSERT_TRUE(failed_with(header, ErrorCode::malformed_safetensors, "2 bytes"));
  EXPECT_EQ(header.error().tensor, "my.weight");
  EXPECT_TRUE(failed_with(SafetensorsHeader::parse("{\"my\":{\"dtype\":3}}", 0),
                          ErrorCode::malformed_safetensors, "\"my\""));
}

TensorInfo info(std::string name, Dtype dtype, Shape shape) {
  return {std::move(name), dtype, std::move(shape)};
}

TEST(LayOut, SortsByDtypeDescendingThenName) {
  const SafetensorsHeader header = SafetensorsHeader::lay_out(
      {info("b", Dtype::kU8, {3}), info("a", Dtype::kU8, {2}), info("z", Dtype::kI64, {1}),
       info("m", Dtype::kBF16, {2, 2}), info("Z", Dtype::kBF16, {}), info("é", Dtype::kU8, {0}),
       info("f", Dtype::kF4, {6})},
      {});
  std::vector<std::string> order;
  for (const TensorInfo& tensor : header.tensors()) order.push_back(tensor.name);
  EXPECT_EQ(order, (std::vector<std::string>{"z", "Z", "m", "a", "b", "é", "f"}));
  EXPECT_EQ(header.tensors()[1].begin_bytes, 8u);
  EXPECT_EQ(header.tensors()[2].end_bytes, 18u);
  EXPECT_EQ(header.data_bytes(), 26u);
}

TEST(LayOut, SerialisesAsTheReferenceDoes) {
  const SafetensorsHeader header = SafetensorsHeader::lay_out(
      {info("w", Dtype::kBF16, {2, 3}), info("n\"\\\n", Dtype::kU8, {})}, {{"format", "pt"}});
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("n\"\\\n":{"dtype":"U8","shape":[],"data_offsets":[12,13]}})";
  const size_t padded = (json.size() + 7) / 8 * 8;
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(padded);
  expected += json + std::string(padded - json.size(), ' ');
  EXPECT_EQ(header.serialize(), expected);
  EXPECT_EQ(header.data_offset_bytes(), expected.size());
  EXPECT_EQ(SafetensorsHeader::lay_out({}, {}).serialize(), "\x08\0\0\0\0\0\0\0{}      "s);
}

TEST(LayOut, EveryPaddingParsesBack) {
  for (size_t n = 0; n < 20; ++n) {
    const std::string name(n, 'x');
    const SafetensorsHeader header =
        SafetensorsHeader::lay_out({info(name, Dtype::kBF16, {4})}, {{"k", "v"}});
    const std::string bytes = header.serialize();
    EXPECT_EQ(bytes.size() % 8, 0u);
    const Result<SafetensorsHeader> back =
        SafetensorsHeader::parse(std::string_view(bytes).substr(8), 8);
    ASSERT_TRUE(succeeded(back));
    EXPECT_EQ(back->tensors()[0].name, name);
    EXPECT_EQ(back->serialize(), bytes);
  }
}

// A file of `size` bytes, sparse, that begins with `head`.
Result<SafetensorsHeader> read(const TemporaryDirectory& directory, const std::string& head,
                               uint64_t size) {
  const std::filesystem::path path = directory / "f";
  std::ofstream(path, std::ios::binary) << head;
  std::filesystem::resize_file(path, size);
  return SafetensorsHeader::read(*File::open_read(path));
}

TEST(Read, HeadersOf100MillionBytesAreTheLongest) {
  const TemporaryDirectory directory;
  const auto length = [](uint64_t n) {
    std::string bytes(8, '\0');
    store_le64(reinterpret_cast<uint8_t*>(bytes.data()), n);
    return bytes;
  };
  std::string longest = length(kMaxSafetensorsHeaderBytes) + "{}";
  longest.resize(8 + kMaxSafetensorsHeaderBytes, ' ');
  EXPECT_TRUE(succeeded(read(directory, longest, longest.size())));
  EXPECT_TRUE(failed_with(read(directory, length(kMaxSafetensorsHeaderBytes + 1) + "{}",
                               kMaxSafetensorsHeaderBytes + 9),
                          ErrorCode::malformed_safetensors, "the limit is 100000000"));
}

TEST(Read, ChecksTheFilesLengthExactly) {
  const TemporaryDirectory directory;
  const SafetensorsHeader header =
      SafetensorsHeader::lay_out({info("a", Dtype::kBF16, {1000})}, {});
  const std::string bytes = header.serialize();
  const Result<SafetensorsHeader> good = read(directory, bytes, header.file_bytes());
  ASSERT_TRUE(succeeded(good));
  EXPECT_EQ(good->file_bytes(), header.file_bytes());
  for (const int64_t change : {-2000, -1, 1, 4096}) {
    const Result<SafetensorsHeader> bad =
        read(directory, bytes, header.file_bytes() + static_cast<uint64_t>(change));
    ASSERT_TRUE(failed_with(bad, ErrorCode::malformed_safetensors)) << change;
    EXPECT_EQ(bad.error().file, directory / "f");
  }
  for (uint64_t size = 0; size < bytes.size(); ++size) {
    ASSERT_TRUE(failed_with(read(directory, bytes, size), ErrorCode::malformed_safetensors))
        << size;
  }
}

}  // namespace
}  // namespace df11::test
