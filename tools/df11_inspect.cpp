// df11-inspect DIR: what a DF11 artifact holds, or what compressing a checkpoint would give.
#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>

#include "compressor/compress.h"
#include "compressor/exponent_counts.h"
#include "decoder/group_reader.h"
#include "format/artifact.h"
#include "format/json.h"
#include "format/version.h"
#include "tools/cli/app.h"

namespace {

using namespace df11;
namespace fs = std::filesystem;

struct GroupRow {
  std::string module;
  uint64_t n_elements = 0;
  double entropy_bits = 0;
  int longest_code_bits = 0;
  uint64_t stored_bytes = 0;
};
struct VerbatimRow {
  std::string name;
  std::string dtype;
  std::string shape;
  uint64_t n_bytes = 0;
  std::string reason;
};
struct Inspection {
  bool artifact = false;
  std::vector<GroupRow> groups;
  std::vector<VerbatimRow> verbatim;
};

// Exponent entropy of a group of an artifact: its weights are decoded and counted.
Result<double> measure_entropy(const Artifact& artifact, const GroupEntry& entry,
                               const Decoder& decoder, const Executor& executor,
                               Progress& progress) {
  DF11_ASSIGN(const GroupReader reader, GroupReader::open(artifact, entry, decoder));
  static Pool<RunBuffers> buffers;
  std::mutex mutex;
  Histogram total{};
  DF11_TRY(executor.for_each(reader.n_runs(), [&](size_t i) -> Result<void> {
    const auto lease = buffers.take();
    DF11_ASSIGN(const std::span<const uint16_t> words, reader.decode_run(i, *lease));
    Histogram histogram{};
    count_exponents(words, histogram);
    progress.add(2 * words.size());
    const std::lock_guard lock(mutex);
    for (size_t e = 0; e < total.size(); ++e) total[e] += histogram[e];
    return {};
  }));
  return entropy_bits(total);
}

Result<Inspection> inspect_artifact(const fs::path& directory, const Executor& executor,
                                    Progress& progress) {
  DF11_ASSIGN(const Artifact artifact, Artifact::open(directory));
  const std::unique_ptr<Decoder> decoder = make_cpu_decoder();
  Inspection inspection;
  inspection.artifact = true;
  std::map<std::string, std::string> reasons;
  if (artifact.manifest()) {
    for (const ManifestTensor& tensor : artifact.manifest()->tensors)
      reasons[tensor.name] = tensor.reason;
  }
  uint64_t total_bytes = 0;
  for (const GroupEntry& entry : artifact.groups()) total_bytes += 2 * entry.n_elements();
  progress.total_bytes = total_bytes;
  for (const GroupEntry& entry : artifact.groups()) {
    DF11_ASSIGN(const Group group, artifact.load_group(entry));
    DF11_ASSIGN(const double entropy,
                measure_entropy(artifact, entry, *decoder, executor, progress));
    inspection.groups.push_back({entry.module, entry.n_elements(), entropy,
                                 group.tables.longest_code_bits(), entry.stored_bytes()});
  }
  for (const TensorLocation* tensor : artifact.verbatim()) {
    const auto reason = reasons.find(tensor->info.name);
    inspection.verbatim.push_back(
        {tensor->info.name, std::string(dtype_name(tensor->info.dtype)),
         shape_text(tensor->info.shape), tensor->info.size_bytes(),
         reason != reasons.end() ? reason->second : "its publisher kept it"});
  }
  return inspection;
}

Result<Inspection> inspect_checkpoint(const fs::path& directory, const Executor& executor,
                                      Progress& progress) {
  CompressOptions options;
  options.dry_run = true;
  DF11_ASSIGN(const CompressSummary summary, compress(directory, {}, options, executor, progress));
  Inspection inspection;
  for (const ManifestGroup& group : summary.manifest.groups) {
    inspection.groups.push_back({group.module, group.n_elements, group.entropy_bits,
                                 group.longest_code_bits, group.stored_bytes});
  }
  for (const ManifestTensor& tensor : summary.manifest.tensors) {
    if (!tensor.group.empty()) continue;
    inspection.verbatim.push_back({tensor.name, std::string(dtype_name(tensor.dtype)),
                                   shape_text(tensor.shape),
                                   *tensor_bytes(tensor.dtype, tensor.shape), tensor.reason});
  }
  return inspection;
}

Result<Inspection> inspect(const fs::path& directory, const Executor& executor,
                           Progress& progress) {
  DF11_ASSIGN(const bool artifact, is_artifact(directory));
  return artifact ? inspect_artifact(directory, executor, progress)
                  : inspect_checkpoint(directory, executor, progress);
}

double as_double(uint64_t n) {
  return static_cast<double>(n);
}
double bits_a_weight(const GroupRow& row) {
  return 8 * as_double(row.stored_bytes) / as_double(row.n_elements);
}

std::string to_text(const Inspection& inspection) {
  cli::Table table({"group", "weights", "bits/weight", "entropy", "longest", "before", "after", ""},
                   {false, true, true, true, true, true, true, true});
  uint64_t n_elements = 0, stored_bytes = 0, verbatim_bytes = 0;
  for (const GroupRow& row : inspection.groups) {
    n_elements += row.n_elements;
    stored_bytes += row.stored_bytes;
    table.add({row.module, cli::format_count(row.n_elements),
               cli::format_fixed(bits_a_weight(row), 3), cli::format_fixed(row.entropy_bits, 3),
               std::to_string(row.longest_code_bits),
               cli::format_bytes(2 * as_double(row.n_elements)),
               cli::format_bytes(as_double(row.stored_bytes)),
               cli::format_percent(as_double(row.stored_bytes), 2 * as_double(row.n_elements))});
  }
  std::string text = inspection.groups.empty() ? "no groups\n" : table.to_string();
  if (!inspection.verbatim.empty()) {
    cli::Table rest({"verbatim tensor", "dtype", "shape", "bytes", "reason"},
                    {false, false, false, true, false});
    for (const VerbatimRow& row : inspection.verbatim) {
      verbatim_bytes += row.n_bytes;
      rest.add(
          {row.name, row.dtype, row.shape, cli::format_bytes(as_double(row.n_bytes)), row.reason});
    }
    text += "\n" + rest.to_string();
  }
  const uint64_t before = 2 * n_elements + verbatim_bytes, after = stored_bytes + verbatim_bytes;
  text += "\n" + cli::format_count(inspection.groups.size()) + " groups, " +
          cli::format_count(n_elements) +
          " weights: " + cli::format_bytes(2 * as_double(n_elements)) + " -> " +
          cli::format_bytes(as_double(stored_bytes)) + "; " +
          cli::format_count(inspection.verbatim.size()) +
          " verbatim tensors: " + cli::format_bytes(as_double(verbatim_bytes)) + "\n" +
          (inspection.artifact ? "artifact: " : "checkpoint, as it would be compressed: ") +
          cli::format_bytes(as_double(before)) + " -> " + cli::format_bytes(as_double(after)) +
          " (" + cli::format_percent(as_double(after), as_double(before)) + ")\n";
  return text;
}

std::string to_json(const Inspection& inspection, const std::string& directory) {
  Json groups = Json::array(), verbatim = Json::array();
  for (const GroupRow& row : inspection.groups) {
    groups.push_back({{"module", row.module},
                      {"elements", row.n_elements},
                      {"bits_per_weight", bits_a_weight(row)},
                      {"exponent_entropy_bits", row.entropy_bits},
                      {"longest_code_bits", row.longest_code_bits},
                      {"source_bytes", 2 * row.n_elements},
                      {"stored_bytes", row.stored_bytes}});
  }
  for (const VerbatimRow& row : inspection.verbatim) {
    verbatim.push_back({{"name", row.name},
                        {"dtype", row.dtype},
                        {"shape", row.shape},
                        {"bytes", row.n_bytes},
                        {"reason", row.reason}});
  }
  const Json root = {{"report", "df11-inspect"},
                     {"schema_version", 1},
                     {"tool_version", kVersion},
                     {"directory", directory},
                     {"kind", inspection.artifact ? "artifact" : "checkpoint"},
                     {"groups", std::move(groups)},
                     {"verbatim", std::move(verbatim)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run(int argc, char** argv) {
  CLI::App app(
      "Show the groups and verbatim tensors of a DF11 artifact, or what compressing a checkpoint\n"
      "would give. All weights are read; nothing is written.");
  std::string directory;
  int n_threads = 0;
  bool json = false;
  app.add_option("DIR", directory, "DF11 artifact or checkpoint directory")->required();
  cli::add_threads_option(app, n_threads);
  app.add_flag("--json", json, "print JSON");
  app.footer("Exit codes: 0 done, 2 could not do it, 130/143 stopped by a signal.");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;

  const Executor executor(n_threads, &cli::cancel_on_signals());
  Progress progress;
  const Result<Inspection> inspection = [&] {
    const cli::ProgressLine line(progress, json);
    return inspect(directory, executor, progress);
  }();
  if (!inspection) return cli::report_error("df11-inspect", inspection.error());
  std::cout << (json ? to_json(*inspection, directory) : to_text(*inspection)) << std::flush;
  return std::cout ? cli::kExitGood : cli::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-inspect", [&] { return run(argc, argv); });
}
