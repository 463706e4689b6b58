#include "decoder/multi_symbol_table.h"

namespace df11 {

namespace {

// The symbol that any stream beginning with these kPeekBits bits decodes to; length 0 when that
// depends on later bits. A slot that no code reaches repeats some symbol, so it is not enough to
// look one continuation up: all slots that the peek leaves open must agree.
DecodedSymbol symbol_of_peek(const LookupTables& tables, uint32_t peek) {
  constexpr int kRestBits = MultiSymbolTable::kPeekBits - 8;  // of the second level's index
  static_assert(kRestBits >= 0 && kRestBits <= 8);
  const uint32_t stream = peek << (32 - MultiSymbolTable::kPeekBits);
  const DecodedSymbol symbol = tables.walk(stream);
  if (symbol.length_bits == 0 || symbol.length_bits > MultiSymbolTable::kPeekBits) return {0, 0};
  if (symbol.length_bits <= 8) return symbol;
  constexpr uint32_t kOpenSlots = 1 << (8 - kRestBits);
  for (uint32_t slot = 1; slot < kOpenSlots; ++slot) {
    const DecodedSymbol other = tables.walk(stream | slot << 16);
    if (other.exponent != symbol.exponent || other.length_bits != symbol.length_bits) return {0, 0};
  }
  return symbol;
}

}  // namespace

MultiSymbolTable::MultiSymbolTable(const LookupTables& tables) : tables_(tables) {
  for (uint32_t peek = 0; peek < kEntries; ++peek) first_[peek] = symbol_of_peek(tables, peek);
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
