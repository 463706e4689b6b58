// A whole group in host memory, checked as far as its structure goes: what is uploaded to a device,
// or decoded in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/decoder.h"
#include "format/artifact.h"
#include "format/parallel.h"

namespace df11 {

// The tensors of a group as bytes (spec/df11_format.md section 3). Members are not needed to
// decode.
struct GroupBytes {
  ByteSpan luts, encoded_exponent, sign_mantissa, gaps, output_positions;
};

class HostGroup {
 public:
  // Copies the tensors. Checks sizes, tables, that positions ascend from 0 to N, and the first gap.
  // Errors: malformed_group; corrupt_stream for the gap.
  static Result<HostGroup> make(const GroupBytes& tensors);
  // Reads a group of an artifact. Errors: those of make(), I/O errors.
  static Result<HostGroup> load(const Artifact& artifact, const GroupEntry& entry);

  const LookupTables& tables() const { return tables_; }
  const std::vector<uint32_t>& positions() const { return positions_; }
  ByteSpan code() const { return {code_.data(), code_.size() - kCodeLookaheadBytes}; }
  ByteSpan sign_mantissa() const { return sign_mantissa_; }
  ByteSpan gaps() const { return gaps_; }
  size_t n_blocks() const { return positions_.size() - 1; }
  uint64_t n_elements() const { return sign_mantissa_.size(); }

  // Blocks [begin, end). A last block without weights must be in the run of the one before it.
  BlockRun run(size_t begin, size_t end) const;
  // First blocks of runs of about `run_blocks` blocks, then the number of blocks.
  std::vector<size_t> run_begins(size_t run_blocks) const;

  // Decodes all n_elements() words.
  Result<void> decode(const Decoder& decoder, const Executor& executor, uint16_t* words) const;

 private:
  Result<void> check() const;

  LookupTables tables_;
  std::vector<uint8_t> code_;  // and kCodeLookaheadBytes zeros
  std::vector<uint8_t> sign_mantissa_, gaps_;
  std::vector<uint32_t> positions_;
};

// The first of a run's blocks with which its group ends: the last one, or the last two if the last
// one has no weights; run.n_blocks() if the run does not end the group. Their gaps and end follow
// rules of their own (spec section 5.3), which only the CPU decoder checks.
size_t first_ending_block(const BlockRun& run);

// Blocks [begin, run.n_blocks()) of a run.
BlockRun run_tail(const BlockRun& run, size_t begin);

}  // namespace df11
