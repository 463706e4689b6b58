#include "decoder/cuda/decode_tables.h"

#include <cstring>

#include "decoder/known_symbols.h"

namespace df11::cuda {

namespace {

CodeEntry entry_of(DecodedSymbol symbol) {
  if (symbol.length_bits == 0) return 0;
  return static_cast<CodeEntry>(rotated_exponent(symbol.exponent) << 8 | symbol.length_bits);
}

// A symbol keeps its length, even one that does not fit the level at which the slot is met:
// walk_rows knows the level.
std::vector<CodeEntry> build_rows(const LookupTables& tables) {
  std::vector<CodeEntry> rows(kMaxLookupRows * kLutRowBytes, 0);
  const uint32_t n_lookup_rows = tables.n_rows() - 1;
  for (uint32_t i = 0; i < n_lookup_rows * kLutRowBytes; ++i) {
    const uint32_t entry = tables.data()[i];
    if (entry < kFirstLink) {
      rows[i] = entry_of({static_cast<uint8_t>(entry), tables.length_bits(entry)});
    } else if (256 - entry < n_lookup_rows) {
      rows[i] = static_cast<CodeEntry>(kRowLink | (256 - entry));
    }
  }
  return rows;
}

template <typename T>
void append(std::vector<uint8_t>& bytes, const std::vector<T>& values) {
  const size_t offset = bytes.size();
  bytes.resize(offset + values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data() + offset, values.data(), values.size() * sizeof(T));
}

// Up to four codes at the front of `peek`. Every one of them certain: see known_symbols.h.
PeekEntry several_codes(const KnownSymbols& known, uint32_t peek, int n_bits) {
  uint32_t exponents = 0, n_codes = 0, starts = 0;
  int used = 0;
  while (n_codes < kMaxPeekCodes && used < n_bits) {
    const int n_left = n_bits - used;
    const DecodedSymbol symbol = known.after(peek & ((1u << n_left) - 1), n_left);
    if (symbol.length_bits == 0 || symbol.length_bits > n_left) break;
    exponents |= rotated_exponent(symbol.exponent) << (8 * n_codes);
    if (n_codes != 0) starts |= 1u << used;
    ++n_codes;
    used += symbol.length_bits;
  }
  return {exponents, static_cast<uint32_t>(used) | n_codes << 8 | starts << 16};
}

}  // namespace

DecodePlan choose_plan(uint64_t n_code_bytes, uint64_t n_elements) {
  const double mean_bits = 8 * static_cast<double>(n_code_bytes) / static_cast<double>(n_elements);
  if (mean_bits > 9) return DecodePlan::kOneCode;
  return mean_bits > 3.3 ? DecodePlan::kPeek12 : DecodePlan::kPeek11;
}

TableImage build_table_image(const LookupTables& tables, DecodePlan plan) {
  TableImage image{plan, {}};
  const std::vector<CodeEntry> rows = build_rows(tables);
  if (plan == DecodePlan::kOneCode) {
    append(image.bytes, rows);
    return image;
  }
  const int n_bits = peek_bits(plan);
  const uint32_t n_peeks = 1u << n_bits;
  const KnownSymbols known(tables, n_bits);
  std::vector<PeekEntry> entries(n_peeks);
  std::vector<uint16_t> counts(n_peeks);
  std::vector<CodeEntry> longer;
  uint32_t n_slots = 0;
  for (uint32_t peek = 0; peek < n_peeks; ++peek) {
    PeekEntry& entry = entries[peek] = several_codes(known, peek, n_bits);
    if (entry.counts == 0) {
      const bool has_slot = n_slots < kMaxLongSlots;
      entry.counts = kLongCode | (has_slot ? n_slots : kNoLongSlot) << 16;
      n_slots += has_slot;
      for (uint32_t next = 0; has_slot && next < 256; ++next) {
        const uint32_t bits = peek << (32 - n_bits) | next << (24 - n_bits);
        longer.push_back(entry_of(known_symbol(tables, bits, n_bits + 8)));
      }
    }
    counts[peek] = static_cast<uint16_t>(entry.counts);
  }
  append(image.bytes, entries);
  append(image.bytes, counts);
  append(image.bytes, rows);
  append(image.bytes, longer);
  return image;
}

}  // namespace df11::cuda
