// What the tests on a device share: skipping without one, output memory with canaries.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compressor/group_encoder.h"
#include "decoder/cuda/cuda_decoder.h"
#include "decoder/host_group.h"

namespace df11::test {

// Skips the test, loudly, where nothing can be decoded with CUDA.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Result<void> device = cuda::require_device(); !device)
      GTEST_SKIP() << "NOT TESTED: " << device.error().describe();
  }
};

// Device memory for `n` words between canaries, filled with 0xa5.
class GuardedWords {
 public:
  explicit GuardedWords(size_t n);
  GuardedWords(const GuardedWords&) = delete;
  GuardedWords& operator=(const GuardedWords&) = delete;
  ~GuardedWords();

  uint16_t* words() const;
  std::vector<uint16_t> download() const;
  bool canaries_intact() const;

 private:
  static constexpr size_t kGuardBytes = 512;
  std::vector<uint8_t> bytes() const;
  uint8_t* data_ = nullptr;
  size_t n_;
};

// The status word.
class DeviceStatus {
 public:
  DeviceStatus();
  DeviceStatus(const DeviceStatus&) = delete;
  DeviceStatus& operator=(const DeviceStatus&) = delete;
  ~DeviceStatus();
  uint32_t* word() const { return word_; }
  // Waits for the device. Fails the test if a kernel faulted.
  uint32_t read() const;

 private:
  uint32_t* word_ = nullptr;
};

Result<HostGroup> host_group(const GroupTensors& tensors);

struct DeviceDecode {
  std::vector<uint16_t> words;
  uint32_t status;
  bool canaries_intact;
};
// Uploads, decodes once and downloads.
DeviceDecode decode_on_device(const HostGroup& group,
                              std::optional<cuda::DecodePlan> plan = std::nullopt);

inline constexpr cuda::DecodePlan kAllPlans[] = {
    cuda::DecodePlan::kPeek11, cuda::DecodePlan::kPeek12, cuda::DecodePlan::kOneCode};

// Words whose exponents have these relative frequencies, from `first_exponent` on.
std::vector<uint16_t> random_words(size_t n, const std::vector<double>& frequencies,
                                   uint32_t first_exponent, uint64_t seed);
GroupTensors encode_words(const std::vector<uint16_t>& words);

}  // namespace df11::test
