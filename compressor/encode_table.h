// A codebook in the forms the encoder reads.
#pragma once

#include <array>
#include <cstdint>

#include "compressor/codebook.h"

namespace df11 {

// Exponents without a code take no bits: they occur only if the source changed after it was
// counted, which the end bit tells.
class EncodeTable {
 public:
  explicit EncodeTable(const Codebook& codebook);

  // A code, left-aligned, and its length in the lowest kLengthBits: the sum of eight lengths fits,
  // and lies where shift counts are read, so that codes join without unpacking.
  static constexpr uint32_t kLengthBits = 9;
  uint64_t operator[](uint8_t exponent) const { return codes_[exponent]; }

  // The codes of neighbouring exponents and of exponent 0, for lookups in vector registers. Nearly
  // all weights of a tensor have one of these.
  struct Window {
    static constexpr uint8_t kExponents = 30;
    static constexpr uint8_t kPlaceOfOthers = 30;
    static constexpr uint8_t kPlaceOfZero = 31;
    static constexpr uint32_t kMaxCodeBits = 16;
    static constexpr uint8_t kNoCode = 0x80;  // the length where there is none, or a longer one

    uint8_t first_exponent = 0;
    bool useful = false;  // few weights are others
    // By place: of exponents first_exponent and after, then these two.
    using Bytes = std::array<uint8_t, kExponents + 2>;
    alignas(16) Bytes length_bits;
    alignas(16) Bytes high_bits{}, low_bits{};  // the code, left-aligned in 16 bits
  };
  const Window& window() const { return window_; }

  Code end_of_stream() const { return end_of_stream_; }
  uint32_t longest_bits() const { return longest_bits_; }

 private:
  std::array<uint64_t, 256> codes_{};
  Window window_;
  Code end_of_stream_;
  uint32_t longest_bits_ = 1;
};

}  // namespace df11
