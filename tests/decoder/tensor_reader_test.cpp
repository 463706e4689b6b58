// Members of a group, read one by one: wherever they begin and end in its blocks.
#include "decoder/tensor_reader.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

constexpr uint64_t kRows = 1100, kColumns = 1024;  // two runs of the CPU decoder
constexpr uint64_t kElements = kRows * kColumns;

// An artifact whose one group "blocks.0" has members that end at `splits`.
class TensorReaderTest : public ::testing::Test {
 protected:
  void SetUp() override { make(weights("blocks.0.weight", {kRows, kColumns})); }

  void make(const Tensor& tensor) {
    fs::remove_all(artifact());
    bytes_ = tensor.bytes;
    write_safetensors(source() / "model.safetensors", {tensor});
    compress_or_throw(source(), artifact());
    fs::remove(artifact() / kManifestName);
  }

  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }

  void set_splits(const std::vector<uint64_t>& splits) const {
    Df11Config entry{"0.5.0", {{R"(blocks\.0)", {}}}};
    for (size_t i = 0; i <= splits.size(); ++i)
      entry.pattern_dict[0].second.push_back("m" + std::to_string(i));
    write_file(artifact() / "config.json", *splice_df11_config("", entry.to_json_text()));
    for (const auto& file : fs::directory_iterator(artifact())) {
      if (file.path().extension() != ".safetensors") continue;
      edit_safetensors(file.path(), [&](auto& tensors) {
        std::string split_bytes(8 * splits.size(), '\0');
        for (size_t i = 0; i < splits.size(); ++i)
          store_le64(reinterpret_cast<uint8_t*>(&split_bytes[8 * i]), splits[i]);
        tensors["blocks.0.split_positions"] = {
            "blocks.0.split_positions", Dtype::kI64, {splits.size()}, split_bytes};
      });
    }
  }

  // All members, each from its pieces in order, joined.
  std::string read_members() const {
    const Result<Artifact> opened = Artifact::open(artifact());
    EXPECT_TRUE(succeeded(opened));
    const auto stored = stored_tensors(*opened);
    EXPECT_TRUE(succeeded(stored));
    std::string joined;
    for (size_t i = 0; i < stored->size(); ++i) {
      const StoredTensor& tensor = stored->at("blocks.0.m" + std::to_string(i) + ".weight");
      const Result<TensorReader> reader = TensorReader::open(*opened, tensor, *decoder_);
      EXPECT_TRUE(succeeded(reader));
      uint64_t offset = 0;
      PieceBuffers buffers;
      for (size_t piece = 0; piece < reader->n_pieces(); ++piece) {
        const Result<TensorPiece> read = reader->read(piece, buffers);
        EXPECT_TRUE(succeeded(read));
        if (!read) return "";
        EXPECT_EQ(read->offset_bytes, offset);
        EXPECT_FALSE(read->bytes.empty());
        offset += read->bytes.size();
        joined.append(read->bytes.begin(), read->bytes.end());
      }
      EXPECT_EQ(offset, reader->size_bytes());
    }
    return joined;
  }

  TemporaryDirectory directory_;
  std::string bytes_;
  std::unique_ptr<Decoder> decoder_ = make_cpu_decoder();
};

TEST_F(TensorReaderTest, MembersMakeUpTheGroup) {
  const std::vector<std::vector<uint64_t>> cases = {
      std::vector<uint64_t>(),
      {1},
      {kElements - 1},
      {0, 0, 5, 5, kElements, kElements},
      {12'000, 12'500, 13'000, 800'000, 900'000},
  };
  for (const auto& splits : cases) {
    SCOPED_TRACE(::testing::PrintToString(splits));
    set_splits(splits);
    EXPECT_TRUE(read_members() == bytes_);
  }
}

TEST_F(TensorReaderTest, MembersMayEndOnBlocks) {
  const Result<Artifact> opened = Artifact::open(artifact());
  ASSERT_TRUE(succeeded(opened));
  const Result<Group> group = opened->load_group(opened->groups().front());
  ASSERT_TRUE(succeeded(group));
  const size_t n = group->n_blocks();
  ASSERT_GT(n, 70u);
  // First and last blocks, the border of the first run, and one weight to either side.
  for (const size_t block : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, n - 1}) {
    const uint64_t at = group->positions[block];
    SCOPED_TRACE(block);
    set_splits({at - 1, at, at + 1});
    EXPECT_TRUE(read_members() == bytes_);
  }
}

TEST_F(TensorReaderTest, StreamsThatEndAroundBorders) {
  size_t n_empty_last_blocks = 0;
  for (const NamedInput& input : border_inputs()) {
    SCOPED_TRACE(input.name);
    const std::vector<uint16_t> words = input.words();
    const uint64_t n = words.size();
    make(bf16_tensor("blocks.0.weight", {1, n}, words));
    const Result<Artifact> opened = Artifact::open(artifact());
    ASSERT_TRUE(succeeded(opened));
    if (opened->groups().empty()) continue;  // too small to be worth coding
    const Result<Group> group = opened->load_group(opened->groups().front());
    ASSERT_TRUE(succeeded(group));
    const std::vector<uint32_t>& positions = group->positions;
    n_empty_last_blocks += positions[positions.size() - 2] == n;
    set_splits({n - 2, n - 1});
    EXPECT_TRUE(read_members() == bytes_);
  }
  EXPECT_GT(n_empty_last_blocks, 0u);
}

TEST_F(TensorReaderTest, AnyMembers) {
  Random random(3);
  for (int round = 0; round < 10; ++round) {
    std::vector<uint64_t> splits(1 + random.below(12));
    for (uint64_t& split : splits) split = random.below(kElements + 1);
    std::sort(splits.begin(), splits.end());
    SCOPED_TRACE(::testing::PrintToString(splits));
    set_splits(splits);
    EXPECT_TRUE(read_members() == bytes_);
  }
}

TEST_F(TensorReaderTest, ATensorStoredTwiceIsRefused) {
  for (const auto& file : fs::directory_iterator(artifact())) {
    if (file.path().extension() != ".safetensors") continue;
    edit_safetensors(file.path(), [](auto& tensors) {
      tensors["blocks.0.weight"] = zeros("", Dtype::kBF16, {2});
    });
  }
  const Result<Artifact> opened = Artifact::open(artifact());
  ASSERT_TRUE(succeeded(opened));
  EXPECT_TRUE(failed_with(stored_tensors(*opened), ErrorCode::malformed_group, "twice"));
}

}  // namespace
}  // namespace df11::test
