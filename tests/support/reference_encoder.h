// A naive encoder, one symbol and one character per bit at a time, written from the rules of
// upstream's encoder (spec/df11_format.md section 11): the oracle for the fast one.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compressor/codebook.h"
#include "compressor/group_encoder.h"

namespace df11::test {

inline constexpr int kReferenceEndOfStream = -1;

// A prefix code as text: symbols in code-tree order, each with its bits as '0' and '1'.
struct ReferenceCode {
  std::vector<int> order;
  std::map<int, std::string> codes;

  const std::string& bits(int symbol) const { return codes.at(symbol); }
  size_t longest_bits() const;
};

Histogram exponent_counts(std::span<const uint16_t> words);

// The Huffman code of `counts` and an end-of-stream symbol, without a limit on lengths.
ReferenceCode reference_huffman(const Histogram& counts);
// The same, kept within 32 bits by upstream's rule; of equal counts the lower exponents first.
ReferenceCode reference_code(const Histogram& counts);
// The code that a codebook holds, in the order in which its codes sort as text.
ReferenceCode code_of(const Codebook& codebook);

// The rows that `code` needs, the first one included: 1 + link rows.
std::vector<std::string> reference_prefixes(const ReferenceCode& code);
// The luts tensor. Slots without an entry repeat the one before, or, with `carry_links` false, the
// last symbol before.
std::vector<uint8_t> reference_luts(const ReferenceCode& code, bool carry_links);

// All tensors but luts.
GroupTensors reference_encode(const std::vector<std::vector<uint16_t>>& members,
                              const ReferenceCode& code);

}  // namespace df11::test
