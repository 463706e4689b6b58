// df11-bench: speed of the codec in memory, beside what the machine can copy.
//
// Every figure is GB (10^9 bytes) of BF16 weights a second and the median of several rounds.
#include <iostream>

#include "format/version.h"
#include "tools/bench.h"
#include "tools/cli/app.h"

namespace {

using namespace df11;

int run(int argc, char** argv) {
  CLI::App app("Measure the codec in memory, in GB (10^9 bytes) of BF16 weights a second.");
  bool cpu = false, cuda = false, json = false;
  bench::CpuOptions cpu_options;
  bench::CudaOptions cuda_options;
  int n_rounds = 0;
  cpu_options.threads = {1};
  if (const int all = Executor().n_threads(); all > 1) cpu_options.threads.push_back(all);
  CLI::Option_group& what = *app.add_option_group("what to measure");
  what.add_flag("--cpu", cpu, "the CPU stages, beside copying and reading memory");
  what.add_flag("--cuda", cuda, "the GPU decoder, beside a kernel with the same memory traffic");
  what.require_option(1, 2);
  app.add_option("--elements", cpu_options.n_elements,
                 "--cpu: weights (default: 32 Mi, or 4 Mi a thread)")
      ->check(CLI::Range(size_t{1} << 16, size_t{1} << 30));
  app.add_option("--threads", cpu_options.threads, "--cpu: thread counts (default: 1 and all)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_flag("--peer", cpu_options.peer, "--cpu: measure zstd and ZipNN, too");
  app.add_option("--peer-python", cpu_options.peer_python, "--cpu: the Python that has ZipNN")
      ->capture_default_str();
  app.add_option("--case", cuda_options.cases, "--cuda: cases to run, by name (default: all)");
  app.add_option("--max-elements", cuda_options.max_elements, "--cuda: leave out larger cases")
      ->capture_default_str();
  app.add_option("--reference-ptx", cuda_options.reference_ptx,
                 "--cuda: decode.ptx of the upstream package, to measure in the same run");
  app.add_option("--rounds", n_rounds, "rounds to take the median of (default: 7; --cuda: 25)")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", json, "print JSON");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;
  if (n_rounds != 0) cpu_options.n_rounds = cuda_options.n_rounds = n_rounds;
  cpu_options.json = cuda_options.json = json;

  Json report{{"report", "df11-bench"}, {"schema_version", 1}, {"tool_version", kVersion}};
  if (cpu) {
    Result<Json> result = bench::bench_cpu(cpu_options);
    if (!result) return cli::report_error("df11-bench", result.error());
    report["cpu"] = std::move(*result);
  }
  if (cuda) {
    Result<Json> result = bench::bench_cuda(cuda_options);
    if (!result) return cli::report_error("df11-bench", result.error());
    report["cuda"] = std::move(*result);
  }
  if (json) std::cout << report.dump(2) << "\n";
  std::cout.flush();
  return std::cout ? cli::kExitGood : cli::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-bench", [&] { return run(argc, argv); });
}
