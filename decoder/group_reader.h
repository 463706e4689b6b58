// Decoding a group of an artifact from disk, run by run, in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "decoder/decoder.h"
#include "format/artifact.h"

namespace df11 {

// Buffers of one run; reuse them.
struct RunBuffers {
  DecoderBuffer<uint8_t> code, gaps, sign_mantissa;
  DecoderBuffer<uint16_t> words;
};

class GroupReader {
 public:
  // `artifact` must outlive the reader.
  static Result<GroupReader> open(const Artifact& artifact, const GroupEntry& entry,
                                  const Decoder& decoder);

  const Group& group() const { return group_; }
  size_t n_runs() const { return run_begins_.size() - 1; }
  // Index in the group of run `i`'s first weight; of one past the last weight for i = n_runs().
  uint64_t first_element(size_t i) const { return group_.positions[run_begins_[i]]; }

  // Reads and decodes run `i`; the words are in `buffers`.
  // Errors: corrupt_stream with group and file, I/O errors. Thread-safe.
  Result<std::span<const uint16_t>> decode_run(size_t i, RunBuffers& buffers) const;

 private:
  const Artifact* artifact_ = nullptr;
  Group group_;
  std::unique_ptr<GroupDecoder> decoder_;
  std::shared_ptr<BufferMemory> memory_;
  std::vector<size_t> run_begins_;  // first block of each run, then the number of blocks
};

}  // namespace df11
