// Valid groups that no encoder writes: the layout (spec/df11_format.md) allows more than upstream's
// codebooks and streams. Nothing of the compressor takes part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compressor/group_encoder.h"
#include "format/df11_layout.h"

namespace df11::test {

struct UnusualGroup {
  GroupTensors tensors;
  std::vector<std::vector<uint16_t>> members;  // some of them empty
  std::vector<uint16_t> words;                 // all members'
  size_t n_codes = 0;
  size_t longest_code_bits = 0;
  size_t n_link_rows = 0;
  bool is_complete = false;               // its codes leave nothing of the code space
  bool has_tail_block = false;            // the last block holds only the tail of the last code
  bool last_position_is_missing = false;  // section 10.1
};

// A random prefix code of 1 to 240 codes of 1 to 32 bits, complete or not, not canonical, with up
// to 16 link rows in any order and anything in slots that no code reaches; random padding; a few
// words to a few blocks, with ends on and around every border. The same for the same seed.
// `most_bits`: of the stream, roughly; four blocks by default.
UnusualGroup unusual_group(uint64_t seed, uint64_t most_bits = 4 * kBlockBits);

}  // namespace df11::test
