// Kernels of the GPU measurements.
#pragma once

#include <cstdint>
#include <span>

#include "decoder/cuda/launch.h"
#include "format/error.h"

namespace df11::bench {

// Memory of one group: what a decoder reads and writes.
struct StreamGroup {
  const uint8_t* code;
  const uint8_t* sign_mantissa;
  uint16_t* words;
  uint32_t n_code_bytes, n_elements;
};

// The floor: reads code and sign_mantissa, writes as many words, computes nothing. `align`: each
// thread block's words begin at a multiple of 512 bytes.
Result<void> launch_stream(std::span<const StreamGroup> groups, bool align, cuda::Stream stream);

// Adds the number of words that differ to `*n_different` (device memory).
Result<void> launch_compare(const uint16_t* a, const uint16_t* b, uint64_t n,
                            unsigned long long* n_different, cuda::Stream stream);

}  // namespace df11::bench
