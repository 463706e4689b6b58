#include "compressor/compress.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>

#include "compressor/plan_patterns.h"
#include "compressor/shard_job.h"
#include "format/module_names.h"
#include "format/partial_output.h"
#include "format/version.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

ByteSpan as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class Run {
 public:
  Run(const Checkpoint& checkpoint, const Plan& plan, const CompressOptions& options,
      const Executor& executor, Progress& progress)
      : checkpoint_(checkpoint),
        plan_(plan),
        options_(options),
        executor_(executor),
        progress_(progress) {
    for (const PlannedShard& shard : plan.shards) jobs_.emplace_back(checkpoint, shard, buffers_);
    shard_digests_.resize(jobs_.size());
    source_digests_.resize(checkpoint.shards().shards().size());
    file_digests_.resize(checkpoint.other_files().size());
  }

  // `directory` is null in a dry run.
  Result<CompressSummary> execute(const fs::path* directory) {
    add_tasks(directory);
    std::atomic<size_t> next{0};  // tasks start in order, so that reads follow each other on disk
    DF11_TRY(executor_.for_each(tasks_.size(), [&](size_t) { return tasks_[next++](); }));
    for (const Shard& shard : checkpoint_.shards().shards()) DF11_TRY(shard.file.check_unchanged());
    return finish(directory);
  }

 private:
  void add_tasks(const fs::path* directory) {
    std::set<size_t> hashed;
    uint64_t total_bytes = 0;
    const auto hash_source = [&](size_t shard) {
      if (directory == nullptr || !hashed.insert(shard).second) return;
      total_bytes += checkpoint_.shards().shards()[shard].file.size_bytes();
      tasks_.push_back([this, shard]() -> Result<void> {
        const File& file = checkpoint_.shards().shards()[shard].file;
        DF11_ASSIGN(source_digests_[shard],
                    sha256_of_file(file, file.size_bytes(), executor_, progress_));
        return {};
      });
    };
    for (size_t i = 0; i < jobs_.size(); ++i) {
      // Beside the first shard that reads it, so that the two share the page cache.
      for (const size_t shard : jobs_[i].source_shards()) hash_source(shard);
      total_bytes += jobs_[i].work_bytes();
      tasks_.push_back([this, i, directory]() -> Result<void> {
        DF11_TRY(jobs_[i].count(executor_, progress_));
        if (directory == nullptr) return {};
        DF11_ASSIGN(shard_digests_[i], jobs_[i].write(*directory, executor_, progress_));
        return {};
      });
    }
    for (size_t shard = 0; shard < source_digests_.size(); ++shard) hash_source(shard);
    for (size_t i = 0; directory != nullptr && i < file_digests_.size(); ++i) {
      total_bytes += checkpoint_.other_files()[i].size_bytes;
      tasks_.push_back([this, i, directory] { return copy_file(i, *directory); });
    }
    progress_.total_bytes = total_bytes;
  }

  Result<void> copy_file(size_t i, const fs::path& directory) {
    const DirectoryEntry& entry = checkpoint_.other_files()[i];
    const fs::path target = directory / entry.relative_path;
    DF11_ASSIGN(const File from, File::open_read(checkpoint_.directory() / entry.relative_path));
    if (from.size_bytes() != entry.size_bytes) {
      return fail(Error{ErrorCode::source_changed,
                        "the file changed while it was being read",
                        from.path(),
                        {},
                        {}});
    }
    DF11_TRY(make_directories(target.parent_path()));
    DF11_ASSIGN(const File to, File::create(target));
    Sha256Hasher hasher;
    const auto copy = [&](ByteSpan chunk, uint64_t offset) -> Result<void> {
      hasher.update(chunk);
      DF11_TRY(to.write_exact(chunk, offset));
      progress_.add(chunk.size());
      return executor_.check_cancelled();
    };
    DF11_TRY(from.for_each_chunk(0, entry.size_bytes, copy));
    DF11_TRY(from.check_unchanged());
    file_digests_[i] = hasher.digest();
    return to.sync();
  }

  // config.json, index and manifest, from what the shards turned out to be.
  Result<CompressSummary> finish(const fs::path* directory) {
    CompressSummary summary;
    Manifest& manifest = summary.manifest;
    DF11_TRY(describe_source(manifest));
    uint64_t total_size_bytes = 0;
    ShardIndex index;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const ShardJob& job = jobs_[i];
      manifest.files.push_back({job.file_name(), job.header().file_bytes(), shard_digests_[i]});
      manifest.tensors.insert(manifest.tensors.end(), job.tensors().begin(), job.tensors().end());
      manifest.groups.insert(manifest.groups.end(), job.groups().begin(), job.groups().end());
      summary.grouped_weight_bytes += job.grouped_bytes();
      summary.stored_group_bytes += job.stored_group_bytes();
      total_size_bytes += job.header().data_bytes();
      for (const TensorInfo& info : job.header().tensors())
        index.weight_map[info.name] = job.file_name();
    }
    for (size_t i = 0; i < file_digests_.size(); ++i) {
      const DirectoryEntry& entry = checkpoint_.other_files()[i];
      manifest.files.push_back({entry.relative_path, entry.size_bytes, file_digests_[i]});
    }
    DF11_ASSIGN(const std::string config, output_config(manifest));
    DF11_TRY(add_text_file(directory, std::string(kConfigName), config, manifest));
    DF11_TRY(
        add_text_file(directory, output_index_name(), index.to_text(total_size_bytes), manifest));

    const auto by = [](auto member) {
      return [member](const auto& a, const auto& b) { return a.*member < b.*member; };
    };
    std::sort(manifest.tensors.begin(), manifest.tensors.end(), by(&ManifestTensor::name));
    std::sort(manifest.groups.begin(), manifest.groups.end(), by(&ManifestGroup::module));
    std::sort(manifest.files.begin(), manifest.files.end(), by(&ManifestFile::path));

    for (const ManifestTensor& tensor : manifest.tensors) {
      summary.source_weight_bytes += *tensor_bytes(tensor.dtype, tensor.shape);
    }
    for (const ManifestFile& file : manifest.source_files) summary.source_bytes += file.size_bytes;
    for (const ManifestFile& file : manifest.files) summary.artifact_bytes += file.size_bytes;
    // Last: its presence means that the artifact is complete.
    const std::string manifest_text = manifest.to_text();
    summary.artifact_bytes += manifest_text.size();
    if (directory != nullptr) DF11_TRY(write_text_file(*directory / kManifestName, manifest_text));
    return summary;
  }

  // Source files and what restores them: shard headers, index and config; other files are copied.
  Result<void> describe_source(Manifest& manifest) {
    manifest.tool_version = kVersion;
    manifest.settings = {{"granularity", std::string(granularity_name(options_.plan))},
                         {"include", joined(options_.plan.include)},
                         {"exclude", joined(options_.plan.exclude)},
                         {"omit", joined(options_.omit)}};
    manifest.omitted_files = checkpoint_.omitted_files();
    for (size_t i = 0; i < source_digests_.size(); ++i) {
      const Shard& shard = checkpoint_.shards().shards()[i];
      manifest.source_files.push_back({shard.name, shard.file.size_bytes(), source_digests_[i]});
      std::string& head = manifest.restore[shard.name];
      head.resize(shard.header.data_offset_bytes());
      DF11_TRY(shard.file.read_exact({reinterpret_cast<uint8_t*>(head.data()), head.size()}, 0));
    }
    const auto add_text = [&](const std::string& name, std::string text) {
      manifest.source_files.push_back({name, text.size(), sha256(as_bytes(text))});
      manifest.restore[name] = std::move(text);
    };
    if (!checkpoint_.index_name().empty()) {
      DF11_ASSIGN(
          std::string text,
          read_text_file(checkpoint_.directory() / checkpoint_.index_name(), kMaxTextBytes));
      add_text(checkpoint_.index_name(), std::move(text));
    }
    if (checkpoint_.has_config()) add_text(std::string(kConfigName), checkpoint_.config_text());
    for (size_t i = 0; i < file_digests_.size(); ++i) {
      const DirectoryEntry& entry = checkpoint_.other_files()[i];
      manifest.source_files.push_back({entry.relative_path, entry.size_bytes, file_digests_[i]});
    }
    std::sort(manifest.source_files.begin(), manifest.source_files.end(),
              [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
    return {};
  }

  Result<std::string> output_config(const Manifest& manifest) const {
    std::vector<CodedModule> groups;
    for (const ShardJob& job : jobs_)
      groups.insert(groups.end(), job.coded_modules().begin(), job.coded_modules().end());
    std::vector<std::string> others;
    for (const ManifestTensor& tensor : manifest.tensors) {
      if (tensor.group.empty() && tensor.name.ends_with(kWeightSuffix))
        others.emplace_back(module_of(tensor.name));
    }
    DF11_ASSIGN(PatternDict patterns, patterns_for(groups, others, plan_.patterns));
    const Df11Config entry{std::string(kDf11LayoutVersion), std::move(patterns)};
    return splice_df11_config(checkpoint_.config_text(), entry.to_json_text());
  }

  std::string output_index_name() const {
    if (!checkpoint_.index_name().empty()) return checkpoint_.index_name();
    const std::string& name = checkpoint_.shards().shards().front().name;
    return name.substr(0, name.size() - kSafetensorsSuffix.size()) + std::string(kIndexSuffix);
  }

  static Result<void> add_text_file(const fs::path* directory, std::string name,
                                    const std::string& text, Manifest& manifest) {
    if (directory != nullptr) DF11_TRY(write_text_file(*directory / name, text));
    manifest.files.push_back({std::move(name), text.size(), sha256(as_bytes(text))});
    return {};
  }

  static std::string joined(const std::vector<std::string>& patterns) {
    std::string text;
    for (const std::string& pattern : patterns) text += (text.empty() ? "" : " ") + pattern;
    return text;
  }

  const Checkpoint& checkpoint_;
  const Plan& plan_;
  const CompressOptions& options_;
  const Executor& executor_;
  Progress& progress_;
  CompressBuffers buffers_;
  std::vector<ShardJob> jobs_;
  std::vector<std::function<Result<void>()>> tasks_;
  std::vector<Sha256> shard_digests_, source_digests_, file_digests_;
};

// What --force may replace.
Result<void> replaces_artifact(const fs::path& output) {
  DF11_ASSIGN(const bool artifact, is_artifact(output));
  if (artifact) return {};
  return fail(Error{ErrorCode::already_exists,
                    "--force replaces DF11 artifacts only, and this is none",
                    output.string(),
                    {},
                    {}});
}

}  // namespace

Result<CompressSummary> compress(const fs::path& source, const fs::path& output,
                                 const CompressOptions& options, const Executor& executor,
                                 Progress& progress) {
  if (!options.dry_run) DF11_TRY(check_output(source, output, options.force, replaces_artifact));
  DF11_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(source, options.omit));
  for (const DirectoryEntry& entry : checkpoint.other_files()) {
    if (entry.relative_path == kManifestName) {
      return fail(Error{ErrorCode::unsupported,
                        "the source has a file of the manifest's name: leave it out with --omit",
                        (source / kManifestName).string(),
                        {},
                        {}});
    }
  }
  DF11_ASSIGN(const Plan plan, make_plan(checkpoint, options.plan));
  if (options.dry_run) {
    DF11_ASSIGN(CompressSummary summary,
                Run(checkpoint, plan, options, executor, progress).execute(nullptr));
    summary.lint = lint_planned(checkpoint.config(), summary.manifest);
    return summary;
  }
  DF11_ASSIGN(PartialOutput partial, PartialOutput::create(output, options.force));
  DF11_ASSIGN(CompressSummary summary,
              Run(checkpoint, plan, options, executor, progress).execute(&partial.path()));
  DF11_ASSIGN(const Artifact artifact, Artifact::open(partial.path()));
  DF11_ASSIGN(summary.lint, lint_for_upstream(artifact));
  DF11_TRY(partial.publish());
  return summary;
}

}  // namespace df11
