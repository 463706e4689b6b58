#include "device.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "support/random.h"

namespace df11::test {

namespace {
void expect_success(cudaError_t code) {
  EXPECT_EQ(code, cudaSuccess) << cudaGetErrorString(code);
}
}  // namespace

GuardedWords::GuardedWords(size_t n) : n_(n) {
  expect_success(cudaMalloc(reinterpret_cast<void**>(&data_), 2 * n + 2 * kGuardBytes));
  expect_success(cudaMemset(data_, 0xa5, 2 * n + 2 * kGuardBytes));
}
GuardedWords::~GuardedWords() {
  (void)cudaFree(data_);
}
uint16_t* GuardedWords::words() const {
  return reinterpret_cast<uint16_t*>(data_ + kGuardBytes);
}
std::vector<uint8_t> GuardedWords::bytes() const {
  std::vector<uint8_t> bytes(2 * n_ + 2 * kGuardBytes);
  expect_success(cudaMemcpy(bytes.data(), data_, bytes.size(), cudaMemcpyDeviceToHost));
  return bytes;
}
std::vector<uint16_t> GuardedWords::download() const {
  std::vector<uint16_t> words(n_);
  if (n_ != 0) std::memcpy(words.data(), bytes().data() + kGuardBytes, 2 * n_);
  return words;
}
bool GuardedWords::canaries_intact() const {
  const std::vector<uint8_t> all = bytes();
  const auto intact = [](uint8_t byte) { return byte == 0xa5; };
  return std::all_of(all.begin(), all.begin() + kGuardBytes, intact) &&
         std::all_of(all.end() - kGuardBytes, all.end(), intact);
}

DeviceStatus::DeviceStatus() {
  expect_success(cudaMalloc(reinterpret_cast<void**>(&word_), sizeof *word_));
  expect_success(cudaMemset(word_, 0, sizeof *word_));
}
DeviceStatus::~DeviceStatus() {
  (void)cudaFree(word_);
}
uint32_t DeviceStatus::read() const {
  uint32_t status = ~0u;
  expect_success(cudaDeviceSynchronize());
  expect_success(cudaMemcpy(&status, word_, sizeof status, cudaMemcpyDeviceToHost));
  return status;
}

Result<HostGroup> host_group(const GroupTensors& tensors) {
  return HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa,
                          tensors.gaps, tensors.output_positions});
}

DeviceDecode decode_on_device(const HostGroup& group, std::optional<cuda::DecodePlan> plan) {
  Result<cuda::PreparedGroup> prepared = cuda::PreparedGroup::upload(group, 0, nullptr, plan);
  if (!prepared) {
    ADD_FAILURE() << prepared.error().describe();
    return {};
  }
  const GuardedWords words(group.n_elements());
  const DeviceStatus status;
  const cuda::DecodeTarget target{&*prepared, words.words()};
  const Result<void> decoded = cuda::decode({&target, 1}, status.word(), nullptr);
  EXPECT_TRUE(decoded) << decoded.error().describe();
  const uint32_t bits = status.read();
  return {words.download(), bits, words.canaries_intact()};
}

std::vector<uint16_t> random_words(size_t n, const std::vector<double>& frequencies,
                                   uint32_t first_exponent, uint64_t seed) {
  double total = 0, sum = 0;
  for (const double frequency : frequencies) total += frequency;
  std::vector<uint8_t> exponents;  // 4096 of them, in proportion
  for (size_t i = 0; i < frequencies.size(); ++i) {
    sum += frequencies[i];
    exponents.resize(static_cast<size_t>(sum / total * 4096 + 0.5),
                     static_cast<uint8_t>(first_exponent + i));
  }
  Random random(seed);
  std::vector<uint16_t> words(n);
  for (uint16_t& word : words) {
    const uint64_t bits = random.next();
    word = bf16_join(exponents[bits % exponents.size()], static_cast<uint8_t>(bits >> 32));
  }
  return words;
}

GroupTensors encode_words(const std::vector<uint16_t>& words) {
  const std::span<const uint16_t> member[] = {words};
  return *encode_group(member, Executor(), size_t{1} << 22);
}

}  // namespace df11::test
