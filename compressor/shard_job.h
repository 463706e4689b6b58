// Counting and writing of one output shard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compressor/group_encoder.h"
#include "compressor/plan.h"
#include "compressor/plan_patterns.h"
#include "format/file.h"
#include "format/hash.h"
#include "format/manifest.h"
#include "format/parallel.h"
#include "format/progress.h"

namespace df11 {

// Weights a slice: its words, halves and codes stay within a core's L2 cache.
inline constexpr size_t kSliceElements = size_t{512} << 10;

// Large buffers, shared by all shards of a run.
struct CompressBuffers {
  Pool<FileBuffer> chunks;
  Pool<GroupEncoder::Scratch> encoders;
};

class ShardJob {
 public:
  ShardJob(const Checkpoint& checkpoint, const PlannedShard& plan, CompressBuffers& buffers)
      : checkpoint_(&checkpoint), plan_(&plan), buffers_(&buffers), file_name_(plan.file_name) {}

  // Pass 1: reads the groups' weights, hashes them and builds the codebooks. Groups that cannot or
  // need not be coded become verbatim. Afterwards header() is exact.
  Result<void> count(const Executor& executor, Progress& progress);

  // Between the passes: one job for each group and each verbatim tensor of this one, and the
  // joining of several into one file. lay_out() makes header() exact again.
  std::vector<ShardJob> split() &&;
  void absorb(ShardJob&& other);
  Result<void> lay_out(std::string file_name, const SafetensorsMetadata& metadata);
  // Where the first tensor lies in the source: shard and offset.
  std::pair<size_t, uint64_t> source_position() const;

  // Instead of pass 2, when the shard is there already. hash_verbatim() reads the tensors that pass
  // 1 has not read.
  Result<void> hash_verbatim(const Executor& executor, Progress& progress);
  void skip_pass_2(Progress& progress);
  // Stands for all that the shard's bytes depend on: program version, header, names and hashes of
  // the tensors in order. After write() or hash_verbatim().
  Sha256 made_from() const;

  // Pass 2: writes the shard to `directory`; it is not synced yet. source_changed when a shard that
  // it was made from is no longer what it was when it was opened.
  Result<File> write(const std::filesystem::path& directory, const Executor& executor,
                     Progress& progress);

  const SafetensorsHeader& header() const { return header_; }
  const std::string& file_name() const { return file_name_; }
  // Indices of the source's shards that the passes read. This and work_bytes(): before split().
  std::set<size_t> source_shards() const;
  // Source bytes the two passes read, as reported to Progress.
  uint64_t work_bytes() const;

  // What became of each tensor and group; hashes are zero until the passes have filled them in.
  const std::vector<ManifestTensor>& tensors() const { return tensors_; }
  const std::vector<ManifestGroup>& groups() const { return groups_; }
  // The groups with their members in order, for the pattern_dict.
  const std::vector<CodedModule>& coded_modules() const { return coded_modules_; }

 private:
  // A run of whole elements of one tensor.
  struct Slice {
    const TensorLocation* tensor;
    uint64_t offset_bytes;
    size_t size_bytes;
  };
  // What pass 1 found in one member of a group.
  struct CountedMember {
    const TensorLocation* tensor;
    std::vector<Slice> slices;
    std::vector<SliceCounts> counts;  // of each slice
    Xxh128 hash;
  };
  // A group that will be coded; lives until it is written.
  struct CodedGroup {
    PlannedGroup plan;  // without the members that no codebook can code
    std::vector<Slice> slices;
    size_t manifest_index = 0;  // of its first member, into tensors_
    std::optional<GroupPlan> code = {};
  };
  struct VerbatimCopy {
    const TensorLocation* tensor;
    size_t manifest_index;  // into tensors_
    bool hashed;            // pass 1 has hashed it
  };

  static std::vector<Slice> slices_of(const TensorLocation& tensor);
  Result<ByteSpan> read(const Slice& slice, FileBuffer& buffer) const;
  Result<std::vector<CountedMember>> count_members(const PlannedGroup& group,
                                                   const Executor& executor, Progress& progress);
  Result<void> count_group(const PlannedGroup& group, const Executor& executor, Progress& progress);
  // `hash`: of the tensor, if pass 1 has read it.
  void keep_verbatim(const TensorLocation& tensor, const std::optional<Xxh128>& hash,
                     const std::string& reason);
  Result<void> check_unchanged() const;
  Result<void> write_group(const CodedGroup& group, const File& file, const Executor& executor,
                           Progress& progress);
  // Reads the tensor, hashes it unless that is done, and writes it to `file`, which may be null.
  Result<void> read_verbatim(VerbatimCopy& copy, const File* file, const Executor& executor,
                             Progress& progress);
  ManifestTensor manifest_tensor(const TensorLocation& tensor) const;
  uint64_t offset_of(const std::string& tensor) const;

  const Checkpoint* checkpoint_;
  const PlannedShard* plan_;
  CompressBuffers* buffers_;
  std::string file_name_;
  std::vector<CodedGroup> coded_;  // until they are written; groups_ and coded_modules_ go with it
  std::vector<VerbatimCopy> verbatim_;
  SafetensorsHeader header_;
  std::vector<ManifestTensor> tensors_;
  std::vector<ManifestGroup> groups_;
  std::vector<CodedModule> coded_modules_;
};

}  // namespace df11
