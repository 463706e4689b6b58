// The safetensors files of one directory as a single set of named tensors.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/file.h"
#include "format/safetensors.h"

namespace df11 {

struct Shard {
  std::string name;  // file name within the directory
  File file;
  SafetensorsHeader header;
};

// One tensor and where its bytes are.
struct TensorLocation {
  size_t shard;  // index into ShardSet::shards()
  TensorInfo info;
  uint64_t file_offset_bytes;  // of its first byte in the shard's file
};

class ShardSet {
 public:
  // Opens `names` in `directory`. malformed_safetensors when a header is bad or two shards hold the
  // same tensor.
  static Result<ShardSet> open(const std::filesystem::path& directory,
                               const std::vector<std::string>& names);

  const std::vector<Shard>& shards() const { return shards_; }
  // By name. Ordered, so that everything derived from it is deterministic.
  const std::map<std::string, TensorLocation>& tensors() const { return tensors_; }
  const TensorLocation* find(const std::string& name) const;

  // Fills `buffer` from `offset_bytes` within the tensor. The range must lie inside it.
  Result<void> read(const TensorLocation& tensor, uint64_t offset_bytes,
                    MutableByteSpan buffer) const;
  // The same, into `buffer`.
  Result<ByteSpan> read(const TensorLocation& tensor, uint64_t offset_bytes, size_t n_bytes,
                        FileBuffer& buffer) const;
  Result<std::vector<uint8_t>> read_all(const TensorLocation& tensor) const;

 private:
  std::vector<Shard> shards_;
  std::map<std::string, TensorLocation> tensors_;
};

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";
inline constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

// The index beside sharded weights: which file holds which tensor.
struct ShardIndex {
  std::map<std::string, std::string> weight_map;  // tensor -> file

  // malformed_index when it is no such JSON or names a file outside the directory.
  static Result<ShardIndex> parse(std::string_view json);
  // The file's text, as `transformers` writes it: with the size of all tensors as stored, and, if
  // given, the number of the model's weights, which a hub shows.
  std::string to_text(uint64_t total_size_bytes,
                      std::optional<uint64_t> total_parameters = {}) const;
  // malformed_index when index and shards do not name the same tensors in the same files.
  Result<void> check_agrees(const ShardSet& shards) const;
};

}  // namespace df11
