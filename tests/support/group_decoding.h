// Decodes a group in memory through the Decoder interface, cut into runs as a caller may.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compressor/group_encoder.h"
#include "decoder/decoder.h"
#include "format/error.h"

namespace df11::test {

// Decodes in runs of at most `blocks_per_run` blocks, each in buffers of its own that are exactly
// as large as BlockRun asks for, so that a sanitizer sees every byte read or written outside. `pad`
// fills the lookahead after the group's last byte.
//
// A last block without weights (it holds only the tail of the last code) goes into the run of the
// block before it, which alone knows where that code ends.
Result<std::vector<uint16_t>> decode_group(const GroupTensors& group, size_t blocks_per_run,
                                           uint8_t pad = 0);

// The same with a decoder that was made for the group's luts before.
Result<std::unique_ptr<GroupDecoder>> prepare_decoder(const GroupTensors& group);
Result<std::vector<uint16_t>> decode_group(const GroupTensors& group, const GroupDecoder& decoder,
                                           size_t blocks_per_run, uint8_t pad = 0);

std::vector<uint32_t> positions_of(const GroupTensors& group);

}  // namespace df11::test
