// df11-compress SOURCE OUTPUT: a Hugging Face checkpoint directory in, a DF11 directory out.
#include <iostream>

#include "compressor/compress.h"
#include "tools/cli/app.h"
#include "tools/cli/summary.h"

namespace {

using namespace df11;

Result<PatternDict> read_pattern_dict(const std::string& path) {
  DF11_ASSIGN(const std::string text, read_text_file(path, kMaxTextBytes));
  Result<PatternDict> patterns =
      parse_json(text).and_then([](const Json& root) { return find_pattern_dict(root); });
  if (!patterns) return fail(std::move(patterns).error().in_file(path));
  return patterns;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Compress the BF16 weights of a Hugging Face checkpoint losslessly to DFloat11.\n"
      "The output directory appears complete or not at all; the source is never modified.");
  std::string source, output, granularity = "tensor", pattern_file;
  CompressOptions options;
  int n_threads = 0;
  bool quiet = false, json = false;
  app.add_option("SOURCE", source, "checkpoint directory: .safetensors, index, config.json")
      ->required();
  CLI::Option* output_option = app.add_option("OUTPUT", output, "directory to create");
  app.add_flag("--dry-run", options.dry_run,
               "print the plan and the exact output size, write nothing");
  cli::add_threads_option(app, n_threads);
  app.add_flag("--resume", options.resume,
               "go on where an interrupted run of the same command stopped");
  app.add_flag("--force", options.force, "replace OUTPUT if it is a DF11 artifact");
  CLI::Option* granularity_option =
      app.add_option("--granularity", granularity,
                     "one codebook for each weight tensor, or for each block as upstream has it")
          ->check(CLI::IsMember({"tensor", "block"}))
          ->capture_default_str();
  CLI::Option* include_option =
      app.add_option("--include", options.plan.include,
                     "tensors to compress even if the rules leave them alone (glob, repeatable)")
          ->allow_extra_args(false);
  app.add_option("--pattern-dict", pattern_file,
                 "JSON file with upstream's pattern_dict: group what it says and nothing else")
      ->excludes(granularity_option)
      ->excludes(include_option);
  app.add_option("--exclude", options.plan.exclude,
                 "tensors to keep as they are (glob, repeatable)")
      ->allow_extra_args(false);
  app.add_option("--omit", options.omit, "source files to leave out (glob, repeatable)")
      ->allow_extra_args(false);
  app.add_option("--base-model", options.base_model,
                 "ORG/NAME of the source on the hub, for the model card (default: found out)")
      ->option_text("ORG/NAME");
  app.add_flag("!--no-card", options.card, "write no model card: README.md is copied as it is");
  app.add_option("--max-shard-size", options.max_shard_bytes,
                 "merge into numbered files of at most 5GB, 500MiB, ... (default: one a block)")
      ->transform(cli::file_size())
      ->option_text("SIZE");
  cli::add_summary_options(app, quiet, json);
  app.footer(
      "Exit codes: 0 done, 2 could not do it, 130/143 stopped by a signal.\n"
      "Afterwards: df11-verify OUTPUT --source SOURCE");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;
  if (output_option->count() == 0 && !options.dry_run) {
    std::cerr << "df11-compress: error: OUTPUT is missing (only --dry-run works without)\n";
    return cli::kExitFailed;
  }

  options.plan.granularity = granularity == "block" ? Granularity::kBlock : Granularity::kTensor;
  if (!pattern_file.empty()) {
    Result<PatternDict> patterns = read_pattern_dict(pattern_file);
    if (!patterns) return cli::report_error("df11-compress", patterns.error());
    options.plan.patterns = std::move(*patterns);
  }

  const cli::Stopwatch watch;
  const Executor executor(n_threads, &cli::cancel_on_signals());
  Progress progress;
  Result<CompressSummary> summary = [&] {
    const cli::ProgressLine line(progress, quiet);
    return compress(source, output, options, executor, progress);
  }();
  if (!summary) return cli::report_error("df11-compress", summary.error(), output);
  if (json) {
    std::cout << cli::summary_json(*summary, source, output, options.dry_run, watch.seconds());
  } else if (!quiet) {
    std::cout << cli::summary_text(*summary, source, output, options.dry_run, watch.seconds());
  } else {
    for (const LintFinding& finding : summary->lint) {
      if (finding.severity != LintSeverity::kError) continue;
      std::cerr << "df11-compress: warning: the dfloat11 package cannot load this: "
                << cli::lint_line(finding) << "\n";
    }
  }
  std::cout.flush();
  return std::cout ? cli::kExitGood : cli::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-compress", [&] { return run(argc, argv); });
}
