// A Hugging Face checkpoint directory: weights, their index, config.json and everything else.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "format/directory.h"
#include "format/file.h"
#include "format/json.h"
#include "format/shard_set.h"

namespace df11 {

inline constexpr std::string_view kConfigName = "config.json";
inline constexpr std::string_view kDf11ConfigKey = "dfloat11_config";

// Text files larger than this are refused; the largest published index has a few MB.
inline constexpr uint64_t kMaxTextBytes = uint64_t{128} << 20;

class Checkpoint {
 public:
  // Opens and validates `directory`; files that match a glob of `omit` are treated as absent.
  //
  // Weights are the files that the one *.safetensors.index.json names, or else the only
  // .safetensors file. Any other .safetensors file at the top level is an error: upstream's loader
  // would read it.
  // Errors: not_found, malformed_*, unsupported (no weights, already DF11, the root of a diffusers
  // pipeline, whose components are checkpoints of their own).
  static Result<Checkpoint> open(const std::filesystem::path& directory,
                                 const std::vector<std::string>& omit = {});

  const std::filesystem::path& directory() const { return directory_; }
  const ShardSet& shards() const { return shards_; }
  // Name of the index file; empty when the weights are one file without an index.
  const std::string& index_name() const { return index_name_; }
  bool has_config() const { return has_config_; }
  // Text of config.json; empty when there is none.
  const std::string& config_text() const { return config_text_; }
  // Parsed config.json; an empty object when there is none.
  const Json& config() const { return config_; }
  // Every file but the weights, the index and config.json, by path.
  const std::vector<DirectoryEntry>& other_files() const { return other_files_; }
  const std::vector<std::string>& omitted_files() const { return omitted_files_; }

 private:
  std::filesystem::path directory_;
  ShardSet shards_;
  std::string index_name_;
  bool has_config_ = false;
  std::string config_text_;
  Json config_ = Json::object();
  std::vector<DirectoryEntry> other_files_;
  std::vector<std::string> omitted_files_;
};

// True when `directory` has a manifest of ours, or a config.json with DF11's entry.
// Errors: I/O errors.
Result<bool> is_artifact(const std::filesystem::path& directory);

// True when the tensors or config.json are those of a DF11 artifact.
bool looks_like_df11(const Json& config, const ShardSet& shards);

}  // namespace df11
