// Stands in for the CUDA decoder in a build without CUDA.
#include "decoder/cuda/cuda_decoder.h"
#include "decoder/decoder.h"

namespace df11 {

namespace {
auto no_cuda() {
  return fail(ErrorCode::unsupported, "built without CUDA");
}
}  // namespace

Result<std::unique_ptr<Decoder>> make_cuda_decoder() {
  return no_cuda();
}

namespace cuda {

struct PreparedGroup::Buffers {};

PreparedGroup::PreparedGroup(PreparedGroup&&) noexcept = default;
PreparedGroup& PreparedGroup::operator=(PreparedGroup&&) noexcept = default;
PreparedGroup::~PreparedGroup() = default;
PreparedGroup::PreparedGroup() = default;

uint64_t PreparedGroup::device_bytes() const {
  return 0;
}
Result<PreparedGroup> PreparedGroup::upload(const HostGroup&, int, Stream,
                                            std::optional<DecodePlan>) {
  return no_cuda();
}
Result<void> decode(std::span<const DecodeTarget>, uint32_t*, Stream) {
  return no_cuda();
}
int n_devices() {
  return 0;
}
Result<std::string> device_name(int) {
  return no_cuda();
}
Result<void> require_device() {
  return no_cuda();
}

}  // namespace cuda

}  // namespace df11
