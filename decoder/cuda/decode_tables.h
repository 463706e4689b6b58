// The decode-ready form of a group's `luts` on the GPU, and how its codes are looked up.
//
// An image holds, one after the other, for a plan with a peek of W bits:
//
//   2^W PeekEntry    up to four codes a lookup, for the pass that writes
//   2^W uint16_t     the low half of PeekEntry::counts alone, for the pass that counts
//   kRowsBytes       the rows of `luts`, each symbol with its length (CodeEntry)
//   256 CodeEntry    for each of up to kMaxLongSlots peeks at which a longer code begins: by the
//                    8 bits after the peek; 0 where the code is longer still
//
// A plan without a peek has the rows alone.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/cuda/device_bits.h"
#include "format/df11_layout.h"
#include "format/lookup_tables.h"

namespace df11::cuda {

// How the codes of a group are looked up: several a lookup by a peek of 11 or 12 bits, or one a
// lookup by the rows of `luts`.
enum class DecodePlan : uint8_t { kPeek11, kPeek12, kOneCode };
inline constexpr int kDecodePlans = 3;

// What the next W bits of a stream decode to, whatever bits follow them.
struct PeekEntry {
  uint32_t exponents;  // up to four, the first in the lowest byte, as rotated_exponent() has them
  // Bits 0..7: bits that the codes take; bits 8..15: number of codes; bit 16 + j, j > 0: a code
  // starts at bit j. A code of more than W bits: kLongCode | slot << 16.
  uint32_t counts;
};
inline constexpr uint32_t kLongCode = 64;
inline constexpr uint32_t kMaxPeekCodes = 4;
inline constexpr uint32_t kMaxLongSlots = 64;
inline constexpr uint32_t kNoLongSlot = 0xffff;

// An exponent's lowest bit goes to the highest: the join then takes it from where bit 7 of a word's
// low byte is.
DF11_INLINE uint32_t rotated_exponent(uint32_t exponent) {
  return exponent >> 1 | (exponent & 1) << 7;
}

// Rotated exponent << 8 | length of its code; a link: kRowLink | row; no code: 0.
using CodeEntry = uint16_t;
inline constexpr uint32_t kRowLink = 128;
inline constexpr uint32_t kMaxLookupRows = kMaxLinkRows + 1;
inline constexpr uint32_t kRowsBytes = kMaxLookupRows * kLutRowBytes * sizeof(CodeEntry);

// The code at the front of `bits`, as spec/df11_format.md section 4 walks `luts`; 0 if there is
// none.
DF11_INLINE uint32_t walk_rows(const CodeEntry* rows, uint32_t bits) {
  uint32_t row = 0;
  for (uint32_t level = 0; level < kMaxLevels; ++level) {
    const uint32_t entry = rows[row * kLutRowBytes + first_bits<8>(bits)];
    if ((entry & kRowLink) == 0) return (entry & 63) - 8 * level - 1 < 8 ? entry : 0;
    row = entry & 31;
    bits <<= 8;
  }
  return 0;
}

struct PeekLayout {
  DF11_INLINE static constexpr uint32_t counts_offset(int peek_bits) { return 8u << peek_bits; }
  // What a thread block copies to shared memory: everything before the rows.
  DF11_INLINE static constexpr uint32_t rows_offset(int peek_bits) { return 10u << peek_bits; }
  DF11_INLINE static constexpr uint32_t long_offset(int peek_bits) {
    return rows_offset(peek_bits) + kRowsBytes;
  }
};

// Where a kernel finds an image's parts. Long codes are rare: `rows` and `longer` stay in global
// memory.
template <int kBits>
struct PeekTables {
  static constexpr int kPeekBits = kBits;
  const PeekEntry* entries;
  const uint16_t* counts;
  const CodeEntry* rows;
  const CodeEntry* longer;

  // The code at the front of `bits`, of more than W bits; `slot` is from its PeekEntry.
  DF11_INLINE uint32_t long_code(uint32_t slot, uint32_t bits) const {
    if (slot != kNoLongSlot) {
      const uint32_t entry = longer[slot * 256 + first_bits<8>(bits << kPeekBits)];
      if (entry != 0) return entry;
    }
    return walk_rows(rows, bits);
  }
};
struct RowTables {
  static constexpr int kPeekBits = 0;
  const CodeEntry* rows;
};

// Host: the image of one group.
struct TableImage {
  DecodePlan plan;
  std::vector<uint8_t> bytes;  // a multiple of 16
};
inline constexpr uint32_t kMaxImageBytes =
    PeekLayout::long_offset(12) + kMaxLongSlots * 256 * sizeof(CodeEntry);

// The mean code length decides. Longer codes want the wider peek; very long ones, which only a code
// that does not fit its data has, make lookups of several codes useless.
DecodePlan choose_plan(uint64_t n_code_bytes, uint64_t n_elements);
// Of the plans with lookups of several codes.
constexpr int peek_bits(DecodePlan plan) {
  return plan == DecodePlan::kPeek12 ? 12 : 11;
}
constexpr uint32_t rows_offset(DecodePlan plan) {
  return plan == DecodePlan::kOneCode ? 0 : PeekLayout::rows_offset(peek_bits(plan));
}

TableImage build_table_image(const LookupTables& tables, DecodePlan plan);

}  // namespace df11::cuda
