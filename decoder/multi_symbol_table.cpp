#include "decoder/multi_symbol_table.h"

#include "decoder/known_symbols.h"

namespace df11 {

MultiSymbolTable::MultiSymbolTable(const LookupTables& tables) : tables_(tables) {
  const KnownSymbols known(tables, kPeekBits);
  for (uint32_t peek = 0; peek < kEntries; ++peek) {
    first_[peek] = known.after(peek, kPeekBits);
    uint64_t exponents = ~uint64_t{0}, n_symbols = 0;
    uint32_t n_bits = 0, ends = 0;
    while (n_symbols < kMaxSymbols && n_bits < kPeekBits) {
      const int n_left = kPeekBits - static_cast<int>(n_bits);
      const DecodedSymbol symbol = known.after(peek & ((1u << n_left) - 1), n_left);
      if (symbol.length_bits == 0 || symbol.length_bits > n_left) break;
      exponents ^= uint64_t{static_cast<uint8_t>(symbol.exponent ^ kUnused)} << (8 * n_symbols);
      ++n_symbols;
      n_bits += symbol.length_bits;
      ends |= 1u << n_bits;
    }
    entries_[peek] = n_symbols == 0 ? kEmptyEntry : exponents << 16 | n_symbols << 8 | n_bits;
    ends_[peek] = static_cast<uint16_t>(ends);
  }
}

}  // namespace df11
