#include <cstdlib>

#include "decoder/decoder.h"

namespace df11 {

namespace {

class HeapMemory final : public BufferMemory {
 public:
  Result<void*> allocate(size_t n_bytes) override {
    void* const data = std::malloc(n_bytes + (n_bytes == 0));
    if (data == nullptr) return fail(ErrorCode::io_error, "out of memory");
    return data;
  }
  void deallocate(void* data) override { std::free(data); }
};

}  // namespace

std::shared_ptr<BufferMemory> heap_memory() {
  static const auto memory = std::make_shared<HeapMemory>();
  return memory;
}

Result<std::unique_ptr<Decoder>> make_decoder(DeviceChoice choice) {
  if (choice == DeviceChoice::kCuda) return make_cuda_decoder();
  return make_cpu_decoder();
}

}  // namespace df11
