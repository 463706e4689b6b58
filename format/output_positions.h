// output_positions of a group: where each block's weights begin (spec/df11_format.md section 5.4).
#pragma once

#include <cstdint>
#include <vector>

#include "format/bytes.h"
#include "format/error.h"

namespace df11 {

// Position of every block, then `n_elements`: ascending from 0, no block empty but the last. The
// position that upstream leaves out in one case (section 10) is put back.
// Errors: malformed_group.
Result<std::vector<uint32_t>> parse_output_positions(ByteSpan bytes, uint64_t n_elements,
                                                     uint64_t n_code_bytes);

}  // namespace df11
