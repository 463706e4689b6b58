// Encoding one slice of a group: the second pass of compression.
//
// A slice is a run of consecutive weights of one member tensor. Slices of a group are encoded
// independently, in any order; each learns its first bit and first weight from the counts of those
// before it (spec/df11_format.md section 12).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compressor/encode_table.h"
#include "compressor/exponent_counts.h"
#include "format/bytes.h"

namespace df11 {

struct SlicePosition {
  uint64_t first_bit = 0;      // of the slice's first code in the stream
  uint64_t first_element = 0;  // index of its first weight in the group
};

// What a slice contributes to encoded_exponent, gaps and output_positions.
//
// Both ends may share units (a byte of code, 8 windows = 5 bytes of gaps) with the neighbours; the
// neighbours' bits are 0 here, so that shared units combine by OR.
struct EncodedSlice {
  MutableByteSpan code;         // begins at stream byte first_bit / 8
  ScratchBuffer<uint8_t> gaps;  // begins at unit first_window / 8 of the gaps, 5 bytes a unit
  uint64_t n_gap_bytes = 0;
  std::vector<uint32_t> positions;  // of blocks first_block, first_block + 1, …
  uint64_t first_block = 0;
  uint64_t first_window = 0;  // owned: [first_window, end_window)
  uint64_t end_window = 0;
  uint64_t end_bit = 0;  // one past the last code; padding is not counted

  ScratchBuffer<uint8_t> code_words;   // scratch: what `code` points into
  ScratchBuffer<uint8_t> window_gaps;  // scratch
};

// Splits `words`: writes one byte a weight to `sign_mantissa`, and encodes the exponents to `out`.
// A slice owns the windows and blocks whose first bit lies in (first_bit, end_bit], and the very
// first slice those at 0.
void encode_slice(std::span<const uint16_t> words, const EncodeTable& table,
                  const SlicePosition& position, uint8_t* sign_mantissa, EncodedSlice& out);

// What follows the last code (spec sections 5.2 to 5.4): pads the last byte with the end-of-stream
// code's leading bits, completes gaps and positions to whole blocks, and closes the positions with
// the number of weights in the group. For the last slice only.
void close_stream(const EncodeTable& table, uint64_t n_group_elements, EncodedSlice& out);

}  // namespace df11
