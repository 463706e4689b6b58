// Input: 4 bytes of stream, then `luts`. The walk, and every table of several symbols a lookup
// that is built from it, say what a walk bit by bit says.
#include <optional>

#include "decoder/cuda/decode_tables.h"
#include "decoder/cuda/window_decoding.h"
#include "decoder/multi_symbol_table.h"
#include "format/lookup_tables.h"
#include "fuzz_input.h"
#include "support/random.h"

using namespace df11;
using df11::test::require;

namespace {

// The rules of section 4, one after the other.
std::optional<DecodedSymbol> walk_plainly(ByteSpan luts, uint32_t bits) {
  const size_t n_rows = luts.size() / 256;
  size_t row = 0;
  for (uint32_t level = 0; level < 4; ++level) {
    const uint8_t entry = luts[row * 256 + (bits << 8 * level >> 24)];
    if (entry < 240) {
      const uint8_t length = luts[(n_rows - 1) * 256 + entry];
      if (length < 8 * level + 1 || length > 8 * level + 8) return std::nullopt;
      return DecodedSymbol{entry, length};
    }
    row = 256u - entry;
    if (row + 1 >= n_rows) return std::nullopt;
  }
  return std::nullopt;
}

// Whether some bits lead upstream's kernel from `row` at `level` to no symbol of length 1 or more.
bool can_spin(ByteSpan luts, size_t row, int level) {
  const size_t n_rows = luts.size() / 256;
  bool link_seen[17] = {};
  for (size_t slot = 0; slot < 256; ++slot) {
    const uint8_t entry = luts[row * 256 + slot];
    if (entry < 240) {
      if (luts[(n_rows - 1) * 256 + entry] == 0) return true;
      continue;
    }
    const size_t next = 256u - entry;
    if (level == 3 || next + 1 >= n_rows) return true;
    if (!link_seen[next] && can_spin(luts, next, level + 1)) return true;
    link_seen[next] = true;
  }
  return false;
}

void check_multi_symbol(const LookupTables& tables, const MultiSymbolTable& multi, uint64_t bits) {
  const DecodedSymbol first = multi.first_symbol(bits);
  const DecodedSymbol walked = tables.walk(static_cast<uint32_t>(bits >> 32));
  require(first.length_bits == walked.length_bits &&
              (walked.length_bits == 0 || first.exponent == walked.exponent),
          "one symbol");
  const uint64_t entry = multi.entries()[MultiSymbolTable::peek(bits)];
  uint64_t rest = bits, n_bits = 0;
  for (uint64_t i = 0; i < MultiSymbolTable::n_exponents(entry); ++i) {
    const DecodedSymbol symbol = tables.walk(static_cast<uint32_t>(rest >> 32));
    require(symbol.length_bits != 0, "an entry's symbols have codes");
    require(symbol.exponent == (MultiSymbolTable::exponents(entry) >> 8 * i & 0xff),
            "an entry's symbols");
    rest <<= symbol.length_bits;
    n_bits += symbol.length_bits;
  }
  require(n_bits == MultiSymbolTable::n_bits(entry), "an entry's bits");
  require(MultiSymbolTable::is_empty(entry) == (MultiSymbolTable::n_exponents(entry) == 0),
          "empty");
  const bool fits = walked.length_bits != 0 && walked.length_bits <= MultiSymbolTable::kPeekBits;
  require(fits || MultiSymbolTable::is_empty(entry), "no code, or a long one: an empty entry");
}

void check_device_tables(const LookupTables& tables, const std::vector<cuda::TableImage>& images,
                         uint64_t bits) {
  for (const cuda::TableImage& image : images) {
    const cuda::DecodePlan plan = image.plan;
    const auto* rows = reinterpret_cast<const cuda::CodeEntry*>(image.bytes.data() +
                                                                cuda::rows_offset(image.plan));
    const DecodedSymbol walked = tables.walk(static_cast<uint32_t>(bits >> 32));
    const uint32_t found = cuda::walk_rows(rows, static_cast<uint32_t>(bits >> 32));
    require((found & 63) == walked.length_bits, "rows: length");
    require(walked.length_bits == 0 || found >> 8 == cuda::rotated_exponent(walked.exponent),
            "rows: exponent");
    if (plan == cuda::DecodePlan::kOneCode) continue;
    const auto* entries = reinterpret_cast<const cuda::PeekEntry*>(image.bytes.data());
    const cuda::PeekEntry entry = entries[bits >> (64 - cuda::peek_bits(plan))];
    if ((entry.counts & cuda::kLongCode) != 0) continue;
    uint64_t rest = bits;
    for (uint32_t i = 0; i < (entry.counts >> 8 & 0xff); ++i) {
      const DecodedSymbol symbol = tables.walk(static_cast<uint32_t>(rest >> 32));
      require(symbol.length_bits != 0 &&
                  cuda::rotated_exponent(symbol.exponent) == (entry.exponents >> 8 * i & 0xff),
              "peek: symbols");
      rest <<= symbol.length_bits;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  test::FuzzInput input(data, n_bytes);
  const uint64_t seed = input.take(4);
  const ByteSpan luts = input.rest();
  const Result<LookupTables> tables = LookupTables::parse(luts, luts.size() / 256);
  if (!tables) return 0;
  require(tables->always_progresses() == !can_spin(luts, 0, 0), "always_progresses");

  const MultiSymbolTable multi(*tables);
  std::vector<cuda::TableImage> images;
  for (const cuda::DecodePlan plan :
       {cuda::DecodePlan::kPeek11, cuda::DecodePlan::kPeek12, cuda::DecodePlan::kOneCode}) {
    images.push_back(cuda::build_table_image(*tables, plan));
  }
  test::Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const uint64_t bits = i == 0 ? seed << 32 : random.next();
    const std::optional<DecodedSymbol> plain =
        walk_plainly(luts, static_cast<uint32_t>(bits >> 32));
    const DecodedSymbol walked = tables->walk(static_cast<uint32_t>(bits >> 32));
    require(plain.has_value() == (walked.length_bits != 0), "a walk that ends");
    require(
        !plain || (plain->exponent == walked.exponent && plain->length_bits == walked.length_bits),
        "what it finds");
    check_multi_symbol(*tables, multi, bits);
    check_device_tables(*tables, images, bits);
  }
  return 0;
}
