// df11-verify ARTIFACT [--source DIR]: proves that an artifact holds its source bit for bit.
#include <iostream>

#include "tools/cli/app.h"
#include "verify/verify.h"

namespace {

using namespace df11;

std::string report_text(const VerifyReport& report, double seconds) {
  std::string text;
  for (const Finding& finding : report.findings) {
    std::string line = "  " + finding.kind + ": ";
    if (!finding.file.empty()) line += finding.file + ": ";
    if (!finding.tensor.empty()) line += "'" + finding.tensor + "': ";
    text += cli::printable(line + finding.message) + "\n";
  }
  if (report.n_findings_dropped != 0) {
    text += "  ... and " + cli::format_count(report.n_findings_dropped) + " more\n";
  }
  for (const std::string& path : report.ignored_files)
    text += "  not checked (--ignore): " + path + "\n";
  for (const std::string& note : report.notes) text += "  note: " + note + "\n";
  text += report.artifact + ": " + (report.equal() ? "EQUAL" : "NOT EQUAL");
  if (report.n_tensors != 0 || report.n_files != 0) {
    text +=
        report.source.empty() ? " to what its manifest records: " : " to " + report.source + ": ";
    text += cli::format_count(report.n_tensors) + " tensors, " +
            cli::format_bytes(static_cast<double>(report.weight_bytes)) + " of weights " +
            (report.source.empty() ? "decoded and hashed" : "decoded and compared byte for byte") +
            ", " + cli::format_count(report.n_files) + " files, " + cli::format_seconds(seconds);
    if (seconds > 0) {
      text += ", " + cli::format_bytes(static_cast<double>(report.weight_bytes) / seconds) + "/s";
    }
  }
  return text + "\n";
}

int run(int argc, char** argv) {
  CLI::App app(
      "Prove that a DF11 artifact holds its source bit for bit: every tensor is decoded and every\n"
      "file checked, against the source directory or else against the hashes in the manifest.");
  std::string artifact, source;
  VerifyOptions options;
  int n_threads = 0;
  bool quiet = false, json = false;
  DeviceChoice device = DeviceChoice::kAuto;
  app.add_option("ARTIFACT", artifact, "DF11 directory")->required();
  CLI::Option* source_option =
      app.add_option("--source", source, "checkpoint directory to compare with, byte for byte");
  app.add_option("--ignore", options.ignore,
                 "files not to check (glob, repeatable); named in the report")
      ->allow_extra_args(false);
  app.add_option("--threads", n_threads, "threads to use (default: all)")
      ->check(CLI::Range(1, 4096));
  cli::add_device_option(app, device);
  app.add_flag("--quiet", quiet, "print nothing but errors; see the exit code");
  app.add_flag("--json", json, "print the report as JSON");
  app.footer(
      "Exit codes: 0 equal, 1 not equal or corrupt, 2 could not check, 130/143 stopped by a "
      "signal.");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;
  if (source_option->count() != 0) options.source = source;

  const cli::Stopwatch watch;
  const Executor executor(n_threads, &cli::cancel_on_signals());
  Progress progress;
  const Result<std::unique_ptr<Decoder>> decoder = make_decoder(device);
  if (!decoder) return cli::report_error("df11-verify", decoder.error());
  const Result<VerifyReport> report = [&] {
    const cli::ProgressLine line(progress, quiet);
    return verify(artifact, options, **decoder, executor, progress);
  }();
  if (!report) return cli::report_error("df11-verify", report.error());
  if (json)
    std::cout << to_json(*report, watch.seconds());
  else if (!quiet)
    std::cout << report_text(*report, watch.seconds());
  std::cout.flush();
  if (!std::cout) return cli::kExitFailed;
  return report->equal() ? cli::kExitGood : cli::kExitNotEqual;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-verify", [&] { return run(argc, argv); });
}
