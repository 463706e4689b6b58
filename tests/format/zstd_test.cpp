#include "format/zstd.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/random.h"

namespace df11::test {
namespace {

TEST(ZstdCodec, RestoresAndIsReusable) {
  Random random(1);
  ZstdCodec codec(1);
  for (const size_t n : {size_t{0}, size_t{1}, size_t{300'000}, size_t{5}}) {
    std::vector<uint8_t> bytes(n), restored(n, 0xff);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(7));
    const ByteSpan frame = codec.compress(bytes);
    EXPECT_LT(frame.size(), n / 2 + 20);
    EXPECT_TRUE(codec.decompress(frame, restored));
    EXPECT_EQ(restored, bytes);
  }
}

TEST(ZstdCodec, TellsOtherSizesAndDamage) {
  ZstdCodec codec(1);
  const std::vector<uint8_t> bytes(100, 7);
  const ByteSpan view = codec.compress(bytes);
  std::vector<uint8_t> frame(view.begin(), view.end()), shorter(99), longer(101), same(100);
  EXPECT_FALSE(codec.decompress(frame, shorter));
  EXPECT_FALSE(codec.decompress(frame, longer));
  EXPECT_TRUE(codec.decompress(frame, same));
  frame[0] ^= 1;
  EXPECT_FALSE(codec.decompress(frame, same));
}

TEST(ZstdCodec, NamesTheLibrary) {
  EXPECT_EQ(zstd_version().find_first_not_of("0123456789."), std::string::npos);
}

}  // namespace
}  // namespace df11::test
