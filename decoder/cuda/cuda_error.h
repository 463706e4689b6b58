// CUDA's error codes as Errors, and the owners of CUDA's resources. For .cu and .cpp files that
// include cuda_runtime.h.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "format/error.h"

namespace df11::cuda {

inline Result<void> check(cudaError_t code, const char* action) {
  if (code == cudaSuccess) return {};
  (void)cudaGetLastError();  // an error of this call alone must not show up in a later one
  return fail(ErrorCode::io_error,
              std::string("CUDA: ") + action + ": " + cudaGetErrorString(code));
}

// Makes `device` current for this thread while it lives.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    if (cudaGetDevice(&previous_) != cudaSuccess) previous_ = device;
    if (previous_ != device) (void)cudaSetDevice(device);
    device_ = device;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() {
    if (previous_ != device_) (void)cudaSetDevice(previous_);
  }

 private:
  int previous_ = 0, device_ = 0;
};

// Device memory. Freed on the device it came from, whichever is current.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) (void)cudaFree(data_);
  }

  // At least `n` bytes on the current device, zeroed when they are new; contents are lost. Zeroed
  // in the order of `stream`: another stream's work would not wait for it. No work may be pending
  // on the old memory.
  Result<void> ensure(size_t n, cudaStream_t stream) {
    if (n <= capacity_) return {};
    if (data_ != nullptr) (void)cudaFree(data_);
    data_ = nullptr;
    capacity_ = 0;
    DF11_TRY(check(cudaMalloc(reinterpret_cast<void**>(&data_), n), "cudaMalloc"));
    capacity_ = n;
    return check(cudaMemsetAsync(data_, 0, n, stream), "cudaMemset");
  }
  uint8_t* data() const { return data_; }
  size_t size() const { return capacity_; }

 private:
  void swap(DeviceBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
  }
  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace df11::cuda
