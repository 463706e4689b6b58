#include "format/lookup_tables.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

// `n_link_rows` link rows full of exponent 100, and lengths of 0 but for exponent 100: 8.
std::vector<uint8_t> simple_luts(uint32_t n_link_rows) {
  std::vector<uint8_t> luts((1 + n_link_rows) * 256, 100);
  luts.resize(luts.size() + 256, 0);
  luts[luts.size() - 256 + 100] = 8;
  return luts;
}

Result<LookupTables> parse(const std::vector<uint8_t>& luts) {
  return LookupTables::parse(luts, luts.size() / 256);
}

TEST(LookupTables, RowsAreLimited) {
  for (uint32_t n = 0; n <= 16; ++n) {
    const Result<LookupTables> luts = parse(simple_luts(n));
    ASSERT_TRUE(succeeded(luts));
    EXPECT_EQ(luts->n_link_rows(), n);
    EXPECT_EQ(luts->n_rows(), n + 2);
  }
  EXPECT_TRUE(failed_with(parse(simple_luts(17)), ErrorCode::malformed_group, "19 rows"));
  const std::vector<uint8_t> luts = simple_luts(1);
  EXPECT_TRUE(failed_with(LookupTables::parse(luts, 1), ErrorCode::malformed_group));
  EXPECT_TRUE(failed_with(LookupTables::parse({}, 0), ErrorCode::malformed_group));
  EXPECT_TRUE(
      failed_with(LookupTables::parse(luts, uint64_t{1} << 56), ErrorCode::malformed_group));
  EXPECT_TRUE(failed_with(LookupTables::parse(luts, 2), ErrorCode::malformed_group, "256"));
  EXPECT_TRUE(failed_with(LookupTables::parse(ByteSpan(luts).first(luts.size() - 1), 3),
                          ErrorCode::malformed_group));
}

TEST(LookupTables, LengthsAreLimited) {
  std::vector<uint8_t> luts = simple_luts(0);
  uint8_t* lengths = luts.data() + 256;
  lengths[7] = 32;
  EXPECT_TRUE(succeeded(parse(luts)));
  EXPECT_EQ(parse(luts)->longest_code_bits(), 32);
  EXPECT_EQ(parse(luts)->length_bits(7), 32);
  lengths[7] = 33;
  EXPECT_TRUE(failed_with(parse(luts), ErrorCode::malformed_group, "33 bits for exponent 7"));
  lengths[7] = 0;
  lengths[239] = 5;
  EXPECT_TRUE(succeeded(parse(luts)));
  lengths[240] = 5;
  EXPECT_TRUE(failed_with(parse(luts), ErrorCode::malformed_group, "240"));
  std::fill_n(lengths, 256, uint8_t{0});
  EXPECT_TRUE(failed_with(parse(luts), ErrorCode::malformed_group, "no code"));
}

TEST(LookupTables, WalksThroughFourLevels) {
  // 0xff leads one row down each time; 0x00 gives exponent 1, 2, 3, 4 by level.
  std::vector<uint8_t> luts(4 * 256, 1);
  for (int row = 0; row < 4; ++row) {
    std::fill_n(luts.data() + row * 256, 255, static_cast<uint8_t>(row + 1));
    luts[row * 256 + 255] = static_cast<uint8_t>(row < 3 ? 255 - row : 9);
  }
  luts.resize(5 * 256, 0);
  for (const auto& [exponent, length] : {std::pair{1, 3}, {2, 9}, {3, 24}, {4, 25}, {9, 32}}) {
    luts[4 * 256 + exponent] = static_cast<uint8_t>(length);
  }
  const LookupTables tables = *parse(luts);
  const auto expect = [&](uint32_t bits, int exponent, int length) {
    EXPECT_EQ(tables.walk(bits).exponent, exponent) << std::hex << bits;
    EXPECT_EQ(tables.walk(bits).length_bits, length) << std::hex << bits;
  };
  expect(0x00ffffff, 1, 3);
  expect(0xff00ffff, 2, 9);
  expect(0xffff00ff, 3, 24);
  expect(0xffffff00, 4, 25);
  expect(0xffffffff, 9, 32);
}

TEST(LookupTables, WalkRefusesSymbolsOfAnotherLevel) {
  std::vector<uint8_t> luts = simple_luts(1);
  luts[255] = 255;  // link to row 1
  uint8_t* lengths = luts.data() + 2 * 256;
  for (int length = 0; length <= 32; ++length) {
    lengths[5] = 1;  // so that there is a code
    lengths[100] = static_cast<uint8_t>(length);
    const LookupTables tables = *parse(luts);
    EXPECT_EQ(tables.walk(0).length_bits, length >= 1 && length <= 8 ? length : 0);
    EXPECT_EQ(tables.walk(0xff000000).length_bits, length >= 9 && length <= 16 ? length : 0);
  }
}

TEST(LookupTables, WalkRefusesLinksToNowhereAndAFifthLevel) {
  std::vector<uint8_t> luts = simple_luts(1);
  luts[0] = 254;    // row 2 is the row of lengths
  luts[1] = 240;    // row 16
  luts[2] = 255;    // row 1,
  luts[256] = 255;  // which leads to itself for ever
  const LookupTables tables = *parse(luts);
  EXPECT_EQ(tables.walk(0x00000000).length_bits, 0);
  EXPECT_EQ(tables.walk(0x01000000).length_bits, 0);
  EXPECT_EQ(tables.walk(0x02000000).length_bits, 0);
  EXPECT_EQ(tables.walk(0x03000000).length_bits, 8);
}

TEST(LookupTables, KnowsWhereUpstreamsKernelWouldSpin) {
  std::vector<uint8_t> luts = simple_luts(1);
  EXPECT_TRUE(parse(luts)->always_progresses());
  luts[17] = 255;  // a link, and row 1 is all exponent 100
  EXPECT_TRUE(parse(luts)->always_progresses());
  luts[256 + 200] = 99;  // no code, in a row that is reached
  EXPECT_FALSE(parse(luts)->always_progresses());
  luts[17] = 100;  // not reached any more
  EXPECT_TRUE(parse(luts)->always_progresses());
  luts[256 + 200] = 255;  // row 1 leads to itself
  EXPECT_TRUE(parse(luts)->always_progresses());
  luts[17] = 255;
  EXPECT_FALSE(parse(luts)->always_progresses());
  luts = simple_luts(1);
  luts[17] = 254;  // a link to the lengths
  EXPECT_FALSE(parse(luts)->always_progresses());
  luts = simple_luts(4);  // a chain of five levels
  for (int row = 0; row < 4; ++row) luts[row * 256] = static_cast<uint8_t>(255 - row);
  EXPECT_FALSE(parse(luts)->always_progresses());
  luts[3 * 256] = 100;  // now of four
  EXPECT_TRUE(parse(luts)->always_progresses());
}

}  // namespace
}  // namespace df11::test
