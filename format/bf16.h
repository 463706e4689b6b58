// BF16 words and their DF11 halves (spec/df11_format.md section 2).
//
//   word           s eeeeeeee mmmmmmm     bit 15, bits 14..7, bits 6..0
//   exponent       eeeeeeee               Huffman coded
//   sign_mantissa  s mmmmmmm              bit 7, bits 6..0, stored raw
//
// The functions compile for host and device, so that both decoders share them.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define DF11_HOST_DEVICE __host__ __device__
#else
#define DF11_HOST_DEVICE
#endif

namespace df11 {

DF11_HOST_DEVICE constexpr uint8_t bf16_exponent(uint16_t word) {
  return static_cast<uint8_t>(word >> 7);
}
DF11_HOST_DEVICE constexpr uint8_t bf16_sign_mantissa(uint16_t word) {
  return static_cast<uint8_t>((word >> 8 & 0x80) | (word & 0x7f));
}
DF11_HOST_DEVICE constexpr uint16_t bf16_join(uint8_t exponent, uint8_t sign_mantissa) {
  return static_cast<uint16_t>((sign_mantissa & 0x80) << 8 | exponent << 7 |
                               (sign_mantissa & 0x7f));
}

}  // namespace df11
