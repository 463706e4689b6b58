// The decoder interface: DF11 groups to BF16 words, on whichever device.
//
// A group is decoded in runs of whole blocks. Every block carries all it takes to decode alone
// (spec/df11_format.md section 8), so runs are independent and memory stays bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "format/bytes.h"
#include "format/error.h"
#include "format/lookup_tables.h"

namespace df11 {

// Readable bytes that a run's code must have after its last byte: what follows in the stream, or
// zeros after its end.
inline constexpr size_t kCodeLookaheadBytes = 16;

// Consecutive whole blocks of one group, in memory.
struct BlockRun {
  const uint8_t* code = nullptr;           // n_code_bytes, then kCodeLookaheadBytes more
  uint64_t n_code_bytes = 0;               // 4096 a block; the group's last block may be shorter
  const uint8_t* gaps = nullptr;           // 320 bytes a block
  std::span<const uint32_t> positions;     // one per block and the next one; ascending
  const uint8_t* sign_mantissa = nullptr;  // one byte a weight, from the run's first weight on
  uint64_t first_block = 0;                // index in the group, for messages
  bool ends_group = false;                 // the run holds the group's last block
  uint32_t next_gap = 0;  // gap of the first window after the run, unless it ends the group

  size_t n_blocks() const { return positions.size() - 1; }
  uint64_t n_elements() const { return positions.back() - positions.front(); }
};

// Decodes runs of one group. Thread-safe.
class GroupDecoder {
 public:
  virtual ~GroupDecoder() = default;

  // Writes run.n_elements() BF16 words. Every gap, every position and the end of the stream are
  // checked against the codes: a group that upstream's kernel would decode otherwise does not pass.
  // Errors: corrupt_stream, with the block in the message.
  virtual Result<void> decode(const BlockRun& run, uint16_t* words) const = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::string_view name() const = 0;
  // Brings the tables of one group into decode-ready form.
  virtual Result<std::unique_ptr<GroupDecoder>> prepare(const LookupTables& tables) const = 0;
};

// The decoder that needs no GPU. Callers spread runs over threads.
std::unique_ptr<Decoder> make_cpu_decoder();

}  // namespace df11
