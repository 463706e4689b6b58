// Launching the decode kernel. Host side; no CUDA headers needed to include it.
#pragma once

#include <cstdint>
#include <span>

#include "decoder/cuda/decode_tables.h"
#include "format/error.h"

struct CUstream_st;  // what cudaStream_t points to

namespace df11::cuda {

using Stream = CUstream_st*;

// Bits of the status word; they are only ever set.
enum StatusBit : uint32_t {
  kNoCode = 1,    // a weight's code is not in the tables
  kBadCount = 2,  // a block has another number of codes than its positions say; it was not written
  kBadGap = 4,    // codes end elsewhere than the next gap says
};

// Groups, or runs of whole blocks of groups, of one launch.
inline constexpr int kMaxLaunchGroups = 32;

// Bytes that the code, and the tensors around it, need after their last one on the device.
inline constexpr uint32_t kDevicePaddingBytes = 64;

// One group, or a run of its blocks, in device memory. Everything is 16-byte aligned and followed
// by kDevicePaddingBytes. Any content of code and gaps is safe; positions must ascend from 0 to
// n_elements.
struct GroupArguments {
  const uint8_t* image;  // TableImage of `plan`
  const uint8_t* rows;   // its rows
  const uint8_t* code;   // n_code_bytes, then what follows in the stream
  const uint8_t* sign_mantissa;
  const uint8_t* gaps;        // 320 bytes a block; unless ends_group, the next block's first byte
  const uint32_t* positions;  // n_blocks + 1
  uint16_t* words;            // n_elements; nothing else is written
  uint32_t n_code_bytes, n_elements, n_blocks;
  uint32_t ends_group;  // the last block is the group's: phantom symbols may follow its weights
  uint32_t first_cta;   // set by launch()
};

// One group of a launch and what the host knows about it.
struct LaunchGroup {
  GroupArguments arguments;
  DecodePlan plan;
  uint32_t max_block_elements;  // the most weights that a block has by its positions
};

// The most weights a block of these positions has; at most 32768.
uint32_t max_block_elements(std::span<const uint32_t> positions);

// Number of CUDA devices; 0 when there is no driver.
int n_devices();
// "NVIDIA H100 80GB HBM3"
Result<std::string> device_name(int device);

// Sets up a device; called once by whoever uploads to it. Later calls cost nothing.
Result<void> prepare_device(int device);

// Decodes on the current device, which must be prepared: one launch for up to kMaxLaunchGroups
// groups of a plan, in the order given. Neither allocates nor synchronises. Sets bits in `*status`
// (device memory).
Result<void> launch(std::span<const LaunchGroup> groups, uint32_t* status, Stream stream);

}  // namespace df11::cuda
