// From exponent counts to a prefix code and its `luts` tensor, by upstream's rules
// (spec/df11_format.md section 11), so that the bytes can be compared with upstream's.
#pragma once

#include <array>
#include <cstdint>

#include "format/error.h"
#include "format/lookup_tables.h"

namespace df11 {

// Occurrences by exponent.
using Histogram = std::array<uint64_t, 256>;

struct Code {
  uint32_t bits = 0;        // right-aligned
  uint8_t length_bits = 0;  // 0: no code
};

// How a code came about; anything but kHuffman is named in reports.
enum class CodeRule : uint8_t {
  kHuffman,        // the plain Huffman code
  kRaisedCounts,   // over 32 bits: the smallest counts set to 1, upstream's rule
  kLengthLimited,  // over 16 link rows: package-merge under a shorter limit, our rule
};

// A prefix code for the exponents of one group and its end-of-stream symbol.
struct Codebook {
  std::array<Code, 256> codes{};  // by exponent
  Code end_of_stream;             // only its leading bits are ever written, as padding
  LookupTables luts;
  CodeRule rule = CodeRule::kHuffman;

  // Stream bits of weights with these counts.
  uint64_t code_bits(const Histogram& histogram) const;
};

// Builds the codebook. The result depends on the counts alone.
// Errors: invalid_argument when all counts are 0; unsupported when an exponent of 240 or more
// occurs (it cannot be told from a link).
Result<Codebook> build_codebook(const Histogram& histogram);

// Shannon entropy in bits a symbol; 0 for no symbols.
double entropy_bits(const Histogram& histogram);

}  // namespace df11
