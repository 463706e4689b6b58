// One group at a time: bit equality with the source, whatever the plan.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device.h"
#include "format/df11_layout.h"
#include "support/named_inputs.h"
#include "support/result_matchers.h"
#include "support/unusual_groups.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;

using CudaDecoder = DeviceTest;

void expect_decodes(const GroupTensors& tensors, const std::vector<uint16_t>& words,
                    const std::string& name) {
  const Result<HostGroup> group = host_group(tensors);
  ASSERT_TRUE(succeeded(group)) << name;
  for (const cuda::DecodePlan plan : kAllPlans) {
    const DeviceDecode decoded = decode_on_device(*group, plan);
    EXPECT_EQ(decoded.status, 0u) << name << ", plan " << static_cast<int>(plan);
    EXPECT_TRUE(decoded.words == words) << name << ", plan " << static_cast<int>(plan);
    EXPECT_TRUE(decoded.canaries_intact) << name << ", plan " << static_cast<int>(plan);
  }
}

TEST_F(CudaDecoder, NamedInputs) {
  for (const NamedInput& input : named_inputs())
    expect_decodes(*encode_group(input.spans(), Executor(), 1 << 20), input.words(), input.name);
}

TEST_F(CudaDecoder, EverySizeAroundBorders) {
  std::vector<double> frequencies;
  for (int i = 0; i < 20; ++i) frequencies.push_back(std::exp(-0.3 * i));
  for (const size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 100, 3999, 4097, 9000, 9011, 25001}) {
    const std::vector<uint16_t> words = random_words(n, frequencies, 100, n);
    expect_decodes(encode_words(words), words, std::to_string(n));
  }
}

// Mean codes of about 1 to 6 bits; the largest ones take the kernel in which two blocks share a
// table. One block has up to 32768 weights: more than 48 KiB of shared memory with the table.
TEST_F(CudaDecoder, LowAndHighEntropy) {
  for (const double decay : {6.0, 1.5, 0.6, 0.3, 0.1, 0.02}) {
    std::vector<double> frequencies;
    for (int i = 0; i < 70; ++i) frequencies.push_back(std::exp(-decay * i));
    const size_t n = decay < 0.2 ? 22'000'001 : 3'000'001;
    const std::vector<uint16_t> words = random_words(n, frequencies, 90, 7);
    expect_decodes(encode_words(words), words, "decay " + std::to_string(decay));
  }
  const std::vector<uint16_t> one = random_words(1'000'003, {1.0}, 120, 3);
  const GroupTensors tensors = encode_words(one);
  EXPECT_EQ(load_le32(&tensors.output_positions[4]), kBlockBits);
  expect_decodes(tensors, one, "one symbol");
}

TEST_F(CudaDecoder, CodesOf32Bits) {
  for (const NamedInput& input : slow_inputs())
    expect_decodes(*encode_group(input.spans(), Executor(), 1 << 20), input.words(), input.name);
}

TEST_F(CudaDecoder, GroupsThatNoEncoderWrites) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    const UnusualGroup group = unusual_group(seed);
    expect_decodes(group.tensors, group.words, "seed " + std::to_string(seed));
  }
}

std::vector<uint8_t> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(CudaDecoder, GroupsOfUpstreamsEncoder) {
  const char* const named = std::getenv("DF11_UPSTREAM_GROUPS");
  const fs::path directory =
      named != nullptr ? fs::path(named) : fs::path(DF11_GOLDEN_DIR) / "upstream_groups";
  if (!fs::is_directory(directory)) GTEST_SKIP() << "NOT TESTED: no directory " << directory;
  int n = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const fs::path& group = entry.path();
    if (!fs::exists(group / "luts.bin")) continue;
    std::vector<uint16_t> words;
    for (int i = 0; fs::exists(group / ("words_" + std::to_string(i) + ".bin")); ++i) {
      const std::vector<uint8_t> bytes = read(group / ("words_" + std::to_string(i) + ".bin"));
      const size_t begin = words.size();
      words.resize(begin + bytes.size() / 2);
      if (!bytes.empty()) std::memcpy(words.data() + begin, bytes.data(), bytes.size());
    }
    expect_decodes({read(group / "luts.bin"), read(group / "encoded_exponent.bin"),
                    read(group / "sign_mantissa.bin"), read(group / "output_positions.bin"),
                    read(group / "gaps.bin"), read(group / "split_positions.bin")},
                   words, group.filename().string());
    ++n;
  }
  EXPECT_GT(n, 0) << directory;
}

}  // namespace
}  // namespace df11::test
