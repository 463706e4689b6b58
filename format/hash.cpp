#include "format/hash.h"

#include <new>

#include <openssl/evp.h>
#include <xxhash.h>

namespace df11 {

namespace {

template <size_t N>
std::string to_hex(const std::array<uint8_t, N>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * N);
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

template <typename Digest>
Result<Digest> from_hex(std::string_view hex, const char* name) {
  Digest digest;
  bool good = hex.size() == 2 * digest.bytes.size();
  for (size_t i = 0; good && i < digest.bytes.size(); ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    good = high >= 0 && low >= 0;
    digest.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  if (!good) {
    return fail(ErrorCode::malformed_manifest, std::string("not a ") + name + " in lower-case hex");
  }
  return digest;
}

XXH3_state_t* xxh_state(void* state) { return static_cast<XXH3_state_t*>(state); }
EVP_MD_CTX* evp_context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

std::string Xxh128::hex() const { return to_hex(bytes); }
std::string Sha256::hex() const { return to_hex(bytes); }

void Xxh128Hasher::Delete::operator()(void* state) const { XXH3_freeState(xxh_state(state)); }

Xxh128Hasher::Xxh128Hasher() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(xxh_state(state_.get()));
}

void Xxh128Hasher::update(ByteSpan bytes) {
  if (!bytes.empty()) XXH3_128bits_update(xxh_state(state_.get()), bytes.data(), bytes.size());
}

Xxh128 Xxh128Hasher::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(xxh_state(state_.get())));
  Xxh128 result;
  std::memcpy(result.bytes.data(), canonical.digest, result.bytes.size());
  return result;
}

void Sha256Hasher::Delete::operator()(void* context) const { EVP_MD_CTX_free(evp_context(context)); }

Sha256Hasher::Sha256Hasher() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(evp_context(context_.get()), EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();
  }
}

void Sha256Hasher::update(ByteSpan bytes) {
  EVP_DigestUpdate(evp_context(context_.get()), bytes.data(), bytes.size());
}

Sha256 Sha256Hasher::digest() {
  Sha256 result;
  EVP_DigestFinal_ex(evp_context(context_.get()), result.bytes.data(), nullptr);
  return result;
}

Sha256 sha256(ByteSpan bytes) {
  Sha256Hasher hasher;
  hasher.update(bytes);
  return hasher.digest();
}

Result<Xxh128> parse_xxh128(std::string_view hex) { return from_hex<Xxh128>(hex, "XXH3-128"); }
Result<Sha256> parse_sha256(std::string_view hex) { return from_hex<Sha256>(hex, "SHA-256"); }

}  // namespace df11
