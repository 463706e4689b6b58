#include "decoder/cuda/launch.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

#include "decoder/cuda/cuda_error.h"
#include "decoder/cuda/decode_kernel.cuh"

namespace df11::cuda {

namespace {

using Peek11 = Geometry<11, 1, 1>;
using Peek12 = Geometry<12, 1, 1>;
// Two blocks share one table of 40 KiB: better for many blocks, worse for a few.
using Peek12Shared = Geometry<12, 2, 2>;
using OneCode = Geometry<0, 1, 1>;
constexpr uint64_t kSharedTableBlocks = 2500;

constexpr uint32_t kMaxBlockElements = kBlockBits;  // codes have a bit at least
constexpr int kMaxDevices = 64;

struct DeviceLimits {
  std::once_flag once;
  Result<void> prepared = fail(ErrorCode::invalid_argument, "the device was not prepared");
  uint32_t shared_bytes = 0;  // a CTA may ask for
  uint32_t prefetch_blocks = 0;
};
std::array<DeviceLimits, kMaxDevices>& device_limits() {
  static std::array<DeviceLimits, kMaxDevices> limits;
  return limits;
}

template <typename G>
Result<void> allow_shared(uint32_t n_bytes) {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const int n = static_cast<int>(n_bytes);
  DF11_TRY(check(cudaFuncSetAttribute(decode_kernel<G, 1>, kAttribute, n),
                 "no code of this program runs on the device"));
  return check(cudaFuncSetAttribute(decode_kernel<G, kMaxLaunchGroups>, kAttribute, n),
               "cudaFuncSetAttribute");
}

Result<void> prepare(int device, DeviceLimits& limits) {
  const DeviceScope scope(device);
  int shared_bytes = 0, n_multiprocessors = 0;
  DF11_TRY(
      check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
            "cudaDeviceGetAttribute"));
  DF11_TRY(check(cudaDeviceGetAttribute(&n_multiprocessors, cudaDevAttrMultiProcessorCount, device),
                 "cudaDeviceGetAttribute"));
  limits.shared_bytes = static_cast<uint32_t>(shared_bytes);
  // The CTAs so far ahead start about one block's time later.
  limits.prefetch_blocks = 3 * static_cast<uint32_t>(n_multiprocessors);
  DF11_TRY(allow_shared<Peek11>(limits.shared_bytes));
  DF11_TRY(allow_shared<Peek12>(limits.shared_bytes));
  DF11_TRY(allow_shared<Peek12Shared>(limits.shared_bytes));
  return allow_shared<OneCode>(limits.shared_bytes);
}

template <typename G, int kGroups>
Result<void> launch_as(const DeviceLimits& limits, std::span<const LaunchGroup> groups,
                       uint32_t max_elements, uint32_t* status, Stream stream) {
  LaunchArguments<kGroups> arguments{};
  uint32_t n_ctas = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    arguments.groups[i] = groups[i].arguments;
    arguments.groups[i].first_cta = n_ctas;
    n_ctas += (groups[i].arguments.n_blocks + G::kBlocks - 1) / G::kBlocks;
  }
  arguments.status = status;
  arguments.n_groups = static_cast<uint32_t>(groups.size());
  arguments.max_block_elements = max_elements;
  arguments.prefetch_blocks = limits.prefetch_blocks;
  decode_kernel<G, kGroups>
      <<<n_ctas, G::kThreads, G::shared_bytes(max_elements), stream>>>(arguments);
  return check(cudaGetLastError(), "launching the decode kernel");
}

template <typename G>
Result<void> launch_with(const DeviceLimits& limits, std::span<const LaunchGroup> groups,
                         uint32_t max_elements, uint32_t* status, Stream stream) {
  if (groups.size() == 1) return launch_as<G, 1>(limits, groups, max_elements, status, stream);
  return launch_as<G, kMaxLaunchGroups>(limits, groups, max_elements, status, stream);
}

// One launch: all groups have plan `plan`.
Result<void> launch_plan(const DeviceLimits& limits, DecodePlan plan,
                         std::span<const LaunchGroup> groups, uint32_t* status, Stream stream) {
  uint32_t max_elements = 0;
  uint64_t n_blocks = 0;
  for (const LaunchGroup& group : groups) {
    max_elements = std::max(max_elements, std::min(group.max_block_elements, kMaxBlockElements));
    n_blocks += group.arguments.n_blocks;
  }
  const auto fits = [&](uint32_t n_bytes) { return n_bytes <= limits.shared_bytes; };
  if (plan == DecodePlan::kPeek11 && fits(Peek11::shared_bytes(max_elements)))
    return launch_with<Peek11>(limits, groups, max_elements, status, stream);
  if (plan == DecodePlan::kPeek12) {
    if (n_blocks >= kSharedTableBlocks && fits(Peek12Shared::shared_bytes(max_elements)))
      return launch_with<Peek12Shared>(limits, groups, max_elements, status, stream);
    if (fits(Peek12::shared_bytes(max_elements)))
      return launch_with<Peek12>(limits, groups, max_elements, status, stream);
  }
  // Needs the least: every image has the rows, and 43 KiB fit everywhere.
  return launch_with<OneCode>(limits, groups, max_elements, status, stream);
}

}  // namespace

uint32_t max_block_elements(std::span<const uint32_t> positions) {
  uint32_t most = 0;
  for (size_t i = 0; i + 1 < positions.size(); ++i) {
    if (positions[i + 1] > positions[i]) most = std::max(most, positions[i + 1] - positions[i]);
  }
  return std::min(most, kMaxBlockElements);
}

int n_devices() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return std::min(n, kMaxDevices);
}

Result<std::string> device_name(int device) {
  cudaDeviceProp properties;
  DF11_TRY(check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
  return std::string(properties.name);
}

Result<void> prepare_device(int device) {
  if (device < 0 || device >= n_devices())
    return fail(ErrorCode::invalid_argument, "no CUDA device " + std::to_string(device));
  DeviceLimits& limits = device_limits()[static_cast<size_t>(device)];
  std::call_once(limits.once, [&] { limits.prepared = prepare(device, limits); });
  return limits.prepared;
}

Result<void> launch(std::span<const LaunchGroup> groups, uint32_t* status, Stream stream) {
  int device = 0;
  DF11_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
  const DeviceLimits& limits = device_limits()[static_cast<size_t>(device) % kMaxDevices];
  DF11_TRY(limits.prepared);
  // At most one full launch a plan is gathered at a time.
  for (int plan = 0; plan < kDecodePlans; ++plan) {
    std::array<LaunchGroup, kMaxLaunchGroups> gathered;
    size_t n = 0;
    for (size_t i = 0; i <= groups.size(); ++i) {
      if (n == gathered.size() || (i == groups.size() && n != 0)) {
        DF11_TRY(launch_plan(limits, static_cast<DecodePlan>(plan), std::span(gathered).first(n),
                             status, stream));
        n = 0;
      }
      if (i < groups.size() && groups[i].plan == static_cast<DecodePlan>(plan) &&
          groups[i].arguments.n_blocks != 0) {
        gathered[n++] = groups[i];
      }
    }
  }
  return {};
}

}  // namespace df11::cuda
