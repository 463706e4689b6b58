// df11-decompress ARTIFACT OUTPUT: the checkpoint that an artifact was made from, byte for byte.
#include <iostream>
#include <map>

#include "decoder/restore.h"
#include "format/json.h"
#include "format/version.h"
#include "tools/cli/app.h"

namespace {

using namespace df11;

struct Outcome {
  const RestoreSummary& summary;
  const RestoreOptions& options;
  std::string artifact, output;
  std::string_view decoder;
  double seconds;
};

std::string flat_tensors_text(const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxShown)
    text += " and " + cli::format_count(names.size() - kMaxShown) + " more";
  return text;
}

std::string summary_text(const Outcome& outcome) {
  const RestoreSummary& summary = outcome.summary;
  const double n_bytes = static_cast<double>(summary.total_bytes());
  std::string text = outcome.artifact + ": " + cli::format_bytes(n_bytes) + " in " +
                     cli::format_count(summary.files.size()) + " files, " +
                     cli::format_count(summary.n_tensors) + " tensors";
  text += outcome.options.tensors_only ? "; the tensors bit for bit, in new .safetensors files\n"
                                       : "; every file has the SHA-256 of the source's\n";
  if (outcome.options.verify) text += "  read back from disk: the same SHA-256\n";
  if (summary.n_reused != 0) {
    text += "  " + cli::format_count(summary.n_reused) +
            " files of an interrupted run were kept: they have the SHA-256 of the source's\n";
  }
  for (const std::string& path : summary.omitted_files) {
    if (outcome.options.tensors_only) break;
    text += "  not restored, left out when it was compressed: " + path + "\n";
  }
  return text + "  " + outcome.output + " written in " + cli::format_seconds(outcome.seconds) +
         ", " + cli::format_bytes(n_bytes / outcome.seconds) + "/s\n";
}

std::string summary_json(const Outcome& outcome) {
  Json files = Json::array();
  for (const ManifestFile& file : outcome.summary.files) {
    files.push_back(
        {{"path", file.path}, {"size_bytes", file.size_bytes}, {"sha256", file.sha256.hex()}});
  }
  const Json root = {{"report", "df11-decompress"},
                     {"schema_version", 1},
                     {"tool_version", kVersion},
                     {"artifact", outcome.artifact},
                     {"output", outcome.output},
                     {"tensors_only", outcome.options.tensors_only},
                     {"read_back", outcome.options.verify},
                     {"decoder", outcome.decoder},
                     {"total_bytes", outcome.summary.total_bytes()},
                     {"tensors", outcome.summary.n_tensors},
                     {"seconds", outcome.seconds},
                     {"reused_files", outcome.summary.n_reused},
                     {"files", std::move(files)},
                     {"omitted_files", outcome.summary.omitted_files},
                     {"flat_tensors", outcome.summary.flat_tensors}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run(int argc, char** argv) {
  CLI::App app(
      "Restore the checkpoint that a DF11 artifact was made from: every file of it, byte for "
      "byte,\n"
      "with the SHA-256 that the manifest records. OUTPUT appears complete or not at all.");
  std::string artifact, output;
  RestoreOptions options;
  int n_threads = 0;
  bool quiet = false, json = false;
  DeviceChoice device = DeviceChoice::kAuto;
  app.add_option("ARTIFACT", artifact, "DF11 directory")->required();
  app.add_option("OUTPUT", output, "directory to create")->required();
  app.add_flag("--verify", options.verify,
               "read the written files again and compare their SHA-256");
  app.add_flag("--tensors-only", options.tensors_only,
               "write the tensors to new .safetensors files; for artifacts without a manifest");
  app.add_flag("--resume", options.resume,
               "go on where an interrupted run of the same command stopped");
  app.add_flag("--force", options.force, "replace OUTPUT if it holds no other files");
  cli::add_threads_option(app, n_threads);
  cli::add_device_option(app, device);
  cli::add_summary_options(app, quiet, json);
  app.footer(
      "Exit codes: 0 done, 1 the artifact is damaged, 2 could not do it, 130/143 stopped by a "
      "signal.");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;

  const cli::Stopwatch watch;
  const Executor executor(n_threads, &cli::cancel_on_signals());
  Progress progress;
  const Result<std::unique_ptr<Decoder>> decoder = make_decoder(device);
  if (!decoder) return cli::report_error("df11-decompress", decoder.error());
  const Result<RestoreSummary> summary = [&] {
    const cli::ProgressLine line(progress, quiet);
    return restore(artifact, output, options, **decoder, executor, progress);
  }();
  if (!summary) {
    const int exit_code = cli::report_error("df11-decompress", summary.error(), output);
    return is_damage(summary.error().code) ? cli::kExitNotEqual : exit_code;
  }
  const Outcome outcome{*summary, options, artifact, output, (*decoder)->name(), watch.seconds()};
  if (json) {
    std::cout << summary_json(outcome);
  } else if (!quiet) {
    std::cout << summary_text(outcome);
  }
  // Not part of the summary: whoever loads these tensors has to know.
  if (!summary->flat_tensors.empty()) {
    std::cerr << "df11-decompress: note: nothing tells the shape of "
              << cli::format_count(summary->flat_tensors.size())
              << " tensors; they were written with one dimension: "
              << cli::printable(flat_tensors_text(summary->flat_tensors)) << "\n";
  }
  std::cout.flush();
  return std::cout ? cli::kExitGood : cli::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-decompress", [&] { return run(argc, argv); });
}
