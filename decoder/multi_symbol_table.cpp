#include "decoder/multi_symbol_table.h"

#include <vector>

namespace df11 {

namespace {

bool same(DecodedSymbol a, DecodedSymbol b) {
  return a.exponent == b.exponent && a.length_bits == b.length_bits;
}

}  // namespace

MultiSymbolTable::MultiSymbolTable(const LookupTables& tables) : tables_(tables) {
  // known[2^k + prefix]: the symbol that follows from the k bits `prefix`. Not by looking at one
  // continuation: slots that no code reaches hold symbols of shorter codes, too.
  constexpr DecodedSymbol kUnknown = {0, 0};
  std::vector<DecodedSymbol> known(2 * kEntries, kUnknown);
  for (uint32_t peek = 0; peek < kEntries; ++peek) {
    // 16 bits decide all codes of that length and shorter.
    constexpr int kRestBits = 16 - kPeekBits;
    const auto walk = [&](uint32_t rest) { return tables.walk((peek << kRestBits | rest) << 16); };
    const DecodedSymbol symbol = walk(0);
    if (symbol.length_bits > kPeekBits) continue;
    bool always = true;
    for (uint32_t rest = 1; always && rest < 1u << kRestBits; ++rest)
      always = same(walk(rest), symbol);
    if (always) known[kEntries + peek] = symbol;
  }
  for (size_t i = kEntries - 1; i > 0; --i) {
    known[i] = same(known[2 * i], known[2 * i + 1]) ? known[2 * i] : kUnknown;
  }

  for (uint32_t peek = 0; peek < kEntries; ++peek) {
    first_[peek] = known[kEntries + peek];
    uint64_t exponents = 0, n_symbols = 0;
    uint32_t n_bits = 0, ends = 0;
    while (n_symbols < kMaxSymbols && n_bits < kPeekBits) {
      const uint32_t known_bits = kEntries >> n_bits;  // 2^k
      const DecodedSymbol symbol = known[known_bits + (peek & (known_bits - 1))];
      if (symbol.length_bits == 0 || n_bits + symbol.length_bits > kPeekBits) break;
      exponents |= uint64_t{symbol.exponent} << (8 * n_symbols);
      ++n_symbols;
      n_bits += symbol.length_bits;
      ends |= 1u << n_bits;
    }
    entries_[peek] = n_bits | n_symbols << 8 | exponents << 16;
    ends_[peek] = static_cast<uint16_t>(ends);
  }
}

}  // namespace df11
