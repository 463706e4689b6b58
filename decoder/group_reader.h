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
  // Has only the runs that hold weights of member `member`, which may begin and end within a run.
  static Result<GroupReader> open_member(const Artifact& artifact, const GroupEntry& entry,
                                         size_t member, const Decoder& decoder);

  const Group& group() const { return group_; }
  size_t n_runs() const { return run_begins_.size() - 1; }
  // Index in the group of run `i`'s first weight; of one past the last run's for i = n_runs().
  uint64_t first_element(size_t i) const { return group_.positions[run_begins_[i]]; }

  // Reads and decodes run `i`; the words are in `buffers`.
  // Errors: corrupt_stream with group and file, I/O errors. Thread-safe.
  Result<std::span<const uint16_t>> decode_run(size_t i, RunBuffers& buffers) const;

 private:
  static Result<GroupReader> load(const Artifact& artifact, const GroupEntry& entry,
                                  const Decoder& decoder);
  // Cuts blocks [begin, end) into runs.
  void lay_out_runs(size_t begin, size_t end, size_t run_blocks);

  const Artifact* artifact_ = nullptr;
  Group group_;
  std::unique_ptr<GroupDecoder> decoder_;
  std::shared_ptr<BufferMemory> memory_;
  std::vector<size_t> run_begins_;  // first block of each run, then one past the last
};

}  // namespace df11
