#include "compressor/compress.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "compressor/finished_shards.h"
#include "compressor/merge_shards.h"
#include "compressor/model_card.h"
#include "compressor/plan_patterns.h"
#include "compressor/shard_job.h"
#include "compressor/source_files.h"
#include "format/hash_queue.h"
#include "format/late_sync.h"
#include "format/module_names.h"
#include "format/partial_output.h"
#include "format/version.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

// Whether both are likely to stay in the page cache while they are read three times.
bool fit_in_page_cache(const Shard& a, const Shard& b) {
  return a.file.size_bytes() + b.file.size_bytes() <= physical_memory_bytes() / 2;
}

class Run {
 public:
  Run(const Checkpoint& checkpoint, const Plan& plan, SourceFiles source_files,
      const CardSource& card_source, const CompressOptions& options, const Executor& executor,
      Progress& progress)
      : checkpoint_(checkpoint),
        plan_(plan),
        card_source_(card_source),
        options_(options),
        executor_(executor),
        progress_(progress),
        source_files_(std::move(source_files)),
        hashes_(executor, progress) {
    for (const PlannedShard& shard : plan.shards) jobs_.emplace_back(checkpoint, shard, buffers_);
  }

  // `directory` is null in a dry run.
  Result<CompressSummary> execute(const fs::path* directory) {
    directory_ = directory;
    add_source_tasks();
    DF11_TRY(run_tasks());
    if (merging()) {
      DF11_ASSIGN(jobs_, merge_shards(std::move(jobs_), options_.max_shard_bytes, stem()));
      for (size_t i = 0; i < jobs_.size(); ++i) add_task([this, i] { return write_shard(i); });
      shard_digests_.resize(jobs_.size());
      DF11_TRY(run_tasks());
    }
    DF11_TRY(written_.finish(executor_));
    for (const Shard& shard : checkpoint_.shards().shards()) DF11_TRY(shard.file.check_unchanged());
    return finish();
  }

 private:
  using Task = std::function<Result<void>()>;

  bool merging() const { return options_.max_shard_bytes != 0; }
  void add_task(Task task) { tasks_.push_back(std::move(task)); }

  Result<void> run_tasks() {
    std::atomic<size_t> next{0};  // tasks start in order, so that reads follow each other on disk
    DF11_TRY(executor_.for_each(tasks_.size(), [&](size_t) { return tasks_[next++](); }));
    tasks_.clear();
    return executor_.for_each(static_cast<size_t>(executor_.n_threads()),
                              [this](size_t) { return hashes_.work(); });
  }

  // Whatever reads the source once. A shard is written as soon as it is counted, so that its second
  // reading comes from the page cache; merged ones must wait for the sizes of all.
  void add_source_tasks() {
    const auto& shards = checkpoint_.shards().shards();
    std::set<size_t> hashed;
    uint64_t total_bytes = 0;
    const auto hash_source = [&](size_t shard) {
      if (directory_ == nullptr || !hashed.insert(shard).second) return;
      total_bytes += shards[shard].file.size_bytes();
      add_task([this, shard] { return hash(source_files_.shard_hash(shard)); });
    };
    shard_digests_.resize(jobs_.size());
    for (size_t i = 0; i < jobs_.size(); ++i) {
      // Beside the first shard that reads it, so that the two share the page cache; with the next
      // one where that has room for both.
      for (const size_t shard : jobs_[i].source_shards()) {
        hash_source(shard);
        if (shard + 1 < shards.size() && fit_in_page_cache(shards[shard], shards[shard + 1]))
          hash_source(shard + 1);
      }
      total_bytes += jobs_[i].work_bytes();
      add_task([this, i]() -> Result<void> {
        DF11_TRY(jobs_[i].count(executor_, progress_));
        return merging() ? Result<void>() : write_shard(i);
      });
    }
    for (size_t shard = 0; shard < shards.size(); ++shard) hash_source(shard);
    for (size_t i = 0; directory_ != nullptr && i < source_files_.n_copied(); ++i) {
      total_bytes += source_files_.copied_bytes(i);
      add_task([this, i] { return source_files_.copy(i, *directory_, executor_, progress_); });
    }
    progress_.total_bytes = total_bytes;
  }

  Result<void> write_shard(size_t i) {
    if (directory_ == nullptr) return {};
    if (options_.resume) {
      DF11_ASSIGN(const std::optional<Sha256> finished,
                  find_finished(jobs_[i], *directory_, executor_, progress_));
      if (finished) {
        shard_digests_[i] = *finished;
        ++n_reused_;
        return {};
      }
    }
    DF11_ASSIGN(File file, jobs_[i].write(*directory_, executor_, progress_));
    DF11_TRY(written_.add(std::move(file)));
    HashRequest request;
    request.path = *directory_ / jobs_[i].file_name();
    request.size_bytes = jobs_[i].header().file_bytes();
    request.counts = false;  // progress is in bytes of the source
    request.done = [this, i](const Sha256& digest) {
      shard_digests_[i] = digest;
      return record_finished(jobs_[i], digest, *directory_);
    };
    return hash(std::move(request));
  }

  // In pairs, as soon as there are two.
  Result<void> hash(HashRequest request) {
    hashes_.add(std::move(request));
    return hashes_.help();
  }

  // config.json, index, model card and manifest, from what the shards turned out to be.
  Result<CompressSummary> finish() {
    CompressSummary summary;
    summary.n_reused = n_reused_;
    Manifest& manifest = summary.manifest;
    DF11_TRY(describe(manifest));
    uint64_t total_size_bytes = 0, n_parameters = 0, shard_bytes = 0;
    ShardIndex index;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const ShardJob& job = jobs_[i];
      manifest.files.push_back({job.file_name(), job.header().file_bytes(), shard_digests_[i]});
      manifest.tensors.insert(manifest.tensors.end(), job.tensors().begin(), job.tensors().end());
      manifest.groups.insert(manifest.groups.end(), job.groups().begin(), job.groups().end());
      shard_bytes += job.header().file_bytes();
      total_size_bytes += job.header().data_bytes();
      for (const TensorInfo& info : job.header().tensors())
        index.weight_map[info.name] = job.file_name();
    }
    for (const ManifestGroup& group : manifest.groups) {
      summary.grouped_weight_bytes += 2 * group.n_elements;
      summary.stored_group_bytes += group.stored_bytes;
    }
    for (const ManifestTensor& tensor : manifest.tensors) {
      summary.source_weight_bytes += *tensor_bytes(tensor.dtype, tensor.shape);
      n_parameters += *shape_elements(tensor.shape);
    }
    DF11_ASSIGN(const std::string config, output_config(manifest));
    DF11_TRY(add_text_file(std::string(kConfigName), config, manifest));
    DF11_TRY(add_text_file(stem() + std::string(kIndexSuffix),
                           index.to_text(total_size_bytes, n_parameters), manifest));
    if (options_.card) {
      const CardFigures figures{summary.source_weight_bytes, shard_bytes,
                                summary.grouped_weight_bytes, summary.stored_group_bytes,
                                n_parameters};
      const std::string card =
          model_card(card_source_, checkpoint_, figures, source_files_.kept_card());
      DF11_TRY(add_text_file(std::string(kCardName), card, manifest));
    }
    add_notes(summary);

    const auto by = [](auto member) {
      return [member](const auto& a, const auto& b) { return a.*member < b.*member; };
    };
    std::sort(manifest.tensors.begin(), manifest.tensors.end(), by(&ManifestTensor::name));
    std::sort(manifest.groups.begin(), manifest.groups.end(), by(&ManifestGroup::module));
    std::sort(manifest.files.begin(), manifest.files.end(), by(&ManifestFile::path));

    for (const ManifestFile& file : manifest.source_files) {
      summary.source_bytes += file.size_bytes;
      summary.n_published += file.published.has_value();
    }
    for (const ManifestFile& file : manifest.files) summary.artifact_bytes += file.size_bytes;
    // Last: its presence means that the artifact is complete.
    const std::string manifest_text = manifest.to_text();
    summary.artifact_bytes += manifest_text.size();
    if (directory_ != nullptr)
      DF11_TRY(write_text_file(*directory_ / kManifestName, manifest_text));
    return summary;
  }

  Result<void> describe(Manifest& manifest) const {
    manifest.tool_version = kVersion;
    manifest.settings = {{"granularity", std::string(granularity_name(options_.plan))},
                         {"include", joined(options_.plan.include)},
                         {"exclude", joined(options_.plan.exclude)},
                         {"omit", joined(options_.omit)},
                         {"card", options_.card ? "yes" : "no"},
                         {"base_model", card_source_.base_model},
                         {"max_shard_bytes", std::to_string(options_.max_shard_bytes)}};
    return source_files_.describe(manifest);
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

  // "model" of "model.safetensors.index.json" or of "model.safetensors".
  std::string stem() const {
    const std::string& index = checkpoint_.index_name();
    if (!index.empty()) return index.substr(0, index.size() - kIndexSuffix.size());
    const std::string& name = checkpoint_.shards().shards().front().name;
    return name.substr(0, name.size() - kSafetensorsSuffix.size());
  }

  void add_notes(CompressSummary& summary) const {
    if (summary.manifest.groups.empty()) {
      summary.notes.emplace_back(
          "nothing to compress: no tensor could be coded, for the reasons above; all are stored as "
          "they were, with an empty pattern_dict");
    }
    if (!options_.card) return;
    if (card_source_.base_model.empty()) {
      summary.notes.emplace_back(
          "the model card names no base_model: --base-model ORG/NAME adds it");
    } else {
      summary.notes.push_back("the model card's base_model is " + card_source_.base_model +
                              " (from " + card_source_.base_model_from + ")");
    }
    if (const std::string kept = source_files_.kept_card(); !kept.empty())
      summary.notes.push_back("the source's README.md is kept as " + kept);
    summary.notes.insert(summary.notes.end(), card_source_.notes.begin(), card_source_.notes.end());
  }

  Result<void> add_text_file(std::string name, const std::string& text, Manifest& manifest) const {
    if (directory_ != nullptr) DF11_TRY(write_text_file(*directory_ / name, text));
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
  const CardSource& card_source_;
  const CompressOptions& options_;
  const Executor& executor_;
  Progress& progress_;
  const fs::path* directory_ = nullptr;
  CompressBuffers buffers_;
  SourceFiles source_files_;
  HashQueue hashes_;
  LateSync written_;
  std::vector<ShardJob> jobs_;
  std::vector<Task> tasks_;
  std::vector<Sha256> shard_digests_;
  std::atomic<uint64_t> n_reused_{0};
};

std::set<std::string> files_of(const Manifest& manifest) {
  std::set<std::string> files = {std::string(kManifestName)};
  for (const ManifestFile& file : manifest.files) files.insert(file.path);
  return files;
}

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
  const ReplaceRule may_replace = options.force ? replaces_artifact : ReplaceRule();
  if (!options.dry_run) DF11_TRY(check_output(source, output, may_replace));
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
  DF11_ASSIGN(const CardSource card_source, find_card_source(checkpoint, options.base_model));
  DF11_ASSIGN(SourceFiles source_files, SourceFiles::find(checkpoint, options.card));
  Run run(checkpoint, plan, std::move(source_files), card_source, options, executor, progress);
  if (options.dry_run) {
    DF11_ASSIGN(CompressSummary summary, run.execute(nullptr));
    summary.lint = lint_planned(checkpoint.config(), summary.manifest);
    return summary;
  }
  DF11_ASSIGN(PartialOutput partial, PartialOutput::create(output, may_replace, options.resume));
  DF11_ASSIGN(const std::set<std::string> finished, finished_files(partial.path()));
  DF11_TRY(partial.remove_others(finished));
  Result<CompressSummary> summary = run.execute(&partial.path());
  if (!summary) {
    if (summary.error().code == ErrorCode::cancelled) {
      const Result<std::set<std::string>> to_go_on_from = finished_files(partial.path());
      if (!to_go_on_from || !to_go_on_from->empty()) partial.keep();
    }
    return summary;
  }
  const std::set<std::string> files = files_of(summary->manifest);
  DF11_TRY(partial.remove_others(with_records(files)));
  DF11_ASSIGN(const Artifact artifact, Artifact::open(partial.path()));
  DF11_ASSIGN(summary->lint, lint_for_upstream(artifact));
  DF11_TRY(partial.remove_others(files));
  DF11_TRY(partial.publish());
  return summary;
}

}  // namespace df11
