// A lookup table that yields several symbols at once, built from any valid `luts`.
#pragma once

#include <array>
#include <cstdint>

#include "format/lookup_tables.h"

namespace df11 {

// What the next kPeekBits bits of a stream decode to, whatever bits follow them.
//
//   bits 0..5     bits that the codes take
//   bit 7         kNoCode: the entry is empty
//   bits 8..15    number of exponents, up to 6
//   bits 16..63   the exponents, the first in the lowest byte, then kUnused
//
// An entry is empty when the first code is longer than the peek, or there is none.
class MultiSymbolTable {
 public:
  static constexpr int kPeekBits = 11;
  static constexpr int kMaxSymbols = 6;

  static constexpr uint8_t kUnused = 0xff;  // no exponent that has a code
  static constexpr uint64_t kNoCode = 0x80;
  static constexpr uint64_t kEmptyEntry = ~uint64_t{0xffff} | kNoCode;

  explicit MultiSymbolTable(const LookupTables& tables);

  static constexpr uint32_t peek(uint64_t stream_bits_at_top) {
    return static_cast<uint32_t>(stream_bits_at_top >> (64 - kPeekBits));
  }
  const uint64_t* entries() const { return entries_.data(); }
  static constexpr bool is_empty(uint64_t entry) { return (entry & kNoCode) != 0; }
  static constexpr uint64_t n_bits(uint64_t entry) { return entry & 0x3f; }
  static constexpr uint64_t n_exponents(uint64_t entry) { return entry >> 8 & 0xff; }
  static constexpr uint64_t exponents(uint64_t entry) { return entry >> 16; }

  // As an entry, also of a code longer than the peek; empty for no code.
  static constexpr uint64_t entry_of(DecodedSymbol symbol) {
    if (symbol.length_bits == 0) return kEmptyEntry;
    return ~uint64_t{0xffffff} | uint64_t{symbol.exponent} << 16 | 1 << 8 | symbol.length_bits;
  }

  // Bit i: a code of the entry ends after i bits.
  const uint16_t* ends() const { return ends_.data(); }

  // Length in bits by exponent, 256 of them; 0 for exponents without a code, and for kUnused.
  const uint8_t* lengths() const { return tables_.lengths(); }

  // The single symbol at the top of `stream_bits_at_top`; by table if its code fits the peek.
  DecodedSymbol first_symbol(uint64_t stream_bits_at_top) const {
    const DecodedSymbol symbol = first_[peek(stream_bits_at_top)];
    return symbol.length_bits != 0 ? symbol
                                   : tables_.walk(static_cast<uint32_t>(stream_bits_at_top >> 32));
  }

 private:
  static constexpr uint32_t kEntries = 1 << kPeekBits;
  std::array<uint64_t, kEntries> entries_;
  std::array<uint16_t, kEntries> ends_;
  std::array<DecodedSymbol, kEntries> first_;
  LookupTables tables_;
};

}  // namespace df11
