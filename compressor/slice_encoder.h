// Encoding one slice of a group: the second pass of compression.
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
#include "compressor/exponent_counts.h"
#include "format/bytes.h"

namespace df11 {

// Slot of a pair of exponents in a table of 2^16. Neighbouring exponents are what weights have;
// where they lie in the row of `second` is permuted, or the rows' used parts would compete for the
// same few sets of the cache.
constexpr uint16_t pair_slot(uint16_t both) {
  return static_cast<uint16_t>(both ^ (both >> 5 & 0xf8));
}
constexpr uint16_t pair_slot(uint8_t first, uint8_t second) {
  return pair_slot(static_cast<uint16_t>(second << 8 | first));
}

// A codebook in the form the encoder reads: two codes a lookup. Exponents without a code take no
// bits: they occur only if the source changed after it was counted, which the end bit tells.
class EncodeTable {
 public:
  explicit EncodeTable(const Codebook& codebook);

  // The codes of consecutive weights as one. A pair's `entry` has in
  //   bits 0..7    the length of both codes; kLongPair when they do not fit
  //   bits 8..15   the length of the first
  //   bits 16..63  both codes, left-aligned
  // Lengths lie where shift counts are read, so that runs of pairs join without unpacking: the bits
  // of joined runs are valid in 16..63 only, and `lengths` in 0..7 only.
  struct Run {
    uint64_t bits;
    uint64_t lengths;
    uint32_t length_bits() const { return lengths & 0xff; }
  };
  static constexpr uint32_t kMaxRunBits = 48;  // `bits` of longer runs are meaningless
  class Pairs {
   public:
    explicit Pairs(const uint64_t* entries) : entries_(entries) {}
    uint64_t operator[](uint16_t slot) const { return entries_[slot]; }
    Run two(const uint16_t* slots) const { return {entries_[slots[0]], entries_[slots[0]]}; }
    Run four(const uint16_t* slots) const { return join(two(slots), two(slots + 1)); }
    Run eight(const uint16_t* slots) const { return join(four(slots), four(slots + 2)); }

   private:
    static Run join(Run a, Run b) {
      return {a.bits | b.bits >> (a.lengths % 64), a.lengths + b.lengths};
    }
    const uint64_t* entries_;
  };
  Pairs pairs() const { return Pairs(pairs_.data()); }
  Code code(uint8_t exponent) const { return codes_[exponent]; }
  Code end_of_stream() const { return end_of_stream_; }
  uint32_t longest_bits() const { return longest_bits_; }

 private:
  static constexpr uint64_t kLongPair =
      63;  // four of them, or with valid pairs, stay over kMaxRunBits

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
