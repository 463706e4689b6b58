#include "tools/bench_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/bench.h"

namespace df11::bench {

namespace {

constexpr size_t kMi = size_t{1} << 20;
constexpr size_t kExponents = 240;

// Geometric frequencies of 100 exponents with an entropy of `bits`.
std::vector<double> frequencies_of_entropy(double bits) {
  const auto geometric = [](double decay) {
    std::vector<double> p(kExponents, 0);
    for (size_t i = 0; i < 100; ++i)
      p[60 + i * 37 % 100] = std::exp(-decay * static_cast<double>(i));
    return p;
  };
  double low = 1e-3, high = 12;
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    const std::vector<double> p = geometric(middle);
    double total = 0, entropy = 0;
    for (const double value : p) total += value;
    for (const double value : p)
      if (value > 0) entropy -= value / total * std::log2(value / total);
    (entropy > bits ? low : high) = middle;
  }
  return geometric(low);
}

CudaCase of_distribution(std::string name, size_t n, const std::vector<double>& frequencies) {
  return {std::move(name), {n}, [n, frequencies](size_t, const Executor& executor) {
            return weights_of_distribution(n, frequencies, 7, executor);
          }};
}

// Counts 1, 1, 2, 3, 5, … and the end-of-stream symbol's 1: a code of every length up to 32 bits.
std::vector<uint16_t> fibonacci_weights() {
  std::vector<uint16_t> words;
  uint64_t a = 1, b = 1;
  for (size_t i = 0; i < 32; ++i) {
    for (uint64_t k = 0; k < a; ++k)
      words.push_back(static_cast<uint16_t>((100 + i) << 7 | (k & 0x7f)));
    const uint64_t next = i == 0 ? 1 : a + b;
    a = i == 0 ? 1 : b;
    b = next;
  }
  // Strides over a prime number of places mix the exponents without a random permutation.
  const size_t n = words.size();
  std::vector<uint16_t> mixed(n);
  size_t place = 0;
  size_t stride = 2654435761u % n;
  while (std::gcd(stride, n) != 1) ++stride;
  for (size_t i = 0; i < n; ++i) {
    mixed[place] = words[i];
    place = (place + stride) % n;
  }
  return mixed;
}

}  // namespace

std::vector<CudaCase> cuda_cases() {
  std::vector<CudaCase> cases;
  for (const size_t mi : {1, 4, 25, 50, 100, 192, 400, 476}) {
    const size_t n = mi * kMi;
    cases.push_back({"trained " + std::to_string(n / 1'000'000) + " M",
                     {n},
                     [n](size_t, const Executor& executor) {
                       return trained_like_weights(n, 0.2, 1, executor);
                     }});
  }
  std::vector<double> one(kExponents, 0);
  one[100] = 1;
  cases.push_back(of_distribution("one symbol", 48 * kMi, one));
  for (const double bits : {0.01, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0}) {
    const std::string text = std::to_string(bits).substr(0, bits < 0.1 ? 4 : 1);
    cases.push_back(of_distribution("entropy " + text, 48 * kMi, frequencies_of_entropy(bits)));
  }
  const size_t n_fibonacci = fibonacci_weights().size();
  cases.push_back(
      {"32-bit codes", {n_fibonacci}, [](size_t, const Executor&) { return fibonacci_weights(); }});
  // q, k, v, o, gate, up and down of a Qwen3-8B layer, each with its own codebook.
  std::vector<size_t> layer;
  for (const size_t rows : {4096, 1024, 1024, 4096, 12288, 12288, 12288})
    layer.push_back(rows * 4096);
  cases.push_back({"layer of 7", layer, [layer](size_t i, const Executor& executor) {
                     return trained_like_weights(layer[i], 0.15 + 0.02 * static_cast<double>(i),
                                                 10 + i, executor);
                   }});
  return cases;
}

}  // namespace df11::bench
