#include "verify/verify.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>

#include "format/artifact.h"
#include "format/checkpoint.h"
#include "format/pattern.h"
#include "verify/file_check.h"
#include "verify/manifest_check.h"
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

}  // namespace

Result<VerifyReport> verify(const std::filesystem::path& directory, const VerifyOptions& options,
                            const Decoder& decoder, const Executor& executor, Progress& progress) {
  VerifyReport report;
  report.artifact = directory.string();
  report.source = options.source ? options.source->string() : "";
  report.decoder = decoder.name();
  Findings findings;

  const Result<Artifact> artifact = Artifact::open(directory);
  if (!artifact) {
    if (!is_damage(artifact.error().code)) return fail(artifact.error());
    findings.add("artifact_malformed", artifact.error());
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
  if (!source && !artifact->manifest()) {
    return fail(Error{ErrorCode::invalid_argument,
                      "it has no df11_manifest.json: say what to compare it with (--source)",
                      directory.string(),
                      {},
                      {}});
  }

  const Checkpoint* source_or_null = source ? &*source : nullptr;
  const Manifest* manifest_or_null = artifact->manifest() ? &*artifact->manifest() : nullptr;
  const ExpectedTensors expected = expected_tensors(source_or_null, manifest_or_null);
  TensorChecker tensors(*artifact, expected, source ? &source->shards() : nullptr, decoder,
                        executor, progress, findings);
  FileChecker files(*artifact, options.ignore, executor, progress, findings);
  tensors.check_tensor_set();
  DF11_ASSIGN(std::vector<FileChecker::Task> tasks, files.plan(source_or_null));
  uint64_t total_bytes = files.total_bytes();
  if (source && artifact->manifest()) {
    DF11_ASSIGN(std::vector<FileChecker::Task> more,
                check_manifest_against_source(*artifact->manifest(), *source, options.ignore,
                                              executor, progress, findings, total_bytes));
    tasks.insert(tasks.end(), more.begin(), more.end());
  }
  for (const GroupEntry& group : artifact->groups()) {
    total_bytes += 2 * group.n_elements();
    tasks.push_back([&tensors, &group] { return tensors.check_group(group); });
  }
  for (const TensorLocation* tensor : artifact->verbatim()) {
    total_bytes += tensor->info.size_bytes();
    tasks.push_back([&tensors, tensor] { return tensors.check_verbatim(*tensor); });
  }
  progress.total_bytes = total_bytes;
  std::atomic<size_t> next{0};  // tasks start in order: the long hashes of files first
  DF11_TRY(executor.for_each(tasks.size(), [&](size_t) { return tasks[next++](); }));

  report.n_groups = tensors.n_groups();
  report.n_tensors = tensors.n_tensors();
  report.weight_bytes = tensors.weight_bytes();
  report.n_files = files.n_files();
  report.ignored_files = files.ignored_files();
  if (source) {  // files that only the source has, and that were not looked at either
    for (const std::string& path : source->omitted_files()) {
      if (any_glob_match(options.ignore, path)) report.ignored_files.push_back(path);
    }
    std::sort(report.ignored_files.begin(), report.ignored_files.end());
    report.ignored_files.erase(
        std::unique(report.ignored_files.begin(), report.ignored_files.end()),
        report.ignored_files.end());
  }
  report.notes.insert(report.notes.end(), files.notes().begin(), files.notes().end());
  findings.move_to(report);
  return report;
}

}  // namespace df11
