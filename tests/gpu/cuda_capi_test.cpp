// The CUDA part of the C interface.
#include <cmath>

#include "decoder/capi/df11.h"
#include "device.h"
#include "support/capi_tensors.h"

namespace df11::test {
namespace {

using CudaCapi = DeviceTest;

df11_group* make_group(const GroupTensors& g) {
  const df11_group_tensors tensors = capi_tensors(g);
  df11_group* group = nullptr;
  EXPECT_EQ(df11_make_group(&tensors, &group), DF11_OK) << df11_last_error();
  return group;
}

TEST_F(CudaCapi, DecodesABatch) {
  ASSERT_EQ(df11_cuda_available(), DF11_OK) << df11_last_error();
  EXPECT_GT(df11_cuda_devices(), 0);
  constexpr size_t kGroups = 40;
  std::vector<std::vector<uint16_t>> words;
  std::vector<df11_cuda_group*> prepared(kGroups, nullptr);
  std::vector<std::unique_ptr<GuardedWords>> outputs;
  std::vector<uint16_t*> pointers;
  for (size_t i = 0; i < kGroups; ++i) {
    words.push_back(random_words(1000 + 991 * i, {8, 4, 2, 1, 1, 0.1}, 100, i));
    df11_group* const group = make_group(encode_words(words.back()));
    ASSERT_EQ(df11_prepare_cuda(group, 0, nullptr, &prepared[i]), DF11_OK) << df11_last_error();
    df11_free_group(group);
    EXPECT_EQ(df11_cuda_n_elements(prepared[i]), words[i].size());
    EXPECT_GT(df11_cuda_device_bytes(prepared[i]), words[i].size());
    outputs.push_back(std::make_unique<GuardedWords>(words[i].size()));
    pointers.push_back(outputs.back()->words());
  }
  const DeviceStatus status;
  ASSERT_EQ(df11_decode_cuda(prepared.data(), pointers.data(), kGroups, status.word(), nullptr),
            DF11_OK)
      << df11_last_error();
  EXPECT_EQ(status.read(), 0u);
  for (size_t i = 0; i < kGroups; ++i) {
    EXPECT_TRUE(outputs[i]->download() == words[i]) << i;
    EXPECT_TRUE(outputs[i]->canaries_intact()) << i;
    df11_free_cuda_group(prepared[i]);
  }
}

TEST_F(CudaCapi, RefusesADeviceThatIsNotThere) {
  df11_group* const group = make_group(encode_words(random_words(100, {1, 1}, 100, 1)));
  df11_cuda_group* prepared = nullptr;
  EXPECT_EQ(df11_prepare_cuda(group, 99, nullptr, &prepared), DF11_INVALID_ARGUMENT);
  EXPECT_STREQ(df11_last_error(), "no CUDA device 99");
  df11_free_group(group);
}

}  // namespace
}  // namespace df11::test
