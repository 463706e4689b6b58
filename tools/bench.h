// The measurements of df11-bench.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/error.h"
#include "format/json.h"
#include "format/parallel.h"

namespace df11::bench {

struct CpuOptions {
  size_t n_elements = 0;  // 0: 32 Mi, or 4 Mi a thread if that is more
  int n_rounds = 7;
  std::vector<int> threads = {1};  // thread counts to measure
  bool peer = false;               // measure other compressors, too
  std::string peer_python = "python3";
  bool json = false;  // print nothing
};
// Speed of the codec's stages: an object for each thread count (spec/cli.md). Prints tables.
Result<Json> bench_cpu(const CpuOptions& options);

struct CudaOptions {
  std::vector<std::string> cases;  // names of those to run; empty: all
  uint64_t max_elements = uint64_t{500} << 20;
  int n_rounds = 25;
  std::string reference_ptx;  // file with upstream's kernel; empty: none
  bool json = false;
};
// Speed of the decode kernel, beside a kernel with the same memory traffic and upstream's. Prints a
// table. Errors: unsupported without CUDA; corrupt_stream when decoded words are not the CPU's.
Result<Json> bench_cuda(const CudaOptions& options);

// Normal weights whose rows of 4096 have log-normally varying scales, as in trained matrices; made
// on all threads of `executor`, the same for any number of them.
std::vector<uint16_t> trained_like_weights(size_t n, double row_sigma, uint64_t seed,
                                           const Executor& executor);

// Exponents drawn with these relative frequencies; random sign and mantissa.
std::vector<uint16_t> weights_of_distribution(size_t n, std::span<const double> frequencies,
                                              uint64_t seed, const Executor& executor);

double median(std::vector<double> values);

}  // namespace df11::bench
