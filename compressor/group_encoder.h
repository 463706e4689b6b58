// Encoding of one group in two passes over its slices, without holding the group in memory
// (spec/df11_format.md section 12).
//
//   for each slice: counts[i] = count_exponents(words of slice i)      any order
//   plan = GroupPlan::make(counts)                                     all sizes are now exact
//   GroupEncoder encoder(plan, sink)
//   for each slice: encoder.encode(i, words of slice i)                any order, any thread
//   encoder.finish()
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "compressor/codebook.h"
#include "compressor/slice_encoder.h"
#include "format/error.h"
#include "format/parallel.h"

namespace df11 {

// Exponent counts of one slice; a slice has fewer than 2^32 weights.
struct SliceCounts {
  std::array<uint32_t, 256> counts{};
  uint32_t n_elements = 0;

  static SliceCounts of(std::span<const uint16_t> words);
};

class GroupPlan {
 public:
  // Errors: those of build_codebook, and limit_exceeded for 2^31 weights or code bytes and more.
  static Result<GroupPlan> make(std::span<const SliceCounts> slices);

  const Codebook& codebook() const { return codebook_; }
  const Histogram& histogram() const { return histogram_; }
  uint64_t n_elements() const { return positions_.back().first_element; }
  uint64_t n_code_bits() const { return positions_.back().first_bit; }
  uint64_t n_code_bytes() const { return ceil_div(n_code_bits(), 8); }
  size_t n_slices() const { return positions_.size() - 1; }
  const SlicePosition& slice(size_t i) const { return positions_[i]; }
  // Bytes of the group's six tensors with `n_members` members.
  uint64_t tensor_bytes(size_t n_members) const;

 private:
  Codebook codebook_;
  Histogram histogram_{};
  std::vector<SlicePosition> positions_;  // one per slice, then the end
};

// The tensors that are written slice by slice.
enum class GroupStream { kEncodedExponent, kSignMantissa, kGaps, kOutputPositions };

// Where encoded bytes go. write() is called from several threads, never twice for one byte.
class GroupSink {
 public:
  virtual ~GroupSink() = default;
  virtual Result<void> write(GroupStream stream, uint64_t offset_bytes, ByteSpan bytes) = 0;
};

class GroupEncoder {
 public:
  GroupEncoder(const GroupPlan& plan, GroupSink& sink);

  // Scratch of one running encode(); reuse it, its buffers are large.
  struct Scratch {
    EncodedSlice slice;
    ScratchBuffer<uint8_t> sign_mantissa;
  };

  // Encodes slice `i` and writes what it alone determines.
  // Errors: source_changed when the words do not add up to the counted bits; the sink's.
  Result<void> encode(size_t i, std::span<const uint16_t> words, Scratch& scratch);

  // Writes the units that neighbouring slices share. Once, after every encode() returned.
  Result<void> finish();

 private:
  // Bytes shared by neighbouring slices, combined by OR until finish().
  using SharedUnits = std::map<uint64_t, std::vector<uint8_t>>;
  Result<void> write_sharing_ends(GroupStream stream, SharedUnits& shared, uint64_t offset_bytes,
                                  ByteSpan bytes, size_t unit_bytes, bool first_shared,
                                  bool last_shared);

  const GroupPlan& plan_;
  GroupSink& sink_;
  EncodeTable table_;
  std::mutex mutex_;
  SharedUnits shared_code_, shared_gaps_;
};

// All six tensors of a group in memory, as bytes. For tests, benchmarks and small groups.
struct GroupTensors {
  std::vector<uint8_t> luts, encoded_exponent, sign_mantissa, output_positions, gaps,
      split_positions;
};
// Encodes `members` as one group, cut into slices of at most `slice_elements`.
Result<GroupTensors> encode_group(std::span<const std::span<const uint16_t>> members,
                                  const Executor& executor, size_t slice_elements);

// split_positions (spec section 3): cumulative element counts of all members but the last, I64.
std::vector<uint8_t> split_positions_bytes(std::span<const uint64_t> member_elements);

}  // namespace df11
