#include "format/lookup_tables.h"

#include <algorithm>

namespace df11 {

namespace {
auto malformed(std::string message) {
  return fail(ErrorCode::malformed_group, std::move(message));
}
}  // namespace

Result<LookupTables> LookupTables::parse(ByteSpan bytes, uint64_t n_rows) {
  if (n_rows < 2 || n_rows > 2 + kMaxLinkRows) {
    return malformed("luts has " + std::to_string(n_rows) + " rows, 2 to " +
                     std::to_string(2 + kMaxLinkRows) + " are possible");
  }
  if (bytes.size() != n_rows * kLutRowBytes) return malformed("luts is not rows of 256 bytes");

  LookupTables tables;
  tables.bytes_.assign(bytes.begin(), bytes.end());
  tables.n_rows_ = static_cast<uint32_t>(n_rows);
  bool any_code = false;
  for (uint32_t exponent = 0; exponent < kLutRowBytes; ++exponent) {
    const uint8_t length = tables.length_bits(exponent);
    if (length > kMaxCodeLength) {
      return malformed("luts declares a code of " + std::to_string(length) + " bits for exponent " +
                       std::to_string(exponent) + ", 32 is the longest");
    }
    if (length != 0 && exponent > kMaxCodedExponent) {
      return malformed("luts declares a code for exponent " + std::to_string(exponent) +
                       ", which cannot be told from a link");
    }
    any_code |= length != 0;
  }
  if (!any_code) return malformed("luts declares no code at all");
  return tables;
}

int LookupTables::longest_code_bits() const {
  const uint8_t* lengths = bytes_.data() + (n_rows_ - 1) * kLutRowBytes;
  return *std::max_element(lengths, lengths + kLutRowBytes);
}

bool LookupTables::always_progresses() const {
  // progresses[row] for walks that enter `row` at the level being computed, deepest level first.
  std::vector<bool> progresses(n_rows_ - 1, false);
  for (int level = kMaxLevels - 1; level >= 0; --level) {
    std::vector<bool> at_level(n_rows_ - 1, true);
    for (uint32_t row = 0; row < n_rows_ - 1; ++row) {
      for (uint32_t i = 0; i < kLutRowBytes && at_level[row]; ++i) {
        const uint32_t entry = bytes_[row * kLutRowBytes + i];
        if (entry < kFirstLink) {
          at_level[row] = length_bits(entry) != 0;
        } else {
          const uint32_t target = 256 - entry;
          at_level[row] = level + 1 < kMaxLevels && target < n_rows_ - 1 && progresses[target];
        }
      }
    }
    progresses = std::move(at_level);
  }
  return progresses[0];
}

}  // namespace df11
