// The two hashes of the project and their roles (spec/manifest.md):
// XXH3-128 tells fast whether tensor bytes are equal; SHA-256 binds files and resists an adversary.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/bytes.h"
#include "format/error.h"

namespace df11 {

// Lower-case hex, and back; nothing when `hex` is anything else.
std::string hex_encode(ByteSpan bytes);
std::optional<std::string> hex_decode(std::string_view hex);

// 16 bytes in canonical (big-endian) order, as `xxhsum -H2` prints them.
struct Xxh128 {
  std::array<uint8_t, 16> bytes{};
  std::string hex() const;
  friend bool operator==(const Xxh128&, const Xxh128&) = default;
};

struct Sha256 {
  std::array<uint8_t, 32> bytes{};
  std::string hex() const;
  friend bool operator==(const Sha256&, const Sha256&) = default;
};

struct Sha1 {
  std::array<uint8_t, 20> bytes{};
  std::string hex() const;
};

class Xxh128Hasher {
 public:
  Xxh128Hasher();
  void update(ByteSpan bytes);
  Xxh128 digest() const;

 private:
  struct Delete {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Delete> state_;
};

class Sha256Hasher {
 public:
  Sha256Hasher();
  Sha256Hasher(Sha256Hasher&&) noexcept;
  Sha256Hasher& operator=(Sha256Hasher&&) noexcept;
  ~Sha256Hasher();
  void update(ByteSpan bytes);
  Sha256 digest();  // once

  // a.update(a_bytes), b.update(b_bytes); where the processor has SHA instructions, in little more
  // than the time of one.
  static void update_pair(Sha256Hasher& a, ByteSpan a_bytes, Sha256Hasher& b, ByteSpan b_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256 sha256(ByteSpan bytes);

// The name git gives a file of `size_bytes` bytes: SHA-1 of "blob SIZE\0" and the bytes. Hubs
// publish it for files that they keep in git itself; it is no defence against an adversary.
class GitBlobHasher {
 public:
  explicit GitBlobHasher(uint64_t size_bytes);
  void update(ByteSpan bytes);
  Sha1 digest();  // once

 private:
  struct Delete {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Delete> context_;
};

class Executor;
class File;
struct Progress;

// SHA-256 of the first `n_bytes` of `file`, read once in order. `executor` is asked for
// cancellation only. Errors: I/O errors, cancelled.
Result<Sha256> sha256_of_file(const File& file, uint64_t n_bytes, const Executor& executor,
                              Progress& progress);

// Whether there is a file at `path` that has this size and SHA-256, on the disk as far as the
// system lets one see that. Errors: I/O errors, cancelled.
Result<bool> is_intact(const std::filesystem::path& path, uint64_t size_bytes, const Sha256& sha256,
                       const Executor& executor);

// Parse lower-case hex of exactly the digest's length; malformed_manifest otherwise.
Result<Xxh128> parse_xxh128(std::string_view hex);
Result<Sha256> parse_sha256(std::string_view hex);

}  // namespace df11
