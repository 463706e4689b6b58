// Byte access: little-endian and big-endian loads and stores, checked arithmetic, ceiling division.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace df11 {

static_assert(std::endian::native == std::endian::little,
              "safetensors and DF11 are little-endian; big-endian hosts are not supported");

using ByteSpan = std::span<const uint8_t>;
using MutableByteSpan = std::span<uint8_t>;

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline uint64_t load_le64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline void store_le64(uint8_t* p, uint64_t value) {
  std::memcpy(p, &value, sizeof value);
}

inline uint32_t load_le32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline void store_le32(uint8_t* p, uint32_t value) {
  std::memcpy(p, &value, sizeof value);
}

inline uint64_t load_be64(const uint8_t* p) {
  return __builtin_bswap64(load_le64(p));
}
inline void store_be64(uint8_t* p, uint64_t value) {
  store_le64(p, __builtin_bswap64(value));
}

// Sum and product, or nothing on overflow. For every size that comes from a file.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Scratch memory that grows and is never cleared: contents are unspecified after ensure().
template <typename T>
class ScratchBuffer {
 public:
  // At least `n` elements; what was there before may be lost.
  T* ensure(size_t n) {
    if (n > capacity_) {
      data_ = std::make_unique_for_overwrite<T[]>(n);
      capacity_ = n;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T[]> data_;
  size_t capacity_ = 0;
};

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

}  // namespace df11
