#include "decoder/known_symbols.h"

namespace df11 {

namespace {
constexpr DecodedSymbol kUnknown = {0, 0};
}

DecodedSymbol known_symbol(const LookupTables& tables, uint32_t bits, int n_known) {
  // A walk that ends within `n_known` bits has read whole bytes only, up to `n_read` bits; one that
  // reads on finds a longer code, or none.
  const int n_read = (n_known + 7) / 8 * 8;
  const uint32_t prefix = bits >> (32 - n_known) << (32 - n_known);
  const DecodedSymbol symbol = tables.walk(prefix);
  if (symbol.length_bits == 0 || symbol.length_bits > n_known) return kUnknown;
  for (uint32_t rest = 1; rest < uint32_t{1} << (n_read - n_known); ++rest) {
    if (!(tables.walk(prefix | rest << (32 - n_read)) == symbol)) return kUnknown;
  }
  return symbol;
}

KnownSymbols::KnownSymbols(const LookupTables& tables, int max_bits)
    : known_(size_t{2} << max_bits, kUnknown) {
  const size_t n = size_t{1} << max_bits;
  for (size_t prefix = 0; prefix < n; ++prefix) {
    known_[n + prefix] =
        known_symbol(tables, static_cast<uint32_t>(prefix) << (32 - max_bits), max_bits);
  }
  for (size_t i = n - 1; i > 0; --i) {
    known_[i] = known_[2 * i] == known_[2 * i + 1] ? known_[2 * i] : kUnknown;
  }
}

}  // namespace df11
