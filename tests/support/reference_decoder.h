// Plain decoders, written from the description of the layout (spec/df11_format.md sections 3 to 8):
// the oracles for the fast ones. They trust nothing and throw std::runtime_error on anything odd.
#pragma once

#include <cstdint>
#include <vector>

#include "compressor/group_encoder.h"

namespace df11::test {

// Decodes from the first bit to the N-th weight, one bit at a time; gaps and positions are not
// used.
std::vector<uint16_t> reference_decode(const GroupTensors& group);

// The same, and checks all else: throws where sections 3 to 8 call a group corrupt, and nowhere
// else. split_positions and limits on size are not looked at.
std::vector<uint16_t> reference_decode_strictly(const GroupTensors& group);

// Decodes the way upstream's kernel does: each window alone, from its gap on; a block's weights
// begin at its position. Wrong gaps or positions show as wrong words.
std::vector<uint16_t> reference_decode_by_windows(const GroupTensors& group);

}  // namespace df11::test
