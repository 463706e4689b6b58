#include "decoder/multi_symbol_table.h"

namespace df11 {

MultiSymbolTable::MultiSymbolTable(const LookupTables& tables) : tables_(tables) {
  for (uint32_t peek = 0; peek < kEntries; ++peek) {
    const uint32_t stream = peek << (32 - kPeekBits);
    // A code that needs bits beyond the peek shows as too long, whatever those bits are.
    const DecodedSymbol symbol = tables.walk(stream);
    first_[peek] = symbol.length_bits <= kPeekBits ? symbol : DecodedSymbol{0, 0};
  }
  for (uint32_t peek = 0; peek < kEntries; ++peek) {
    uint64_t symbols = 0, starts = 0, n_symbols = 0, n_bits = 0;
    while (n_symbols < kMaxSymbols && n_bits < kPeekBits) {
      const DecodedSymbol symbol = first_[(peek << n_bits) & (kEntries - 1)];
      if (symbol.length_bits == 0 || n_bits + symbol.length_bits > kPeekBits) break;
      symbols |= uint64_t{symbol.exponent} << (8 * n_symbols);
      starts |= uint64_t{1} << n_bits;
      ++n_symbols;
      n_bits += symbol.length_bits;
    }
    entries_[peek] = symbols | starts << 40 | n_symbols << 52 | n_bits << 56;
  }
}

}  // namespace df11
