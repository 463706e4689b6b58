// Named exponent counts: codebooks depend on nothing else, so thousands of them are cheap to test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compressor/codebook.h"

namespace df11::test {

struct NamedHistogram {
  std::string name;
  Histogram counts;
};

// Deterministic edge cases, then `n_random` seeded ones of many shapes: few and many exponents,
// equal counts (ties), exponential, geometric (codes over 32 bits), weight-like.
std::vector<NamedHistogram> named_histograms(size_t n_random);

}  // namespace df11::test
