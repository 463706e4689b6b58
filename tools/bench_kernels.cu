#include "tools/bench_kernels.h"

#include "decoder/cuda/cuda_error.h"
#include "format/df11_layout.h"

namespace df11::bench {

namespace {

constexpr int kThreads = 512;
constexpr int kMaxGroups = cuda::kMaxLaunchGroups;

struct Segments {
  StreamGroup groups[kMaxGroups];
  uint32_t first_cta[kMaxGroups + 1];
  uint32_t vectors_a_cta[kMaxGroups];  // of eight words
};

__global__ void __launch_bounds__(kThreads)
    stream_kernel(const __grid_constant__ Segments segments) {
  int group = 0;
  while (segments.first_cta[group + 1] <= blockIdx.x) ++group;
  const StreamGroup& g = segments.groups[group];
  const uint32_t cta = blockIdx.x - segments.first_cta[group];
  const uint32_t at = cta * kBlockBytes + threadIdx.x * 8;
  uint2 code = make_uint2(0, 0);
  if (at + 8 <= g.n_code_bytes) code = *reinterpret_cast<const uint2*>(g.code + at);
  const uint32_t begin = cta * segments.vectors_a_cta[group];
  const uint32_t end = min(begin + segments.vectors_a_cta[group], g.n_elements / 8);
  for (uint32_t v = begin + threadIdx.x; v < end; v += kThreads) {
    const uint2 s = reinterpret_cast<const uint2*>(g.sign_mantissa)[v];
    __stcs(reinterpret_cast<uint4*>(g.words) + v, make_uint4(s.x ^ code.x, s.y ^ code.y, s.x, s.y));
  }
}

__global__ void compare_kernel(const uint16_t* a, const uint16_t* b, uint64_t n,
                               unsigned long long* n_different) {
  unsigned long long different = 0;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < n; i += step)
    different += a[i] != b[i];
  if (different != 0) atomicAdd(n_different, different);
}

}  // namespace

Result<void> launch_stream(std::span<const StreamGroup> groups, bool align, cuda::Stream stream) {
  if (groups.empty() || groups.size() > kMaxGroups)
    return fail(ErrorCode::invalid_argument, "1 to 32 groups");
  Segments segments{};
  uint32_t n_ctas = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint32_t n = static_cast<uint32_t>(n_code_blocks(groups[i].n_code_bytes));
    const uint32_t vectors = static_cast<uint32_t>(ceil_div(groups[i].n_elements / 8, n));
    segments.groups[i] = groups[i];
    segments.first_cta[i] = n_ctas;
    segments.vectors_a_cta[i] = align ? (vectors + 31) / 32 * 32 : vectors;
    n_ctas += n;
  }
  segments.first_cta[groups.size()] = n_ctas;
  stream_kernel<<<n_ctas, kThreads, 0, stream>>>(segments);
  return cuda::check(cudaGetLastError(), "launching the stream kernel");
}

Result<void> launch_compare(const uint16_t* a, const uint16_t* b, uint64_t n,
                            unsigned long long* n_different, cuda::Stream stream) {
  compare_kernel<<<1024, 256, 0, stream>>>(a, b, n, n_different);
  return cuda::check(cudaGetLastError(), "launching the comparison");
}

}  // namespace df11::bench
