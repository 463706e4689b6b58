#include "format/hash.h"

// SHA256_CTX, for its open state: Sha256Hasher::update_pair.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <algorithm>
#include <new>

#include <openssl/evp.h>
#include <openssl/sha.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // xxHash with the vectors that this processor has
#else
#include <xxhash.h>
#endif

#include "format/file.h"
#include "format/parallel.h"
#include "format/progress.h"
#include "format/sha256_pair.h"

namespace df11 {

namespace {

template <typename Digest>
Result<Digest> from_hex(std::string_view hex, const char* name) {
  Digest digest;
  const std::optional<std::string> bytes = hex_decode(hex);
  if (!bytes || bytes->size() != digest.bytes.size()) {
    return fail(ErrorCode::malformed_manifest, std::string("not a ") + name + " in lower-case hex");
  }
  std::memcpy(digest.bytes.data(), bytes->data(), bytes->size());
  return digest;
}

XXH3_state_t* xxh_state(void* state) {
  return static_cast<XXH3_state_t*>(state);
}
EVP_MD_CTX* evp_context(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

std::string hex_encode(ByteSpan bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::optional<std::string> hex_decode(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return std::nullopt;
    bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  }
  return bytes;
}

std::string Xxh128::hex() const {
  return hex_encode(bytes);
}
std::string Sha256::hex() const {
  return hex_encode(bytes);
}
std::string Sha1::hex() const {
  return hex_encode(bytes);
}

void Xxh128Hasher::Delete::operator()(void* state) const {
  XXH3_freeState(xxh_state(state));
}

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

struct Sha256Hasher::State {
  SHA256_CTX context;

  // Bytes that complete the block that has begun, if that many are there.
  size_t n_to_boundary(size_t n_bytes) const {
    return std::min<size_t>(n_bytes, (SHA256_CBLOCK - context.num) % SHA256_CBLOCK);
  }
  // Counts bytes whose blocks were taken in by other means.
  void count(uint64_t n_bytes) {
    const uint64_t n_bits = (uint64_t{context.Nh} << 32 | context.Nl) + 8 * n_bytes;
    context.Nh = static_cast<SHA_LONG>(n_bits >> 32);
    context.Nl = static_cast<SHA_LONG>(n_bits);
  }
};

Sha256Hasher::Sha256Hasher() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}
Sha256Hasher::Sha256Hasher(Sha256Hasher&&) noexcept = default;
Sha256Hasher& Sha256Hasher::operator=(Sha256Hasher&&) noexcept = default;
Sha256Hasher::~Sha256Hasher() = default;

void Sha256Hasher::update(ByteSpan bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

Sha256 Sha256Hasher::digest() {
  Sha256 result;
  SHA256_Final(result.bytes.data(), &state_->context);
  return result;
}

void Sha256Hasher::update_pair(Sha256Hasher& a, ByteSpan a_bytes, Sha256Hasher& b,
                               ByteSpan b_bytes) {
  const auto take = [](Sha256Hasher& hasher, ByteSpan& bytes, size_t n_bytes) {
    hasher.update(bytes.first(n_bytes));
    bytes = bytes.subspan(n_bytes);
  };
  take(a, a_bytes, a.state_->n_to_boundary(a_bytes.size()));
  take(b, b_bytes, b.state_->n_to_boundary(b_bytes.size()));
  const size_t n_blocks = std::min(a_bytes.size(), b_bytes.size()) / SHA256_CBLOCK;
  if (n_blocks != 0 && has_sha256_pair()) {  // so both are at a boundary
    const size_t n_bytes = n_blocks * SHA256_CBLOCK;
    sha256_pair(a.state_->context.h, a_bytes.data(), b.state_->context.h, b_bytes.data(), n_blocks);
    a.state_->count(n_bytes);
    b.state_->count(n_bytes);
    a_bytes = a_bytes.subspan(n_bytes);
    b_bytes = b_bytes.subspan(n_bytes);
  }
  a.update(a_bytes);
  b.update(b_bytes);
}

Sha256 sha256(ByteSpan bytes) {
  Sha256Hasher hasher;
  hasher.update(bytes);
  return hasher.digest();
}

void GitBlobHasher::Delete::operator()(void* context) const {
  EVP_MD_CTX_free(evp_context(context));
}

GitBlobHasher::GitBlobHasher(uint64_t size_bytes) : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(evp_context(context_.get()), EVP_sha1(), nullptr) != 1)
    throw std::bad_alloc();
  std::string head = "blob " + std::to_string(size_bytes);
  head += '\0';
  update(as_bytes(head));
}

void GitBlobHasher::update(ByteSpan bytes) {
  EVP_DigestUpdate(evp_context(context_.get()), bytes.data(), bytes.size());
}

Sha1 GitBlobHasher::digest() {
  Sha1 result;
  EVP_DigestFinal_ex(evp_context(context_.get()), result.bytes.data(), nullptr);
  return result;
}

Result<Sha256> sha256_of_file(const File& file, uint64_t n_bytes, const Executor& executor,
                              Progress& progress) {
  Sha256Hasher hasher;
  DF11_TRY(file.for_each_chunk(0, n_bytes, [&](ByteSpan chunk, uint64_t) {
    hasher.update(chunk);
    progress.add(chunk.size());
    return executor.check_cancelled();
  }));
  return hasher.digest();
}

Result<bool> is_intact(const std::filesystem::path& path, uint64_t size_bytes, const Sha256& sha256,
                       const Executor& executor) {
  const Result<File> file = File::open_read(path);
  if (!file && !is_no_file(file.error().code)) return fail(file.error());
  if (!file || file->size_bytes() != size_bytes) return false;
  // What could not be written may be cached as if it had been, and the system says so only once:
  // so it is the disk that is read.
  DF11_TRY(file->sync());
  file->forget_cached();
  Progress not_shown;
  DF11_ASSIGN(const Sha256 digest, sha256_of_file(*file, size_bytes, executor, not_shown));
  return digest == sha256;
}

Result<Xxh128> parse_xxh128(std::string_view hex) {
  return from_hex<Xxh128>(hex, "XXH3-128");
}
Result<Sha256> parse_sha256(std::string_view hex) {
  return from_hex<Sha256>(hex, "SHA-256");
}

}  // namespace df11
