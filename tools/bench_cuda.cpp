// The decode kernel beside a stream kernel with the same memory traffic, and upstream's kernel.
//
// Times are those of events on one stream and include the launch. Small groups exist several times
// and are used in turn, so that the 50 MB of an L2 cache do not hold them.
#include <cuda_runtime.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>

#include "compressor/group_encoder.h"
#include "decoder/cuda/cuda_decoder.h"
#include "decoder/cuda/cuda_error.h"
#include "format/df11_layout.h"
#include "tools/bench.h"
#include "tools/bench_cases.h"
#include "tools/bench_kernels.h"
#include "tools/cli/app.h"

namespace df11::bench {

namespace {

using cuda::check;
using cuda::DeviceBuffer;

// Upstream's kernel, loaded from PTX.
class ReferenceKernel {
 public:
  static Result<std::optional<ReferenceKernel>> load(const std::string& path) {
    if (path.empty()) return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    const std::string ptx{std::istreambuf_iterator<char>(file), {}};
    if (ptx.empty()) return fail(Error{ErrorCode::not_found, "cannot read it", path, {}, {}});
    ReferenceKernel reference;
    cudaLibrary_t library;
    DF11_TRY(
        check(cudaLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
              "loading the reference PTX"));
    DF11_TRY(check(cudaLibraryGetKernel(&reference.kernel_, library, "decode"),
                   "finding the reference kernel"));
    return reference;
  }

  Result<void> launch(const cuda::LaunchGroup& group, const uint8_t* luts, uint32_t n_rows) const {
    const cuda::GroupArguments& g = group.arguments;
    int rows = static_cast<int>(n_rows), n_bytes = static_cast<int>(g.n_code_bytes),
        n_elements = static_cast<int>(g.n_elements);
    const void* pointers[] = {luts, g.code, g.sign_mantissa, g.positions, g.gaps, g.words};
    void* arguments[] = {&pointers[0], &pointers[1], &pointers[2], &pointers[3], &pointers[4],
                         &pointers[5], &rows,        &n_bytes,     &n_elements};
    const size_t shared = kWindowsPerBlock * 4 + 4 + 2 * size_t{group.max_block_elements};
    if (shared > 48 * 1024) {
      DF11_TRY(check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel_),
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(shared)),
                     "cudaFuncSetAttribute"));
    }
    return check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel_), dim3(g.n_blocks),
                                  dim3(kWindowsPerBlock), arguments, shared, nullptr),
                 "launching the reference kernel");
  }

 private:
  cudaKernel_t kernel_ = nullptr;
};

// One group on the device, several times.
struct DeviceGroup {
  std::vector<cuda::PreparedGroup> copies;
  std::vector<DeviceBuffer> words;
  DeviceBuffer luts, expected;
  uint32_t n_lut_rows = 0;
  uint64_t traffic_bytes = 0;
  double entropy = 0;

  uint16_t* output(size_t copy) const { return reinterpret_cast<uint16_t*>(words[copy].data()); }
  cuda::LaunchGroup launch_group(size_t copy) const {
    cuda::LaunchGroup group = copies[copy].launch_group();
    group.arguments.words = output(copy);
    return group;
  }
};

Result<void> upload(DeviceBuffer& buffer, const void* data, size_t n) {
  DF11_TRY(buffer.ensure(n + cuda::kDevicePaddingBytes, nullptr));
  return check(cudaMemcpy(buffer.data(), data, n, cudaMemcpyHostToDevice), "cudaMemcpy");
}

// Encodes weights, proves that the CPU decoder returns them, and uploads all.
Result<DeviceGroup> make_group(const std::vector<uint16_t>& words, size_t n_copies) {
  const Executor executor;
  DeviceGroup group;
  const std::span<const uint16_t> member[] = {words};
  DF11_ASSIGN(GroupTensors tensors, encode_group(member, executor, size_t{1} << 22));
  DF11_ASSIGN(const HostGroup host,
              HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa,
                               tensors.gaps, tensors.output_positions}));
  group.traffic_bytes = 2 * words.size() + tensors.encoded_exponent.size() +
                        tensors.sign_mantissa.size() + tensors.gaps.size() +
                        tensors.output_positions.size();
  group.n_lut_rows = host.tables().n_rows();
  Histogram counts{};
  for (const uint16_t word : words) ++counts[bf16_exponent(word)];
  group.entropy = entropy_bits(counts);
  DF11_TRY(upload(group.luts, tensors.luts.data(), tensors.luts.size()));
  tensors = {};
  std::vector<uint16_t> decoded(words.size());
  DF11_TRY(host.decode(*make_cpu_decoder(), executor, decoded.data()));
  if (decoded != words) return fail(ErrorCode::corrupt_stream, "the CPU decoded other weights");
  DF11_TRY(upload(group.expected, decoded.data(), 2 * decoded.size()));
  for (size_t copy = 0; copy < n_copies; ++copy) {
    DF11_ASSIGN(cuda::PreparedGroup prepared, cuda::PreparedGroup::upload(host, 0));
    group.copies.push_back(std::move(prepared));
    DF11_TRY(
        group.words.emplace_back().ensure(2 * words.size() + cuda::kDevicePaddingBytes, nullptr));
  }
  return group;
}

// Median microseconds of `launch(round)`.
Result<double> time(int n_rounds, const std::function<Result<void>(size_t)>& launch) {
  constexpr int kWarmUp = 5;
  cudaEvent_t begin, end;
  DF11_TRY(check(cudaEventCreate(&begin), "cudaEventCreate"));
  DF11_TRY(check(cudaEventCreate(&end), "cudaEventCreate"));
  std::vector<double> times;
  for (int round = 0; round < n_rounds + kWarmUp; ++round) {
    DF11_TRY(check(cudaEventRecord(begin), "cudaEventRecord"));
    DF11_TRY(launch(static_cast<size_t>(round)));
    DF11_TRY(check(cudaEventRecord(end), "cudaEventRecord"));
    DF11_TRY(check(cudaEventSynchronize(end), "running a kernel"));
    float milliseconds = 0;
    DF11_TRY(check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime"));
    if (round >= kWarmUp) times.push_back(1000.0 * milliseconds);
  }
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  return median(std::move(times));
}

class CaseBench {
 public:
  CaseBench(const CudaCase& bench_case, const std::optional<ReferenceKernel>& reference,
            int n_rounds)
      : case_(bench_case), reference_(reference), n_rounds_(n_rounds) {}

  Result<Json> run() {
    n_copies_ = std::clamp<size_t>(size_t{300'000'000} / (case_.n_elements() * 3 + 1) + 1, 1, 12);
    for (size_t i = 0; i < case_.elements.size(); ++i) {
      DF11_ASSIGN(DeviceGroup group, make_group(case_.make(i, Executor()), n_copies_));
      groups_.push_back(std::move(group));
    }
    DF11_TRY(status_.ensure(16, nullptr));
    DF11_TRY(check_equal());

    Json row{{"case", case_.name}, {"groups", groups_.size()}, {"elements", case_.n_elements()}};
    double traffic = 0, code_bits = 0;
    for (const DeviceGroup& group : groups_) {
      traffic += static_cast<double>(group.traffic_bytes);
      code_bits += 8.0 * group.copies[0].launch_group().arguments.n_code_bytes;
    }
    const double n = static_cast<double>(case_.n_elements());
    row["exponent_entropy_bits"] = groups_[0].entropy;
    row["code_bits_per_weight"] = code_bits / n;
    DF11_ASSIGN(const double unaligned,
                time(n_rounds_, [&](size_t i) { return stream(i, false); }));
    DF11_ASSIGN(const double aligned, time(n_rounds_, [&](size_t i) { return stream(i, true); }));
    DF11_ASSIGN(const double us, time(n_rounds_, [&](size_t i) { return decode(i); }));
    const double floor_us = std::min(unaligned, aligned);
    row["microseconds"] = us;
    row["gb_per_s"] = 2 * n / us / 1e3;
    row["traffic_gb_per_s"] = traffic / us / 1e3;
    row["stream_gb_per_s"] = 2 * n / floor_us / 1e3;
    row["share_of_stream"] = floor_us / us;
    if (reference_) {
      DF11_ASSIGN(const double reference_us,
                  time(n_rounds_, [&](size_t i) { return upstream(i); }));
      row["reference_gb_per_s"] = 2 * n / reference_us / 1e3;
      row["ratio_to_reference"] = reference_us / us;
    }
    return row;
  }

 private:
  Result<void> decode(size_t round) {
    targets_.clear();
    const size_t copy = round % n_copies_;
    for (const DeviceGroup& group : groups_)
      targets_.push_back({&group.copies[copy], group.output(copy)});
    return cuda::decode(targets_, reinterpret_cast<uint32_t*>(status_.data()), nullptr);
  }
  Result<void> stream(size_t round, bool align) {
    segments_.clear();
    for (const DeviceGroup& group : groups_) {
      const cuda::GroupArguments g = group.launch_group(round % n_copies_).arguments;
      segments_.push_back({g.code, g.sign_mantissa, g.words, g.n_code_bytes, g.n_elements});
    }
    return launch_stream(segments_, align, nullptr);
  }
  Result<void> upstream(size_t round) {
    for (const DeviceGroup& group : groups_) {
      DF11_TRY(reference_->launch(group.launch_group(round % n_copies_), group.luts.data(),
                                  group.n_lut_rows));
    }
    return {};
  }

  // Every copy decodes to the CPU's words, and so does the reference: speed of wrong code is worth
  // nothing.
  Result<void> check_equal() {
    for (size_t copy = 0; copy < n_copies_; ++copy) {
      DF11_TRY(check_outputs(copy, "the GPU", [&] { return decode(copy); }));
      if (reference_)
        DF11_TRY(check_outputs(copy, "the reference", [&] { return upstream(copy); }));
    }
    return {};
  }
  template <typename Launch>
  Result<void> check_outputs(size_t copy, const char* who, const Launch& launch) {
    auto* const n_different = reinterpret_cast<unsigned long long*>(status_.data() + 8);
    DF11_TRY(check(cudaMemset(status_.data(), 0, 16), "cudaMemset"));
    for (const DeviceGroup& group : groups_)
      DF11_TRY(check(cudaMemset(group.output(copy), 0xa5, 2 * group.copies[copy].n_elements()),
                     "cudaMemset"));
    DF11_TRY(launch());
    for (const DeviceGroup& group : groups_) {
      DF11_TRY(launch_compare(group.output(copy),
                              reinterpret_cast<const uint16_t*>(group.expected.data()),
                              group.copies[copy].n_elements(), n_different, nullptr));
    }
    uint64_t results[2];
    DF11_TRY(check(cudaMemcpy(results, status_.data(), 16, cudaMemcpyDeviceToHost), "decoding"));
    if (results[0] == 0 && results[1] == 0) return {};
    return fail(ErrorCode::corrupt_stream,
                case_.name + ": " + who + " decoded " + std::to_string(results[1]) +
                    " other words than the CPU, status " + std::to_string(results[0]));
  }

  const CudaCase& case_;
  const std::optional<ReferenceKernel>& reference_;
  int n_rounds_;
  size_t n_copies_ = 1;
  std::vector<DeviceGroup> groups_;
  DeviceBuffer status_;
  std::vector<cuda::DecodeTarget> targets_;
  std::vector<StreamGroup> segments_;
};

void print(const Json& rows, const std::string& device) {
  cli::Table table({"case", "groups", "M weights", "bits/code", "us", "GB/s", "traffic GB/s",
                    "stream GB/s", "share", "reference GB/s", "ratio"},
                   {false, true, true, true, true, true, true, true, true, true, true});
  for (const Json& row : rows) {
    const auto fixed = [&](const char* key, int digits, double scale = 1) {
      return row.contains(key) ? cli::format_fixed(scale * row[key].get<double>(), digits) : "-";
    };
    table.add({row["case"], std::to_string(row["groups"].get<int>()), fixed("elements", 1, 1e-6),
               fixed("code_bits_per_weight", 2), fixed("microseconds", 1), fixed("gb_per_s", 0),
               fixed("traffic_gb_per_s", 0), fixed("stream_gb_per_s", 0),
               fixed("share_of_stream", 1, 100) + " %", fixed("reference_gb_per_s", 0),
               fixed("ratio_to_reference", 2)});
  }
  std::cout << device << ", words equal to the CPU's in every case\n"
            << table.to_string() << std::flush;
}

}  // namespace

Result<Json> bench_cuda(const CudaOptions& options) {
  DF11_TRY(cuda::require_device());
  DF11_ASSIGN(const std::string device, cuda::device_name(0));
  DF11_ASSIGN(const std::optional<ReferenceKernel> reference,
              ReferenceKernel::load(options.reference_ptx));
  Json rows = Json::array();
  for (const CudaCase& bench_case : cuda_cases()) {
    const auto& wanted = options.cases;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), bench_case.name) == wanted.end())
      continue;
    if (bench_case.n_elements() > options.max_elements) continue;
    DF11_ASSIGN(Json row, CaseBench(bench_case, reference, options.n_rounds).run());
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return fail(ErrorCode::invalid_argument, "no such case");
  if (!options.json) print(rows, device);
  return Json{{"device", device}, {"rounds", options.n_rounds}, {"cases", std::move(rows)}};
}

}  // namespace df11::bench
