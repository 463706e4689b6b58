// Counting exponents: the first pass of compression.
#pragma once

#include <cstdint>
#include <span>

#include "compressor/codebook.h"

namespace df11 {

// Adds the exponents of `words` to `histogram`.
void count_exponents(std::span<const uint16_t> words, Histogram& histogram);

}  // namespace df11
