// Constants and size rules of the DF11 layout (spec/df11_format.md sections 3 to 8).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "format/bf16.h"
#include "format/bytes.h"

namespace df11 {

// Code stream geometry (section 5): fixed by dfloat11_config's bytes_per_thread and
// threads_per_block, which have had no other value in any release.
inline constexpr uint32_t kWindowBytes = 8;
inline constexpr uint32_t kWindowBits = 64;
inline constexpr uint32_t kWindowsPerBlock = 512;
inline constexpr uint32_t kBlockBytes = kWindowBytes * kWindowsPerBlock;  // 4096
inline constexpr uint32_t kBlockBits = kBlockBytes * 8;
inline constexpr uint32_t kGapBits = 5;
inline constexpr uint32_t kGapBytesPerBlock = kWindowsPerBlock * kGapBits / 8;  // 320

// Codes and tables (section 4).
inline constexpr int kMaxCodeLength = 32;
inline constexpr int kMaxLevels = 4;  // lookups of 8 bits each
inline constexpr uint32_t kLutRowBytes = 256;
inline constexpr uint32_t kFirstLink = 240;  // LUT entries from here on are links
inline constexpr uint32_t kMaxLinkRows = 16;
inline constexpr uint32_t kMaxCodedExponent = kFirstLink - 1;

// Upstream's kernel indexes code bytes in int32, up to a block past the last one; its runtime
// counts weights in int32 too (section 9).
inline constexpr uint64_t kMaxGroupElements = std::numeric_limits<int32_t>::max();
inline constexpr uint64_t kMaxGroupCodeBytes = std::numeric_limits<int32_t>::max() - kBlockBytes;

// Weights of one block that fit the 48 KiB of shared memory upstream launches with (section 9):
// 512 counters of 4 bytes, 4 bytes, and 2 bytes a weight.
inline constexpr uint32_t kMaxUpstreamBlockElements = (48 * 1024 - kWindowsPerBlock * 4 - 4) / 2;

// The six tensors of a group, by suffix of the module's name (section 3).
inline constexpr std::string_view kLutsName = "luts";
inline constexpr std::string_view kEncodedExponentName = "encoded_exponent";
inline constexpr std::string_view kSignMantissaName = "sign_mantissa";
inline constexpr std::string_view kOutputPositionsName = "output_positions";
inline constexpr std::string_view kGapsName = "gaps";
inline constexpr std::string_view kSplitPositionsName = "split_positions";
inline constexpr std::array<std::string_view, 6> kGroupTensors = {
    kLutsName, kEncodedExponentName, kSignMantissaName, kOutputPositionsName,
    kGapsName, kSplitPositionsName};

constexpr uint64_t n_code_blocks(uint64_t n_code_bytes) {
  return ceil_div(n_code_bytes, kBlockBytes);
}
constexpr uint64_t n_code_windows(uint64_t n_code_bytes) {
  return ceil_div(n_code_bytes, kWindowBytes);
}
constexpr uint64_t gaps_bytes(uint64_t n_code_bytes) {
  return n_code_blocks(n_code_bytes) * kGapBytesPerBlock;
}
constexpr uint64_t n_output_positions(uint64_t n_code_bytes) {
  return n_code_blocks(n_code_bytes) + 1;
}

// Gap of window `window` in packed 5-bit form, most significant bit first. Reads one or two bytes,
// never past the last byte that holds bits of it.
DF11_HOST_DEVICE inline uint32_t load_gap(const uint8_t* gaps, uint64_t window) {
  const uint64_t bit = window * kGapBits;
  const uint8_t* p = gaps + bit / 8;
  const uint32_t shift = static_cast<uint32_t>(bit % 8);
  uint32_t two_bytes = static_cast<uint32_t>(p[0]) << 8;
  if (shift > 8 - kGapBits) two_bytes |= p[1];
  return two_bytes >> (16 - kGapBits - shift) & 31;
}

}  // namespace df11
