// The gaps that a block declares, against the code starts that decoding it found.
#pragma once

#include "decoder/block_kernels.h"
#include "format/error.h"

namespace df11 {

// Gap of a window in which no code starts but the last one ends, at `end_bit`
// (spec/df11_format.md section 5.3).
inline uint32_t gap_after_end(uint64_t end_bit) {
  return end_bit % 8 == 0 ? 0 : static_cast<uint32_t>(end_bit % kWindowBits);
}

// Compares every window of `gaps`, 320 bytes, with the block's decoded code starts. Completes
// stream.scratch->starts. Errors: corrupt_stream, without the block.
Result<void> check_gaps(const uint8_t* gaps, const BlockStream& stream);

}  // namespace df11
