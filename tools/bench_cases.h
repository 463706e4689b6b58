// What the GPU measurements decode.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "format/parallel.h"

namespace df11::bench {

struct CudaCase {
  std::string name;
  std::vector<size_t> elements;  // by group; several groups are decoded in one call
  // Weights of group `i`.
  std::function<std::vector<uint16_t>(size_t i, const Executor& executor)> make;

  uint64_t n_elements() const {
    uint64_t n = 0;
    for (const size_t group : elements) n += group;
    return n;
  }
};

// Sizes from 1 M to 500 M weights, exponent entropies from 0 to 6 bits, codes of 32 bits, one
// layer.
std::vector<CudaCase> cuda_cases();

}  // namespace df11::bench
