// The hot loops of compression: counting exponents, and encoding one slice of a group.
//
// A slice is a run of consecutive weights of one member tensor. Slices of a group are encoded
// independently, in any order; each learns its first bit and first weight from the counts of those
// before it (spec/df11_format.md section 12).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "compressor/codebook.h"
#include "format/bytes.h"

namespace df11 {

// Adds the exponents of `words` to `histogram`.
void count_exponents(std::span<const uint16_t> words, Histogram& histogram);

// A codebook in the form the encoder reads: two codes a lookup. Exponents without a code take no
// bits: they occur only if the source changed after it was counted, which the end bit tells.
class EncodeTable {
 public:
  explicit EncodeTable(const Codebook& codebook);

  // The codes of two consecutive weights as one.
  struct Pair {
    uint64_t bits;               // right-aligned
    uint32_t first_length_bits;  // of the first code
    uint32_t length_bits;        // of both; over 64 when they do not fit `bits`
  };
  Pair pair(const uint8_t* exponents) const {
    uint16_t both;
    std::memcpy(&both, exponents, sizeof both);
    const uint64_t entry = pairs_[both];
    return {entry >> 16, static_cast<uint32_t>(entry >> 8 & 0xff), static_cast<uint32_t>(entry & 0xff)};
  }
  Code code(uint8_t exponent) const { return codes_[exponent]; }
  Code end_of_stream() const { return end_of_stream_; }
  uint32_t longest_bits() const { return longest_bits_; }

 private:
  // bits 0..7 length of both, 8..15 length of the first, 16..63 both codes
  static constexpr uint32_t kMaxPairBits = 48;
  static constexpr uint64_t kLongPair = 0xff;

  std::array<Code, 256> codes_;
  Code end_of_stream_;
  uint32_t longest_bits_ = 1;
  std::vector<uint64_t> pairs_;
};

struct SlicePosition {
  uint64_t first_bit = 0;      // of the slice's first code in the stream
  uint64_t first_element = 0;  // index of its first weight in the group
};

// What a slice contributes to encoded_exponent, gaps and output_positions.
//
// Both ends may share units (a byte of code, 8 windows = 5 bytes of gaps) with the neighbours; the
// neighbours' bits are 0 here, so that shared units combine by OR.
struct EncodedSlice {
  MutableByteSpan code;              // begins at stream byte first_bit / 8
  ScratchBuffer<uint8_t> gaps;       // begins at unit first_window / 8 of the gaps, 5 bytes a unit
  uint64_t n_gap_bytes = 0;
  std::vector<uint32_t> positions;   // of blocks first_block, first_block + 1, …
  uint64_t first_block = 0;
  uint64_t first_window = 0;         // owned: [first_window, end_window)
  uint64_t end_window = 0;
  uint64_t end_bit = 0;              // one past the last code; padding is not counted

  ScratchBuffer<uint8_t> code_words;   // scratch: what `code` points into
  ScratchBuffer<uint8_t> exponents;    // scratch
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
