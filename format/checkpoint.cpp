#include "format/checkpoint.h"

#include <algorithm>
#include <set>

#include "format/df11_layout.h"
#include "format/manifest.h"
#include "format/pattern.h"

namespace df11 {

namespace {

constexpr std::string_view kPipelineIndexName = "model_index.json";

bool is_top_level(const std::string& path) {
  return path.find('/') == path.npos;
}

// Names go into JSON files: json_quote replaces what is not UTF-8.
bool is_utf8(const std::string& text) {
  const Result<Json> round_trip = parse_json(json_quote(text));
  return round_trip && round_trip->get_ref<const std::string&>() == text;
}

// What to say of a diffusers pipeline: an artifact is made of one component at a time.
std::string pipeline_message(const std::string& directory,
                             const std::vector<DirectoryEntry>& entries) {
  std::set<std::string> components;
  for (const DirectoryEntry& entry : entries) {
    const size_t slash = entry.relative_path.find('/');
    if (slash != std::string::npos && entry.relative_path.ends_with(kSafetensorsSuffix) &&
        entry.relative_path.find('/', slash + 1) == std::string::npos) {
      components.insert(entry.relative_path.substr(0, slash));
    }
  }
  if (components.empty())
    return "a diffusers pipeline without .safetensors files in its components";
  std::string list;
  for (const std::string& component : components) list += (list.empty() ? "" : ", ") + component;
  const std::string& first =
      components.contains("transformer") ? *components.find("transformer") : *components.begin();
  return "a diffusers pipeline: its weights are in " + list +
         "; compress one component at a time: df11-compress " + directory + "/" + first + " OUTPUT";
}

}  // namespace

Result<bool> is_artifact(const std::filesystem::path& directory) {
  std::error_code status_error;
  if (std::filesystem::exists(directory / kManifestName, status_error)) return true;
  const Result<std::string> text = read_text_file(directory / kConfigName, kMaxTextBytes);
  if (!text && text.error().code == ErrorCode::not_found) return false;
  if (!text) return fail(text.error());
  const Result<Json> config = parse_json(*text);
  return config && json_find(*config, kDf11ConfigKey) != nullptr;
}

bool looks_like_df11(const Json& config, const ShardSet& shards) {
  if (json_find(config, kDf11ConfigKey) != nullptr) return true;
  return std::any_of(shards.tensors().begin(), shards.tensors().end(), [](const auto& named) {
    return named.first.ends_with("." + std::string(kEncodedExponentName));
  });
}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& directory,
                                    const std::vector<std::string>& omit) {
  const auto refuse = [&](ErrorCode code, std::string message) {
    return fail(Error{code, std::move(message), directory.string(), {}, {}});
  };
  std::error_code status_error;
  if (!std::filesystem::is_directory(directory, status_error)) {
    return refuse(ErrorCode::not_found, "no such directory");
  }
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;

  DF11_ASSIGN(const std::vector<DirectoryEntry> entries, list_files(directory));
  std::vector<std::string> indexes, safetensors;
  bool is_pipeline = false;
  for (const DirectoryEntry& entry : entries) {
    const std::string& path = entry.relative_path;
    if (any_glob_match(omit, path)) {
      checkpoint.omitted_files_.push_back(path);
    } else if (!is_utf8(path)) {
      return refuse(ErrorCode::unsupported, "a file name is not UTF-8: " + path);
    } else if (is_top_level(path) && path.ends_with(kIndexSuffix)) {
      indexes.push_back(path);
    } else if (is_top_level(path) && path.ends_with(kSafetensorsSuffix)) {
      safetensors.push_back(path);
    } else if (path == kConfigName) {
      checkpoint.has_config_ = true;
      DF11_ASSIGN(checkpoint.config_text_, read_text_file(directory / path, kMaxTextBytes));
    } else {
      is_pipeline |= path == kPipelineIndexName;
      checkpoint.other_files_.push_back(entry);
    }
  }
  // Even with weights at its top level: those are other copies of what the components hold.
  if (is_pipeline) {
    return refuse(ErrorCode::unsupported, pipeline_message(directory.string(), entries));
  }

  if (checkpoint.has_config_) {
    Result<Json> config = parse_json(checkpoint.config_text_);
    if (!config) return fail(std::move(config).error().in_file((directory / kConfigName).string()));
    if (!config->is_object())
      return refuse(ErrorCode::malformed_config, "config.json is no object");
    checkpoint.config_ = std::move(*config);
  }
  if (indexes.size() > 1) {
    return refuse(ErrorCode::unsupported, "two indexes, " + indexes[0] + " and " + indexes[1] +
                                              ": leave one out with --omit");
  }
  if (safetensors.empty() && indexes.empty()) {
    return refuse(ErrorCode::unsupported, "no .safetensors file here");
  }

  if (indexes.empty()) {
    if (safetensors.size() > 1) {
      return refuse(ErrorCode::malformed_index,
                    std::to_string(safetensors.size()) + " .safetensors files (" + safetensors[0] +
                        ", " + safetensors[1] + ", ...) but no " + std::string(kIndexSuffix) +
                        ": leave out what does not belong with --omit");
    }
    DF11_ASSIGN(checkpoint.shards_, ShardSet::open(directory, safetensors));
  } else {
    checkpoint.index_name_ = indexes[0];
    const std::string index_path = (directory / indexes[0]).string();
    DF11_ASSIGN(const std::string text, read_text_file(index_path, kMaxTextBytes));
    Result<ShardIndex> index = ShardIndex::parse(text);
    if (!index) return fail(std::move(index).error().in_file(index_path));
    std::set<std::string> names;
    for (const auto& [tensor, file] : index->weight_map) names.insert(file);
    for (const std::string& name : names) {
      if (std::find(safetensors.begin(), safetensors.end(), name) == safetensors.end()) {
        return fail(Error{ErrorCode::malformed_index,
                          "it names " + name + ", which is not here",
                          index_path,
                          {},
                          {}});
      }
    }
    for (const std::string& name : safetensors) {
      if (!names.contains(name)) {
        return refuse(
            ErrorCode::malformed_index,
            name +
                " is not in the index; upstream's loader would read it: leave it out with --omit");
      }
    }
    if (names.empty()) return refuse(ErrorCode::unsupported, indexes[0] + " names no weights");
    DF11_ASSIGN(checkpoint.shards_, ShardSet::open(directory, {names.begin(), names.end()}));
    if (Result<void> agrees = index->check_agrees(checkpoint.shards_); !agrees) {
      return fail(std::move(agrees).error().in_file(index_path));
    }
  }
  if (looks_like_df11(checkpoint.config_, checkpoint.shards_)) {
    return refuse(ErrorCode::unsupported, "this is a DF11 artifact already");
  }
  return checkpoint;
}

}  // namespace df11
