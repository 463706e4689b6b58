// Which symbol follows when only the first few bits of a stream are known: the rule that every
// table of several symbols a lookup is built by.
#pragma once

#include <cstdint>
#include <vector>

#include "format/lookup_tables.h"

namespace df11 {

// The symbol at the front of a stream whose first `n_known` bits (1 to 24) are those at the top of
// `bits`, if EVERY continuation yields it and its code ends within them; length_bits 0 otherwise.
//
// Looking at one continuation is not enough. Slots that no code reaches repeat some other symbol
// (spec/df11_format.md section 11.3), and so may a slot at the start of a longer code.
DecodedSymbol known_symbol(const LookupTables& tables, uint32_t bits, int n_known);

// known_symbol for all prefixes of up to `max_bits` bits.
class KnownSymbols {
 public:
  KnownSymbols(const LookupTables& tables, int max_bits);

  // `prefix` holds the `n_bits` known bits, right-aligned. The code may be longer than they are:
  // where all longer continuations agree, the symbol is known before its code has ended.
  DecodedSymbol after(uint32_t prefix, int n_bits) const {
    return known_[(size_t{1} << n_bits) + prefix];
  }

 private:
  std::vector<DecodedSymbol> known_;  // [2^n_bits + prefix]
};

inline bool operator==(DecodedSymbol a, DecodedSymbol b) {
  return a.exponent == b.exponent && a.length_bits == b.length_bits;
}

}  // namespace df11
