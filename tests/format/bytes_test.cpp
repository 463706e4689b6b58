#include "format/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "format/df11_layout.h"
#include "support/random.h"

namespace df11::test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Bytes, LoadsAndStoresAtAnyAlignment) {
  const uint8_t bytes[] = {0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88, 0xff};
  EXPECT_EQ(load_le64(bytes + 1), 0x8807060504030201u);
  EXPECT_EQ(load_be64(bytes + 1), 0x0102030405060788u);
  EXPECT_EQ(load_le32(bytes + 1), 0x04030201u);
  uint8_t out[10] = {};
  store_le64(out + 1, 0x8807060504030201);
  EXPECT_EQ(std::vector<uint8_t>(out + 1, out + 9), std::vector<uint8_t>(bytes + 1, bytes + 9));
  store_be64(out + 1, 0x0102030405060788);
  EXPECT_EQ(std::vector<uint8_t>(out + 1, out + 9), std::vector<uint8_t>(bytes + 1, bytes + 9));
  store_le32(out + 3, 0xdeadbeef);
  EXPECT_EQ(load_le32(out + 3), 0xdeadbeefu);
  EXPECT_EQ(out[9], 0);
  EXPECT_EQ(out[0], 0);
}

TEST(Bytes, CheckedArithmetic) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1), kMax - 0xffffffff);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 0), 0u);
}

TEST(Bytes, CeilDiv) {
  EXPECT_EQ(ceil_div(0, 8), 0u);
  EXPECT_EQ(ceil_div(1, 8), 1u);
  EXPECT_EQ(ceil_div(8, 8), 1u);
  EXPECT_EQ(ceil_div(9, 8), 2u);
  EXPECT_EQ(ceil_div(kMax, 2), kMax / 2 + 1);  // a + b - 1 would overflow
}

TEST(ScratchBuffer, GrowsAndNeverShrinks) {
  ScratchBuffer<uint32_t> buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  uint32_t* large = buffer.ensure(1000);
  std::fill_n(large, 1000, 7u);
  EXPECT_EQ(buffer.ensure(10), large);
  EXPECT_EQ(buffer.ensure(1000), large);
  EXPECT_EQ(buffer.data(), large);
  std::fill_n(buffer.ensure(100'000), 100'000, 8u);
  EXPECT_EQ(buffer.data()[99'999], 8u);
}

TEST(Layout, SizesOfStreams) {
  EXPECT_EQ(n_code_blocks(0), 0u);
  EXPECT_EQ(n_code_blocks(1), 1u);
  EXPECT_EQ(n_code_blocks(4096), 1u);
  EXPECT_EQ(n_code_blocks(4097), 2u);
  EXPECT_EQ(n_code_windows(4097), 513u);
  EXPECT_EQ(gaps_bytes(4096), 320u);
  EXPECT_EQ(gaps_bytes(4097), 640u);
  EXPECT_EQ(n_output_positions(4097), 3u);
  EXPECT_EQ(kMaxUpstreamBlockElements, 23'550u);
}

TEST(LoadGap, ReadsFiveBitsOfEveryWindow) {
  Random random(1);
  std::vector<uint8_t> gaps(2 * kGapBytesPerBlock);
  std::string bits;
  for (uint8_t& byte : gaps) {
    byte = static_cast<uint8_t>(random.next());
    for (int i = 7; i >= 0; --i) bits += (byte >> i & 1) != 0 ? '1' : '0';
  }
  for (uint64_t window = 0; window < 2 * kWindowsPerBlock; ++window) {
    EXPECT_EQ(load_gap(gaps.data(), window), std::stoul(bits.substr(window * 5, 5), nullptr, 2));
  }
}

TEST(LoadGap, NeverReadsPastTheLastByte) {
  // The last window's bits are the low 5 of the last byte; upstream's kernel reads one byte more.
  const auto gaps =
      std::make_unique<uint8_t[]>(kGapBytesPerBlock);  // exact: a sanitizer would see it
  std::fill_n(gaps.get(), kGapBytesPerBlock, uint8_t{0});
  gaps[kGapBytesPerBlock - 1] = 0x1f;
  EXPECT_EQ(load_gap(gaps.get(), kWindowsPerBlock - 1), 31u);
  EXPECT_EQ(load_gap(gaps.get(), kWindowsPerBlock - 2), 0u);
  const uint8_t one_byte = 0b10101'111;
  EXPECT_EQ(load_gap(&one_byte, 0), 0b10101u);
}

}  // namespace
}  // namespace df11::test
