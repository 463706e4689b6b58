// Stands in for the GPU measurements in a build without CUDA.
#include "tools/bench.h"

namespace df11::bench {

Result<Json> bench_cuda(const CudaOptions&) {
  return fail(ErrorCode::unsupported, "built without CUDA");
}

}  // namespace df11::bench
