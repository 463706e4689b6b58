// A lookup table that yields several symbols at once, built from any valid `luts`.
#pragma once

#include <array>
#include <cstdint>

#include "format/lookup_tables.h"

namespace df11 {

// What the next kPeekBits bits of a stream decode to.
//
//   bits 0..39    up to 5 exponents, the first in the lowest byte
//   bits 40..51   bit i: a code starts at stream bit i of the peeked ones
//   bits 52..55   number of exponents; 0: the first code is longer than the peek, or there is none
//   bits 56..63   bits that those codes take
class MultiSymbolTable {
 public:
  static constexpr int kPeekBits = 11;
  static constexpr int kMaxSymbols = 5;

  explicit MultiSymbolTable(const LookupTables& tables);

  uint64_t entry(uint64_t stream_bits_at_top) const {
    return entries_[stream_bits_at_top >> (64 - kPeekBits)];
  }
  static constexpr uint64_t starts(uint64_t entry) { return entry >> 40 & 0xfff; }
  static constexpr uint32_t n_symbols(uint64_t entry) { return entry >> 52 & 15; }
  static constexpr uint32_t n_bits(uint64_t entry) { return static_cast<uint32_t>(entry >> 56); }

  // The single symbol at the top of `stream_bits_at_top`; by table if its code fits the peek.
  DecodedSymbol first_symbol(uint64_t stream_bits_at_top) const {
    const DecodedSymbol symbol = first_[stream_bits_at_top >> (64 - kPeekBits)];
    return symbol.length_bits != 0 ? symbol
                                   : tables_.walk(static_cast<uint32_t>(stream_bits_at_top >> 32));
  }

 private:
  static constexpr size_t kEntries = size_t{1} << kPeekBits;
  std::array<uint64_t, kEntries> entries_;
  std::array<DecodedSymbol, kEntries> first_;
  LookupTables tables_;
};

}  // namespace df11
