// Decoding whole groups in device memory, in the order of a stream. Needs no CUDA headers; in a
// build without CUDA every call fails with `unsupported`, "built without CUDA".
//
//   PreparedGroup group = *PreparedGroup::upload(host_group, device, stream);
//   for each forward step: decode({{&group, words}}, status, stream)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "decoder/cuda/launch.h"
#include "decoder/host_group.h"
#include "format/error.h"

namespace df11::cuda {

// A group's tensors and decode-ready tables on one device. Immutable, so any number of threads and
// streams may decode it at once.
class PreparedGroup {
 public:
  PreparedGroup(PreparedGroup&&) noexcept;
  PreparedGroup& operator=(PreparedGroup&&) noexcept;
  // Frees device memory; decoding that was enqueued must have ended.
  ~PreparedGroup();

  // Copies `group` to `device` and returns when it is there. `plan`: for tests; by default the best
  // one for the group is chosen.
  // Errors: unsupported, invalid_argument for a device that does not exist, io_error of CUDA.
  static Result<PreparedGroup> upload(const HostGroup& group, int device, Stream stream = nullptr,
                                      std::optional<DecodePlan> plan = std::nullopt);

  uint64_t n_elements() const { return launch_.arguments.n_elements; }
  uint64_t device_bytes() const;  // memory it holds
  int device() const { return device_; }
  DecodePlan plan() const { return launch_.plan; }
  const LaunchGroup& launch_group() const { return launch_; }

 private:
  PreparedGroup();
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
  LaunchGroup launch_{};
  int device_ = 0;
};

// Where a group's words go: device memory for n_elements() of them, 16-byte aligned.
struct DecodeTarget {
  const PreparedGroup* group;
  uint16_t* words;
};

// Enqueues the decoding of groups of one device, in as few launches as their plans allow: one for
// up to 32 groups of a plan. Neither allocates nor synchronises.
//
// `status` is a word in device memory, set to 0 by the caller before the first call that uses it;
// StatusBits are set in it when a group's code, gaps and positions contradict each other. Then
// words may be wrong or not written; nothing outside the targets is ever written. Gaps and padding
// of the last block are not checked here: decode its end on the CPU once (first_ending_block).
// Errors: invalid_argument, io_error when a launch fails.
Result<void> decode(std::span<const DecodeTarget> targets, uint32_t* status, Stream stream);

// Why nothing can be decoded here: unsupported, "built without CUDA" or "no CUDA device".
Result<void> require_device();

}  // namespace df11::cuda
