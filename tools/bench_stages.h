// The stages of the codec on the CPU, in memory, beside what the machine can copy and read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compressor/group_encoder.h"
#include "decoder/host_group.h"
#include "format/parallel.h"

namespace df11::bench {

struct Stage {
  std::string name;
  std::function<void(const Executor&)> run;  // over all the weights
};

// One group of weights in all the forms the stages start from.
class CpuStages {
 public:
  explicit CpuStages(size_t n_elements);
  CpuStages(const CpuStages&) = delete;
  CpuStages& operator=(const CpuStages&) = delete;

  // Once, before the others. Errors: corrupt_stream when the decoder does not return the weights.
  Result<void> prepare();

  // They refer to this object. Copy and read, the yardsticks, are the first two.
  std::vector<Stage> stages();

  std::span<const uint16_t> words() const { return words_; }
  double entropy() const { return entropy_bits(plan_.histogram()); }
  double bits_a_weight() const;

 private:
  Result<void> check();
  Stage over_slices(std::string name, std::function<void(size_t)> work) const;
  ByteSpan slice_bytes(size_t i) const;
  void read(size_t i);
  void encode(size_t i);
  size_t n_runs() const { return run_begins_.size() - 1; }
  BlockRun run(size_t i) const { return group_.run(run_begins_[i], run_begins_[i + 1]); }
  Result<void> decode_run(size_t i, ScratchBuffer<uint16_t>& words);

  std::vector<uint16_t> words_, copy_target_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<GroupDecoder> group_decoder_;
  std::vector<std::span<const uint16_t>> slices_;
  GroupPlan plan_;
  std::optional<EncodeTable> table_;
  HostGroup group_;
  std::vector<size_t> run_begins_;
  Pool<GroupEncoder::Scratch> encoders_;
  Pool<ScratchBuffer<uint16_t>> runs_;
  std::atomic<uint64_t> sum_read_{0};  // keeps the compiler from leaving out the reading
};

}  // namespace df11::bench
