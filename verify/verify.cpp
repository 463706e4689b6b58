#include "verify/verify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "format/artifact.h"
#include "format/checkpoint.h"
#include "format/hash_queue.h"
#include "format/pattern.h"
#include "verify/file_check.h"
#include "verify/manifest_check.h"
#include "verify/source_hash.h"
#include "verify/tensor_check.h"

namespace df11 {

namespace {

// The source decides what must be there; a manifest adds its hashes, or decides alone.
ExpectedTensors expected_tensors(const Checkpoint* source, const Manifest* manifest) {
  ExpectedTensors expected;
  if (source != nullptr) {
    for (const auto& [name, location] : source->shards().tensors()) {
      expected[name] = {location.info.dtype, location.info.shape, &location, {}};
    }
  }
  for (const ManifestTensor& tensor :
       manifest != nullptr ? manifest->tensors : std::vector<ManifestTensor>{}) {
    if (source == nullptr) {
      expected[tensor.name] = {tensor.dtype, tensor.shape, nullptr, tensor.xxh3_128};
    } else if (const auto found = expected.find(tensor.name); found != expected.end()) {
      found->second.xxh3_128 = tensor.xxh3_128;
    }
  }
  return expected;
}

// Seconds of each phase of a run, into its report.
class PhaseClock {
 public:
  explicit PhaseClock(VerifyReport& report) : report_(report) {}
  // Ends the phase that began with the clock, or when the last one ended.
  void end(std::string phase) {
    const auto now = std::chrono::steady_clock::now();
    report_.phases.push_back(
        {std::move(phase), std::chrono::duration<double>(now - begin_).count()});
    begin_ = now;
  }

 private:
  VerifyReport& report_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::vector<SkippedCheck> skipped_checks(const VerifyOptions& options, bool has_manifest) {
  std::vector<SkippedCheck> skipped;
  if (options.level == VerifyLevel::kFull) return skipped;
  const std::string why = "level structure";
  skipped.push_back({"weights: no tensor was decoded, compared or hashed", why});
  skipped.push_back({"contents of files: none was compared or hashed", why});
  if (!has_manifest && !options.source)
    skipped.push_back({"names and shapes of tensors, list of files", "no manifest and no source"});
  return skipped;
}

// What only the source has and nobody looked at either.
void add_ignored_files_of_source(const Checkpoint& source, const std::vector<std::string>& ignore,
                                 std::vector<std::string>& ignored) {
  for (const std::string& path : source.omitted_files()) {
    if (any_glob_match(ignore, path)) ignored.push_back(path);
  }
}

// The artifact's and the source's files as one list, each in its order, such that after any part of
// it about the same share of either is done. The source's, of which there are few and long ones,
// begin one file earlier: a thread alone with the last of them would keep all others waiting.
std::vector<HashRequest> in_step(std::vector<HashRequest> artifact,
                                 std::vector<HashRequest> source) {
  const auto total_bytes = [](const std::vector<HashRequest>& list) {
    double bytes = 1;
    for (const HashRequest& request : list) bytes += static_cast<double>(request.size_bytes);
    return bytes;
  };
  const double artifact_bytes = total_bytes(artifact), source_bytes = total_bytes(source);
  std::vector<HashRequest> merged;
  double artifact_done = 0, source_done = 0, last_of_source = 0;
  for (size_t i = 0, j = 0; i < artifact.size() || j < source.size();) {
    if (j == source.size() ||
        (i < artifact.size() && artifact_done / artifact_bytes < source_done / source_bytes)) {
      artifact_done += static_cast<double>(artifact[i].size_bytes);
      merged.push_back(std::move(artifact[i++]));
    } else {
      source_done += std::exchange(last_of_source, static_cast<double>(source[j].size_bytes));
      merged.push_back(std::move(source[j++]));
    }
  }
  return merged;
}

void sort_and_unique(std::vector<std::string>& paths) {
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
}

}  // namespace

Result<VerifyReport> verify(const std::filesystem::path& directory, const VerifyOptions& options,
                            const Decoder& decoder, const Executor& executor, Progress& progress) {
  const bool full = options.level == VerifyLevel::kFull;
  VerifyReport report;
  report.artifact = directory.string();
  report.source = options.source ? options.source->string() : "";
  report.level = options.level;
  report.decoder = full ? decoder.name() : "";
  PhaseClock clock(report);
  Findings findings;

  const Result<Artifact> artifact = Artifact::open(directory);
  if (!artifact) {
    if (!is_damage(artifact.error().code)) return fail(artifact.error());
    findings.add("artifact_malformed", artifact.error());
    report.skipped.push_back({"everything else", "the artifact does not open"});
    findings.move_to(report);
    return report;
  }
  std::optional<Checkpoint> source;
  if (options.source) {
    std::vector<std::string> omit = options.ignore;
    if (artifact->manifest()) {
      for (const std::string& path : artifact->manifest()->omitted_files) {
        omit.push_back(escape_glob(path));
        report.notes.push_back("left out when it was compressed: " + path);
      }
    }
    DF11_ASSIGN(source, Checkpoint::open(*options.source, omit));
  }
  report.has_manifest = artifact->manifest().has_value();
  if (full && !source && !artifact->manifest()) {
    return fail(Error{ErrorCode::invalid_argument,
                      "it has no df11_manifest.json: say what to compare it with (--source)",
                      directory.string(),
                      {},
                      {}});
  }
  if (options.expected_source_sha256 && (!full || !artifact->manifest())) {
    return fail(
        Error{ErrorCode::invalid_argument,
              "expected hashes of the source can be checked with a df11_manifest.json and at "
              "level full only",
              directory.string(),
              {},
              {}});
  }
  report.skipped = skipped_checks(options, report.has_manifest);
  for (const Shard& shard : artifact->shards().shards()) report.shards.push_back(shard.name);
  report.n_artifact_groups = artifact->groups().size();
  report.n_artifact_tensors = artifact->verbatim().size();
  for (const GroupEntry& group : artifact->groups())
    report.n_artifact_tensors += group.members.size();
  clock.end("open");

  const Checkpoint* source_or_null = source ? &*source : nullptr;
  const Manifest* manifest_or_null = artifact->manifest() ? &*artifact->manifest() : nullptr;
  const ExpectedTensors expected = expected_tensors(source_or_null, manifest_or_null);
  TensorChecker tensors(*artifact, expected, source ? &source->shards() : nullptr, decoder,
                        executor, progress, findings);
  FileChecker files(*artifact, options.ignore, executor, findings);
  tensors.check_tensor_set(source || report.has_manifest);
  DF11_ASSIGN(std::vector<FileChecker::Task> tasks, files.plan(source_or_null));
  uint64_t total_bytes = files.total_bytes();
  std::vector<HashRequest> hashes_of_source;
  if (source && artifact->manifest()) {
    DF11_ASSIGN(hashes_of_source,
                check_manifest_against_source(*artifact->manifest(), *source, options.ignore,
                                              findings, total_bytes));
  }
  HashQueue hashes(executor, progress);
  const auto n_threads = static_cast<size_t>(executor.n_threads());
  if (full) {
    for (HashRequest& request : in_step(std::move(files).hashes(), std::move(hashes_of_source)))
      hashes.add(std::move(request));
    // Half of the threads hash and half decode, so that both read a part of a file while it is
    // cached. Who is done with the one helps with the other.
    tasks.insert(tasks.begin(), ceil_div(n_threads, 2), [&hashes] { return hashes.work(); });
  } else {
    tasks.clear();
    total_bytes = 0;
  }
  for (const GroupEntry& group : artifact->groups()) {
    if (full) total_bytes += 2 * group.n_elements();
    tasks.push_back([&tensors, &group, full] {
      return full ? tensors.check_group(group) : tensors.check_group_structure(group);
    });
  }
  for (const TensorLocation* tensor : artifact->verbatim()) {
    if (!full) break;
    total_bytes += tensor->info.size_bytes();
    tasks.push_back([&tensors, tensor] { return tensors.check_verbatim(*tensor); });
  }
  if (options.expected_source_sha256) {
    for (const ManifestFile& file : artifact->manifest()->source_files) {
      if (options.expected_source_sha256->contains(file.path)) total_bytes += file.size_bytes;
    }
  }
  tasks.insert(tasks.end(), n_threads, [&hashes] { return hashes.work(); });
  progress.total_bytes = total_bytes;
  clock.end("list");
  std::atomic<size_t> next{0};  // tasks start in order
  DF11_TRY(executor.for_each(tasks.size(), [&](size_t) { return tasks[next++](); }));
  clock.end(full ? "weights_and_files" : "groups");

  report.ignored_files = files.ignored_files();
  if (options.expected_source_sha256) {
    DF11_ASSIGN(const SourceHashOutcome outcome,
                check_source_hashes(*artifact, *options.expected_source_sha256, options.ignore,
                                    decoder, executor, progress, findings));
    report.source_hashes = outcome.hashes;
    report.ignored_files.insert(report.ignored_files.end(), outcome.ignored_files.begin(),
                                outcome.ignored_files.end());
    if (outcome.n_unlisted != 0) {
      report.notes.push_back(
          std::to_string(outcome.n_unlisted) +
          " source files without weights are not in the list of expected hashes");
    }
    clock.end("source_sha256");
  }
  if (options.lint) {
    DF11_ASSIGN(report.lint, lint_for_upstream(*artifact));
    clock.end("lint");
  }
  report.n_groups = tensors.n_groups();
  report.n_tensors = tensors.n_tensors();
  report.weight_bytes = tensors.weight_bytes();
  report.n_files = files.n_files();
  if (source) add_ignored_files_of_source(*source, options.ignore, report.ignored_files);
  sort_and_unique(report.ignored_files);
  report.notes.insert(report.notes.end(), files.notes().begin(), files.notes().end());
  findings.move_to(report);
  return report;
}

}  // namespace df11
