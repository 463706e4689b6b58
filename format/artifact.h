// A DF11 directory, ours or anyone's: groups, verbatim tensors, config entry, manifest if any.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "format/df11_config.h"
#include "format/lookup_tables.h"
#include "format/manifest.h"
#include "format/shard_set.h"

namespace df11 {

// One group as its headers declare it; contents are read by load_group.
struct GroupEntry {
  std::string module;
  std::vector<std::string> members;  // tensor names in order, from pattern_dict
  const TensorLocation* luts;
  const TensorLocation* encoded_exponent;
  const TensorLocation* sign_mantissa;
  const TensorLocation* output_positions;
  const TensorLocation* gaps;
  const TensorLocation* split_positions;

  uint64_t n_elements() const { return sign_mantissa->info.size_bytes(); }
  uint64_t n_code_bytes() const { return encoded_exponent->info.size_bytes(); }
  uint64_t stored_bytes() const;
};

// A group whose small tensors are in memory and have been checked.
struct Group {
  const GroupEntry* entry;
  LookupTables tables;
  std::vector<uint32_t> positions;        // n_blocks + 1, ascending, from 0 to n_elements
  std::vector<uint64_t> member_elements;  // one per member; they add up to n_elements

  size_t n_blocks() const { return positions.size() - 1; }
  // Index in the group of member `member`'s first weight.
  uint64_t first_element(size_t member) const;
};

class Artifact {
 public:
  // Opens `directory` as upstream's loader does: every .safetensors file at its top level counts.
  // Errors: not_found, malformed_*, unsupported when it holds no DF11 config entry.
  static Result<Artifact> open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  const ShardSet& shards() const { return shards_; }
  const Df11Config& config() const { return config_; }
  const std::string& config_text() const { return config_text_; }
  const std::vector<GroupEntry>& groups() const { return groups_; }  // by module name
  // Tensors stored as they are, by name.
  const std::vector<const TensorLocation*>& verbatim() const { return verbatim_; }
  // malformed_manifest when there is a manifest that cannot be trusted; nothing when there is none.
  const std::optional<Manifest>& manifest() const { return manifest_; }

  // Reads and checks a group's tables, positions and split positions. Memory: 4 bytes a block.
  // Errors: malformed_group, I/O errors.
  Result<Group> load_group(const GroupEntry& entry) const;

 private:
  Result<void> sort_tensors();

  std::filesystem::path directory_;
  ShardSet shards_;
  Df11Config config_;
  std::string config_text_;
  std::vector<GroupEntry> groups_;
  std::vector<const TensorLocation*> verbatim_;
  std::optional<Manifest> manifest_;
};

}  // namespace df11
