#include "decoder/gap_check.h"

#include <algorithm>
#include <string>

namespace df11 {

namespace {

// Eight gaps of a byte each as 40 bits, the first at the top: neighbours join, three times.
uint64_t pack_eight_gaps(const uint8_t* gaps) {
  uint64_t x = load_be64(gaps);
  x = (x & 0x001f001f001f001f) | (x & 0x1f001f001f001f00) >> 3;
  x = (x & 0x000003ff000003ff) | (x & 0x03ff000003ff0000) >> 6;
  return (x & 0x00000000000fffff) | (x & 0x000fffff00000000) >> 12;
}

}  // namespace

Result<void> check_gaps(const uint8_t* gaps, const BlockStream& stream) {
  auto& expected = stream.scratch->starts;
  expected[0] = static_cast<uint8_t>(load_gap(gaps, 0));  // decoding began there
  const uint64_t end_bit = stream.bit;
  const uint64_t end_window = std::min<uint64_t>(end_bit / kWindowBits, kWindowsPerBlock - 1);
  std::fill(expected.begin() + end_window + 1, expected.begin() + kWindowsPerBlock, uint8_t{0});
  // No code starts where the last one ends; a block without any has its tail's end, which the
  // block before it has to agree with.
  if (stream.n_elements != 0 && end_bit < kBlockBits &&
      end_window * kWindowBits + expected[end_window] == end_bit) {
    expected[end_window] = static_cast<uint8_t>(gap_after_end(end_bit));
  }
  for (uint32_t unit = 0; unit < kWindowsPerBlock / 8; ++unit) {
    const uint64_t bits = pack_eight_gaps(&expected[unit * 8]);
    const uint8_t* five = gaps + unit * 5;
    const uint64_t declared = uint64_t{__builtin_bswap32(load_le32(five))} << 8 | five[4];
    if (bits == declared) continue;
    for (uint32_t window = unit * 8;; ++window) {
      if (load_gap(gaps, window) == expected[window]) continue;
      return fail(ErrorCode::corrupt_stream, "the gap of window " + std::to_string(window) +
                                                 " is " + std::to_string(load_gap(gaps, window)) +
                                                 ", the first code there starts at bit " +
                                                 std::to_string(expected[window]));
    }
  }
  return {};
}

}  // namespace df11
