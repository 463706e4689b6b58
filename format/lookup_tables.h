// The `luts` tensor of a group: hierarchical 8-bit lookup tables and code lengths
// (spec/df11_format.md section 4).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/bytes.h"
#include "format/df11_layout.h"
#include "format/error.h"

namespace df11 {

// One decoded symbol. length_bits 0: no code starts with these bits.
struct DecodedSymbol {
  uint8_t exponent;
  uint8_t length_bits;
};

// Decodes the symbol whose code begins at the most significant bit of `bits` (32 bits of stream),
// the way upstream's kernel walks the tables. `luts` holds `n_rows` rows, the code lengths last.
//
// A symbol found at level d (from 0) has a code of 8d+1 to 8d+8 bits; any other length marks a slot
// that no valid stream reaches, as do links to rows that do not exist and a fifth level.
DF11_HOST_DEVICE inline DecodedSymbol walk_luts(const uint8_t* luts, uint32_t n_rows,
                                                uint32_t bits) {
  uint32_t row = 0;
  for (int level = 0; level < kMaxLevels; ++level) {
    const uint32_t entry = luts[row * kLutRowBytes + (bits >> (24 - 8 * level) & 0xff)];
    if (entry < kFirstLink) {
      const uint32_t length = luts[(n_rows - 1) * kLutRowBytes + entry];
      const uint32_t shortest = 8 * static_cast<uint32_t>(level) + 1;
      if (length < shortest || length > shortest + 7) break;
      return {static_cast<uint8_t>(entry), static_cast<uint8_t>(length)};
    }
    row = 256 - entry;
    if (row >= n_rows - 1) break;
  }
  return {0, 0};
}

// Owned, structurally valid tables: 1 to 17 lookup rows and the row of lengths, no length over 32.
// Slots that no code reaches may hold anything, so decoding still has to look at length_bits.
class LookupTables {
 public:
  // `bytes` is the content of the tensor, `shape` its declared shape.
  // Errors: malformed_group.
  static Result<LookupTables> parse(ByteSpan bytes, uint64_t n_rows);

  uint32_t n_rows() const { return n_rows_; }
  uint32_t n_link_rows() const { return n_rows_ - 2; }
  const uint8_t* data() const { return bytes_.data(); }
  ByteSpan bytes() const { return bytes_; }

  DecodedSymbol walk(uint32_t bits) const { return walk_luts(bytes_.data(), n_rows_, bits); }

  // Length in bits by exponent; 0 for exponents without a code.
  uint8_t length_bits(uint32_t exponent) const { return lengths()[exponent]; }
  const uint8_t* lengths() const { return &bytes_[(n_rows_ - 1) * kLutRowBytes]; }  // all 256
  int longest_code_bits() const;

  // Whether upstream's kernel, fed any bits at all, always finds a symbol of length 1 or more
  // within four lookups. If not, padding or damage can make that kernel spin (spec section 10).
  bool always_progresses() const;

 private:
  std::vector<uint8_t> bytes_;
  uint32_t n_rows_ = 0;
};

}  // namespace df11
