#include "format/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace df11::test {
namespace {

TEST(Bf16, AllWordsSurviveSplittingAndJoining) {
  std::set<std::pair<uint8_t, uint8_t>> halves;
  for (uint32_t word = 0; word < 65'536; ++word) {
    const uint8_t exponent = bf16_exponent(static_cast<uint16_t>(word));
    const uint8_t sign_mantissa = bf16_sign_mantissa(static_cast<uint16_t>(word));
    ASSERT_EQ(bf16_join(exponent, sign_mantissa), word);
    // From the float with these upper bits: the fields of IEEE 754.
    const uint32_t as_float = word << 16;
    ASSERT_EQ(exponent, as_float >> 23 & 0xff);
    ASSERT_EQ(sign_mantissa & 0x7f, static_cast<int>(as_float >> 16 & 0x7f));
    ASSERT_EQ(sign_mantissa >> 7, static_cast<int>(as_float >> 31));
    halves.insert({exponent, sign_mantissa});
  }
  EXPECT_EQ(halves.size(), 65'536u);
}

TEST(Bf16, KnownWords) {
  EXPECT_EQ(bf16_exponent(0x3f80), 127);  // 1.0
  EXPECT_EQ(bf16_sign_mantissa(0x3f80), 0);
  EXPECT_EQ(bf16_sign_mantissa(0x8000), 0x80);  // -0.0
  EXPECT_EQ(bf16_exponent(0x8000), 0);
  EXPECT_EQ(bf16_exponent(0xff80), 255);           // -inf
  EXPECT_EQ(bf16_join(127, 0x80 | 0x40), 0xbfc0);  // -1.5
}

static_assert(bf16_join(bf16_exponent(0xbfc1), bf16_sign_mantissa(0xbfc1)) == 0xbfc1);

}  // namespace
}  // namespace df11::test
