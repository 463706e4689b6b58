// plan_tensors_only: what becomes of an artifact that does not say what its source's files were.
#include <algorithm>

#include "decoder/restore_plan.h"
#include "format/checkpoint.h"
#include "format/directory.h"
#include "format/linear_shapes.h"

namespace df11 {

namespace {

class ExportPlanner {
 public:
  ExportPlanner(const Artifact& artifact, uint64_t max_shard_bytes)
      : artifact_(artifact), max_shard_bytes_(max_shard_bytes) {}

  Result<RestorePlan> plan() {
    DF11_ASSIGN(stored_, stored_tensors(artifact_));
    DF11_ASSIGN(config_, parse_json(artifact_.config_text()));
    if (artifact_.manifest()) {
      for (const ManifestTensor& tensor : artifact_.manifest()->tensors)
        recorded_[tensor.name] = &tensor.shape;
    }
    DF11_ASSIGN(const std::vector<DirectoryEntry> entries, list_files(artifact_.directory()));
    stem_ = stem_of(entries);
    DF11_TRY(measure_groups());
    DF11_TRY(add_shards());
    DF11_TRY(add_other_files(entries));
    std::sort(plan_.files.begin(), plan_.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(plan_);
  }

 private:
  Result<void> measure_groups() {
    for (const GroupEntry& entry : artifact_.groups()) {
      DF11_ASSIGN(const Group group, artifact_.load_group(entry));
      for (size_t i = 0; i < entry.members.size(); ++i)
        member_elements_[entry.members[i]] = group.member_elements[i];
    }
    return {};
  }

  // The shape of a group's member, if anything tells it.
  std::optional<Shape> shape_of(const std::string& name, uint64_t n_elements) const {
    if (const auto recorded = recorded_.find(name); recorded != recorded_.end())
      return *recorded->second;
    // A Linear has as many rows as its bias has elements.
    constexpr std::string_view kWeight = "weight";
    const std::string bias = name.substr(0, name.size() - kWeight.size()) + "bias";
    if (const auto found = stored_.find(bias); found != stored_.end() && found->second.verbatim) {
      const Shape& shape = found->second.verbatim->info.shape;
      if (shape.size() == 1 && shape[0] != 0 && n_elements % shape[0] == 0)
        return Shape{shape[0], n_elements / shape[0]};
    }
    return linear_shape(config_, name, n_elements);
  }

  TensorInfo info_of(const std::string& name, const StoredTensor& stored) {
    if (stored.verbatim != nullptr) return stored.verbatim->info;
    const uint64_t n_elements = member_elements_.at(name);
    std::optional<Shape> shape = shape_of(name, n_elements);
    if (!shape || shape_elements(*shape) != n_elements) {
      plan_.flat_tensors.push_back(name);
      shape = Shape{n_elements};
    }
    return {name, Dtype::kBF16, std::move(*shape), 0, 0};
  }

  // Diffusers looks for another name than transformers; the artifact's own files tell.
  static std::string stem_of(const std::vector<DirectoryEntry>& entries) {
    constexpr std::string_view kDiffusers = "diffusion_pytorch_model";
    const bool diffusers =
        std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
          return is_weights(entry.relative_path) && entry.relative_path.starts_with(kDiffusers);
        });
    return diffusers ? std::string(kDiffusers) : "model";
  }

  // Shards and indexes: the new ones take their place.
  static bool is_weights(const std::string& path) {
    return path.find('/') == path.npos &&
           (path.ends_with(kSafetensorsSuffix) || path.ends_with(kIndexSuffix));
  }

  Result<void> add_shards() {
    std::vector<std::vector<TensorInfo>> shards(1);
    uint64_t shard_bytes = 0, total_bytes = 0;
    for (const auto& [name, stored] : stored_) {
      TensorInfo info = info_of(name, stored);
      const uint64_t n_bytes = *tensor_bytes(info.dtype, info.shape);
      if (!shards.back().empty() && shard_bytes + n_bytes > max_shard_bytes_) {
        shards.emplace_back();
        shard_bytes = 0;
      }
      shard_bytes += n_bytes;
      total_bytes += n_bytes;
      shards.back().push_back(std::move(info));
    }
    ShardIndex index;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(i, shards.size());
      for (const TensorInfo& info : shards[i]) index.weight_map[info.name] = name;
      DF11_TRY(add_shard(name, std::move(shards[i])));
    }
    if (shards.size() > 1) add_text(stem_ + std::string(kIndexSuffix), index.to_text(total_bytes));
    return {};
  }

  std::string shard_name(size_t i, size_t n_shards) const {
    if (n_shards == 1) return stem_ + std::string(kSafetensorsSuffix);
    const auto five_digits = [](size_t n) {
      const std::string digits = std::to_string(n);
      return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
    };
    return stem_ + "-" + five_digits(i + 1) + "-of-" + five_digits(n_shards) +
           std::string(kSafetensorsSuffix);
  }

  Result<void> add_shard(const std::string& name, std::vector<TensorInfo> tensors) {
    const SafetensorsHeader header =
        SafetensorsHeader::lay_out(std::move(tensors), {{"format", "pt"}});
    if (header.data_offset_bytes() - 8 > kMaxSafetensorsHeaderBytes) {
      return fail(Error{
          ErrorCode::limit_exceeded, "its header would exceed the format's limit", name, {}, {}});
    }
    RestoredFile file{name, header.file_bytes(), {}, {}, header.serialize(), {}};
    for (const TensorInfo& info : header.tensors())
      file.tensors.push_back({info, stored_.at(info.name)});
    plan_.files.push_back(std::move(file));
    return {};
  }

  void add_text(std::string name, std::string text) {
    const uint64_t n_bytes = text.size();
    plan_.files.push_back({std::move(name), n_bytes, {}, {}, std::move(text), {}});
  }

  Result<void> add_other_files(const std::vector<DirectoryEntry>& entries) {
    DF11_ASSIGN(std::string config, remove_df11_config(artifact_.config_text()));
    add_text(std::string(kConfigName), std::move(config));
    for (const DirectoryEntry& entry : entries) {
      const std::string& path = entry.relative_path;
      if (is_weights(path) || path == kConfigName || path == kManifestName) continue;
      plan_.files.push_back({path, entry.size_bytes, {}, path, {}, {}});
    }
    return {};
  }

  const Artifact& artifact_;
  const uint64_t max_shard_bytes_;
  std::map<std::string, StoredTensor> stored_;
  std::map<std::string, uint64_t> member_elements_;
  std::map<std::string, const Shape*> recorded_;
  Json config_;
  std::string stem_;
  RestorePlan plan_;
};

}  // namespace

Result<RestorePlan> plan_tensors_only(const Artifact& artifact, uint64_t max_shard_bytes) {
  return ExportPlanner(artifact, max_shard_bytes).plan();
}

}  // namespace df11
