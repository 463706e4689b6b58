#include "format/hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "support/random.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

struct Vector {
  std::string bytes, xxh128, sha256;
};

// From the Python packages xxhash and hashlib; the first two SHA-256 are those of FIPS 180-4.
std::vector<Vector> vectors() {
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  return {{"", "99aa06d3014798d86001c324468d497f",
           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
          {"abc", "06b05ab6733a618578af5f94892f3950",
           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
          {all, "f1f8a93f50849ac39408a4433b952d71",
           "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"},
          {all + all + all + all + "x", "3bc396aaf7ccc5adfcf42dfee36dbda9",
           "8b22d5427688462387bbd8fcef9d2a1f1cb3a8886cd48e604b29e2913b663399"}};
}

TEST(Hash, KnownVectors) {
  for (const Vector& vector : vectors()) {
    Xxh128Hasher hasher;
    hasher.update(as_bytes(vector.bytes));
    EXPECT_EQ(hasher.digest().hex(), vector.xxh128);
    EXPECT_EQ(sha256(as_bytes(vector.bytes)).hex(), vector.sha256);
  }
}

// Whatever the lengths, and wherever in a block the two stand.
TEST(Hash, PairsAreTwoHashes) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * i >> 3);
  const std::string other(text.rbegin(), text.rend());
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    Sha256Hasher a, b;
    std::string a_text, b_text;
    for (uint64_t part = random.below(5); part > 0; --part) {
      // Often equal, whole blocks, or nothing.
      const size_t a_size = random.below(3) == 0 ? 64 * random.below(40) : random.below(3000);
      const size_t b_size = random.below(3) == 0 ? a_size : random.below(3000) * random.below(2);
      const std::string a_part = text.substr(random.below(text.size() - a_size), a_size);
      const std::string b_part = other.substr(random.below(other.size() - b_size), b_size);
      Sha256Hasher::update_pair(a, as_bytes(a_part), b, as_bytes(b_part));
      a_text += a_part;
      b_text += b_part;
    }
    ASSERT_EQ(a.digest().hex(), sha256(as_bytes(a_text)).hex());
    ASSERT_EQ(b.digest().hex(), sha256(as_bytes(b_text)).hex());
  }
}

TEST(Hash, DoesNotDependOnHowTheBytesArrive) {
  const Vector vector = vectors().back();
  for (const size_t step : {1, 7, 64, 1000}) {
    Xxh128Hasher xxh;
    Sha256Hasher sha;
    for (size_t i = 0; i < vector.bytes.size(); i += step) {
      const std::string part = vector.bytes.substr(i, step);
      xxh.update(as_bytes(part));
      xxh.update({});
      sha.update(as_bytes(part));
      sha.update({});
    }
    EXPECT_EQ(xxh.digest().hex(), vector.xxh128);
    EXPECT_EQ(sha.digest().hex(), vector.sha256);
  }
}

TEST(Hash, Xxh128DigestMayBeTakenInBetween) {
  Xxh128Hasher hasher;
  EXPECT_EQ(hasher.digest().hex(), vectors()[0].xxh128);
  hasher.update(as_bytes("abc"));
  EXPECT_EQ(hasher.digest(), hasher.digest());
  EXPECT_EQ(hasher.digest().hex(), vectors()[1].xxh128);
}

TEST(Hash, HexIsParsedStrictly) {
  const std::string xxh = vectors()[1].xxh128, sha = vectors()[1].sha256;
  ASSERT_TRUE(succeeded(parse_xxh128(xxh)));
  EXPECT_EQ(parse_xxh128(xxh)->hex(), xxh);
  ASSERT_TRUE(succeeded(parse_sha256(sha)));
  EXPECT_EQ(parse_sha256(sha)->hex(), sha);
  std::string upper = xxh;
  upper[1] = 'A';
  for (const std::string& bad :
       {std::string(), xxh.substr(1), xxh + "0", sha, upper, " " + xxh.substr(1),
        "0x" + xxh.substr(2), xxh.substr(0, 31) + "g", xxh.substr(0, 31) + '\0',
        xxh.substr(0, 31) + '\xb0', xxh.substr(0, 31) + ':', xxh.substr(0, 31) + '`'}) {
    EXPECT_TRUE(failed_with(parse_xxh128(bad), ErrorCode::malformed_manifest, "XXH3-128")) << bad;
  }
  EXPECT_TRUE(failed_with(parse_sha256(xxh), ErrorCode::malformed_manifest, "SHA-256"));
}

}  // namespace
}  // namespace df11::test
