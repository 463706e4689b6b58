// golden/upstream_groups: groups that upstream's own encoder wrote (make_upstream_groups.py). Ours
// are the same bytes, and our decoder reads theirs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "compressor/group_encoder.h"
#include "support/group_decoding.h"
#include "support/reference_decoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ADD_FAILURE() << "cannot open " << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class GoldenGroup : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path directory = fs::path(DF11_GOLDEN_DIR) / "upstream_groups" / GetParam();
    for (int i = 0; fs::exists(directory / ("words_" + std::to_string(i) + ".bin")); ++i) {
      const std::vector<uint8_t> bytes = read(directory / ("words_" + std::to_string(i) + ".bin"));
      std::vector<uint16_t> words(bytes.size() / 2);
      // memcpy takes no null pointer, and an empty member has no bytes.
      if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
      members.push_back(words);
      all.insert(all.end(), words.begin(), words.end());
    }
    upstream = {read(directory / "luts.bin"),          read(directory / "encoded_exponent.bin"),
                read(directory / "sign_mantissa.bin"), read(directory / "output_positions.bin"),
                read(directory / "gaps.bin"),          read(directory / "split_positions.bin")};
  }
  std::vector<std::vector<uint16_t>> members;
  std::vector<uint16_t> all;
  GroupTensors upstream;
};

TEST_P(GoldenGroup, WeWriteTheSameBytes) {
  const std::vector<std::span<const uint16_t>> spans(members.begin(), members.end());
  const Result<GroupTensors> ours = encode_group(spans, Executor(2), 100);
  ASSERT_TRUE(succeeded(ours));
  EXPECT_EQ(ours->luts, upstream.luts);
  EXPECT_EQ(ours->encoded_exponent, upstream.encoded_exponent);
  EXPECT_EQ(ours->sign_mantissa, upstream.sign_mantissa);
  EXPECT_EQ(ours->output_positions, upstream.output_positions);
  EXPECT_EQ(ours->gaps, upstream.gaps);
  EXPECT_EQ(ours->split_positions, upstream.split_positions);
}

TEST_P(GoldenGroup, WeReadThem) {
  const Result<std::vector<uint16_t>> decoded = decode_group(upstream, 1);
  ASSERT_TRUE(succeeded(decoded));
  EXPECT_EQ(*decoded, all);
  EXPECT_EQ(reference_decode_by_windows(upstream), all);
}

INSTANTIATE_TEST_SUITE_P(Upstream, GoldenGroup,
                         ::testing::Values("all_exponents_once", "ends_on_byte",
                                           "several_members_empty_between", "two_symbols_equal"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace df11::test
