// df11-verify ARTIFACT [--source DIR]: proves that an artifact holds its source bit for bit.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>

#include "format/checkpoint.h"
#include "tools/cli/app.h"
#include "tools/cli/verdict.h"
#include "verify/verify.h"

namespace {

using namespace df11;

struct Outputs {
  bool quiet = false, json = false, github = false;
  std::string junit_path;        // empty: none
  std::string job_summary_path;  // with `github`
};

// False, with an error on stderr, when a file cannot be written.
bool write_to(const std::string& path, std::ios::openmode mode, const std::string& text) {
  std::ofstream file(path, mode | std::ios::binary);
  file << text;
  if (file.flush()) return true;
  std::cerr << "df11-verify: error: " << cli::printable(path) << ": cannot write\n";
  return false;
}

// Everything that says what was found. False when something could not be written.
bool write_outputs(const VerifyReport& report, const Outputs& outputs, double seconds) {
  bool written = true;
  if (!outputs.junit_path.empty())
    written &= write_to(outputs.junit_path, std::ios::trunc, to_junit(report, seconds));
  if (outputs.github) {
    written &=
        write_to(outputs.job_summary_path, std::ios::app, cli::verdict_markdown(report, seconds));
    std::cerr << cli::verdict_annotations(report);  // stdout may hold the JSON
  }
  if (outputs.json)
    std::cout << to_json(report, seconds);
  else if (!outputs.quiet)
    std::cout << cli::verdict_text(report, seconds);
  std::cout.flush();
  return written && std::cout;
}

Result<Sha256List> read_hashes(const std::string& path) {
  DF11_ASSIGN(const std::string text, read_text_file(path, kMaxTextBytes));
  return parse_sha256_list(text);
}

int usage_error(std::string_view message) {
  std::cerr << "df11-verify: error: " << message << " (see --help)\n";
  return cli::kExitFailed;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Prove that a DF11 artifact holds its source bit for bit: every tensor is decoded and every\n"
      "file checked, against the source directory or else against the hashes in the manifest.");
  std::string artifact, source, hashes_path;
  VerifyOptions options;
  Outputs outputs;
  int n_threads = 0;
  DeviceChoice device = DeviceChoice::kAuto;
  const std::map<std::string, VerifyLevel> levels = {{"structure", VerifyLevel::kStructure},
                                                     {"full", VerifyLevel::kFull}};
  app.add_option("ARTIFACT", artifact, "DF11 directory")->required();
  CLI::Option* source_option =
      app.add_option("--source", source, "checkpoint directory to compare with, byte for byte");
  app.add_option("--ignore", options.ignore,
                 "files not to check (glob, repeatable); named in the report")
      ->allow_extra_args(false);
  app.add_option("--level", options.level,
                 "full (default), or structure: headers, groups' tables, index, listing and\n"
                 "manifest, but no weights and no hashes")
      ->transform(CLI::CheckedTransformer(levels))
      ->option_text("structure|full");
  CLI::Option* hashes_option =
      app.add_option("--expect-source-sha256", hashes_path,
                     "list as sha256sum prints it: the source's files must have had these hashes,\n"
                     "which are recomputed from the artifact")
          ->option_text("FILE");
  app.add_flag("--lint", options.lint,
               "also look for what the dfloat11 package's loader cannot take; errors fail");
  cli::add_threads_option(app, n_threads);
  cli::add_device_option(app, device);
  app.add_flag("--quiet", outputs.quiet, "print nothing but errors; see the exit code");
  app.add_flag("--json", outputs.json, "print the report as JSON");
  CLI::Option* junit_option =
      app.add_option("--junit", outputs.junit_path, "also write the report as JUnit XML")
          ->option_text("FILE");
  app.add_flag("--github", outputs.github,
               "also add to $GITHUB_STEP_SUMMARY, and print annotations on stderr");
  app.footer(
      "Exit codes: 0 equal, 1 not equal, corrupt or lint errors, 2 could not check, 130/143 "
      "stopped by a "
      "signal.");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;
  if (source_option->count() != 0) options.source = source;
  if (junit_option->count() != 0 && outputs.junit_path.empty())
    return usage_error("--junit names no file");
  if (outputs.github) {
    const char* path = std::getenv("GITHUB_STEP_SUMMARY");
    if (path == nullptr || *path == '\0')
      return usage_error("--github needs $GITHUB_STEP_SUMMARY, which GitHub Actions sets");
    outputs.job_summary_path = path;
  }

  if (hashes_option->count() != 0) {
    Result<Sha256List> list = read_hashes(hashes_path);
    if (!list)
      return cli::report_error("df11-verify", std::move(list).error().in_file(hashes_path));
    options.expected_source_sha256 = std::move(*list);
  }

  const cli::Stopwatch watch;
  const Executor executor(n_threads, &cli::cancel_on_signals());
  Progress progress;
  const Result<std::unique_ptr<Decoder>> decoder = make_decoder(device);
  if (!decoder) return cli::report_error("df11-verify", decoder.error());
  const Result<VerifyReport> report = [&] {
    const cli::ProgressLine line(progress, outputs.quiet);
    return verify(artifact, options, **decoder, executor, progress);
  }();
  if (!report) return cli::report_error("df11-verify", report.error());
  if (!write_outputs(*report, outputs, watch.seconds())) return cli::kExitFailed;
  return report->passed() ? cli::kExitGood : cli::kExitNotEqual;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-verify", [&] { return run(argc, argv); });
}
