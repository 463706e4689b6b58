// Checks tensors of an artifact against what they must be.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "decoder/group_reader.h"
#include "format/artifact.h"
#include "format/hash.h"
#include "format/parallel.h"
#include "format/progress.h"
#include "verify/report.h"

namespace df11 {

// What one tensor of the source is. Its bytes are those of `source`, if the source is at hand, and
// hash to `xxh3_128`, if there is a manifest.
struct ExpectedTensor {
  Dtype dtype;
  Shape shape;
  const TensorLocation* source = nullptr;
  std::optional<Xxh128> xxh3_128 = {};
};
using ExpectedTensors = std::map<std::string, ExpectedTensor>;

class TensorChecker {
 public:
  // `source` holds the locations in `expected`; null when they have none.
  TensorChecker(const Artifact& artifact, const ExpectedTensors& expected, const ShardSet* source,
                const Decoder& decoder, const Executor& executor, Progress& progress,
                Findings& findings)
      : artifact_(artifact),
        expected_(expected),
        source_(source),
        decoder_(decoder),
        executor_(executor),
        progress_(progress),
        findings_(findings) {}

  // Compares names, dtypes and sizes; reads no data. `anything_expected` false: only that no tensor
  // is stored twice.
  void check_tensor_set(bool anything_expected);

  // Reads a group's tables, positions and splits, and compares the sizes of its members: no
  // weights.
  Result<void> check_group_structure(const GroupEntry& entry);
  // Decodes one group and checks every byte of its members. Differences and corruption become
  // findings; errors: I/O, cancelled.
  Result<void> check_group(const GroupEntry& entry);
  Result<void> check_verbatim(const TensorLocation& tensor);

  uint64_t n_groups() const { return n_groups_; }
  uint64_t n_tensors() const { return n_tensors_; }
  uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  struct Buffers {
    RunBuffers run;
    FileBuffer source_bytes;
  };
  // A run of bytes of one tensor, in memory.
  struct Piece {
    const std::string* tensor;
    const ExpectedTensor* expected;  // null: nothing to compare with, a finding already
    uint64_t offset_bytes;
    ByteSpan bytes;
    std::optional<Difference> difference = {};  // from the source
  };
  // One tensor whose pieces arrive in order: hashes it, and reports its first difference.
  struct OrderedCheck {
    const std::string* tensor = nullptr;
    const ExpectedTensor* expected = nullptr;
    bool reported = false;
    Xxh128Hasher hasher = {};
  };

  const ExpectedTensor* expected(const std::string& name) const;
  // Whether the members have the sizes that are expected; otherwise adds a finding.
  bool members_fit(const Group& group, const std::string& file);
  std::vector<Piece> pieces_of_run(const Group& group, uint64_t first_element,
                                   std::span<const uint16_t> words) const;
  // Fills in piece.difference.
  Result<void> compare_with_source(Piece& piece, Buffers& buffers);
  void take_in_order(OrderedCheck& check, const Piece& piece, const std::string& file);
  void finish_tensor(OrderedCheck& check, const std::string& file);
  // Turns damage into a finding; passes everything else on.
  Result<void> absorb(Error error);

  const Artifact& artifact_;
  const ExpectedTensors& expected_;
  const ShardSet* source_;
  const Decoder& decoder_;
  const Executor& executor_;
  Progress& progress_;
  Findings& findings_;
  Pool<Buffers> buffers_;
  std::atomic<uint64_t> n_groups_{0}, n_tensors_{0}, weight_bytes_{0};
};

}  // namespace df11
