// The CPU decoder with kernels of choice: tests compare them.
#pragma once

#include "decoder/block_kernels.h"
#include "decoder/decoder.h"

namespace df11 {

std::unique_ptr<Decoder> make_cpu_decoder(const BlockKernels& kernels);

}  // namespace df11
