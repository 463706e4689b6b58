#include "decoder/cuda/cuda_decoder.h"

#include <cstring>
#include <vector>

#include "decoder/cuda/cuda_error.h"
#include "format/df11_layout.h"

namespace df11::cuda {

struct PreparedGroup::Buffers {
  DeviceBuffer image, code, sign_mantissa, gaps, positions;

  uint64_t bytes() const {
    return image.size() + code.size() + sign_mantissa.size() + gaps.size() + positions.size();
  }
};

PreparedGroup::PreparedGroup(PreparedGroup&&) noexcept = default;
PreparedGroup& PreparedGroup::operator=(PreparedGroup&&) noexcept = default;
PreparedGroup::~PreparedGroup() = default;
PreparedGroup::PreparedGroup() : buffers_(std::make_unique<Buffers>()) {}

uint64_t PreparedGroup::device_bytes() const {
  return buffers_->bytes();
}

Result<void> require_device() {
  if (n_devices() != 0) return {};
  int n = 0;
  const cudaError_t code = cudaGetDeviceCount(&n);
  (void)cudaGetLastError();
  return fail(ErrorCode::unsupported,
              std::string("no CUDA device: ") +
                  (code == cudaSuccess ? "none is visible" : cudaGetErrorString(code)));
}

Result<PreparedGroup> PreparedGroup::upload(const HostGroup& group, int device, Stream stream,
                                            std::optional<DecodePlan> plan) {
  DF11_TRY(require_device());
  DF11_TRY(prepare_device(device));
  const DeviceScope scope(device);
  PreparedGroup prepared;
  prepared.device_ = device;
  Buffers& buffers = *prepared.buffers_;
  const TableImage image = build_table_image(
      group.tables(), plan.value_or(choose_plan(group.code().size(), group.n_elements())));

  const auto put = [&](DeviceBuffer& buffer, const void* data, size_t n) -> Result<void> {
    DF11_TRY(buffer.ensure(n + kDevicePaddingBytes, stream));
    return check(cudaMemcpyAsync(buffer.data(), data, n, cudaMemcpyHostToDevice, stream),
                 "copying a group to the device");
  };
  DF11_TRY(put(buffers.image, image.bytes.data(), image.bytes.size()));
  DF11_TRY(put(buffers.code, group.code().data(), group.code().size()));
  DF11_TRY(put(buffers.sign_mantissa, group.sign_mantissa().data(), group.sign_mantissa().size()));
  DF11_TRY(put(buffers.gaps, group.gaps().data(), group.gaps().size()));
  DF11_TRY(put(buffers.positions, group.positions().data(), 4 * group.positions().size()));
  DF11_TRY(check(cudaStreamSynchronize(stream), "copying a group to the device"));

  prepared.launch_.plan = image.plan;
  prepared.launch_.max_block_elements = max_block_elements(group.positions());
  GroupArguments& arguments = prepared.launch_.arguments;
  arguments.image = buffers.image.data();
  arguments.rows = buffers.image.data() + rows_offset(image.plan);
  arguments.code = buffers.code.data();
  arguments.sign_mantissa = buffers.sign_mantissa.data();
  arguments.gaps = buffers.gaps.data();
  arguments.positions = reinterpret_cast<const uint32_t*>(buffers.positions.data());
  arguments.n_code_bytes = static_cast<uint32_t>(group.code().size());
  arguments.n_elements = static_cast<uint32_t>(group.n_elements());
  arguments.n_blocks = static_cast<uint32_t>(group.n_blocks());
  arguments.ends_group = 1;
  return prepared;
}

Result<void> decode(std::span<const DecodeTarget> targets, uint32_t* status, Stream stream) {
  if (targets.empty()) return {};
  if (status == nullptr) return fail(ErrorCode::invalid_argument, "no status word");
  const int device = targets.front().group->device();
  for (const DecodeTarget& target : targets) {
    if (target.group->device() != device)
      return fail(ErrorCode::invalid_argument, "groups on several devices in one call");
    if (target.words == nullptr || reinterpret_cast<uintptr_t>(target.words) % 16 != 0)
      return fail(ErrorCode::invalid_argument, "words must be aligned to 16 bytes");
  }
  const DeviceScope scope(device);
  // Any number of groups, without allocating: launch() orders by plan what one piece holds.
  constexpr size_t kPiece = 3 * kMaxLaunchGroups;
  LaunchGroup groups[kPiece];
  while (!targets.empty()) {
    const size_t n = std::min(kPiece, targets.size());
    for (size_t i = 0; i < n; ++i) {
      groups[i] = targets[i].group->launch_group();
      groups[i].arguments.words = targets[i].words;
    }
    DF11_TRY(launch(std::span(groups).first(n), status, stream));
    targets = targets.subspan(n);
  }
  return {};
}

}  // namespace df11::cuda
