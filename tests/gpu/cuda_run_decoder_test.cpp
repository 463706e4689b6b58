// The Decoder on CUDA: the same words and the same verdicts as the CPU decoder's.
#include <cmath>

#include "device.h"
#include "format/df11_layout.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

class CudaRunDecoder : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    Result<std::unique_ptr<Decoder>> made = make_decoder(DeviceChoice::kCuda);
    ASSERT_TRUE(succeeded(made));
    decoder = std::move(*made);
  }
  Result<std::unique_ptr<GroupDecoder>> prepare(const GroupTensors& tensors) const {
    DF11_ASSIGN(const LookupTables luts,
                LookupTables::parse(tensors.luts, tensors.luts.size() / 256));
    return decoder->prepare(luts);
  }
  std::unique_ptr<Decoder> decoder;
};

TEST_F(CudaRunDecoder, HasAName) {
  EXPECT_EQ(decoder->name().substr(0, 6), "cuda (") << decoder->name();
  EXPECT_EQ((*make_decoder(DeviceChoice::kAuto))->name(), "cpu");
  EXPECT_EQ((*make_decoder(DeviceChoice::kCpu))->name(), "cpu");
}

TEST_F(CudaRunDecoder, DecodesRunsOfAnyLength) {
  for (const NamedInput& input : named_inputs()) {
    const GroupTensors tensors = *encode_group(input.spans(), Executor(), 1 << 20);
    const auto group = prepare(tensors);
    ASSERT_TRUE(succeeded(group));
    for (const size_t blocks : {size_t{1}, size_t{3}, size_t{1000}}) {
      const Result<std::vector<uint16_t>> words = decode_group(tensors, **group, blocks, 0xff);
      ASSERT_TRUE(succeeded(words)) << input.name << ", runs of " << blocks;
      ASSERT_TRUE(*words == input.words()) << input.name << ", runs of " << blocks;
    }
  }
}

TEST_F(CudaRunDecoder, DecodesOnManyThreads) {
  std::vector<double> frequencies;
  for (int i = 0; i < 40; ++i) frequencies.push_back(std::exp(-0.7 * i));
  const std::vector<uint16_t> words = random_words(12'000'001, frequencies, 90, 5);
  const HostGroup group = *host_group(encode_words(words));
  std::vector<uint16_t> decoded(words.size());
  ASSERT_TRUE(succeeded(group.decode(*decoder, Executor(8), decoded.data())));
  EXPECT_TRUE(decoded == words);
}

TEST_F(CudaRunDecoder, GivesTheVerdictsOfTheCpuDecoder) {
  Random random(31);
  int n_refused = 0;
  for (const NamedInput& input : named_inputs()) {
    const GroupTensors good = *encode_group(input.spans(), Executor(), 1 << 20);
    for (int round = 0; round < 4; ++round) {
      GroupTensors bad = good;
      std::vector<uint8_t>& bytes = round % 2 == 0 ? bad.gaps : bad.encoded_exponent;
      bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1u << random.below(8));
      const size_t blocks = 1 + random.below(5);
      const auto by_cpu = decode_group(bad, blocks);
      const auto cuda_group = prepare(bad);
      ASSERT_TRUE(succeeded(cuda_group));
      const auto by_cuda = decode_group(bad, **cuda_group, blocks);
      ASSERT_EQ(by_cpu.has_value(), by_cuda.has_value()) << input.name;
      if (by_cpu) {
        ASSERT_TRUE(*by_cpu == *by_cuda) << input.name;
      } else {
        ASSERT_EQ(by_cpu.error().describe(), by_cuda.error().describe()) << input.name;
        ++n_refused;
      }
    }
  }
  EXPECT_GT(n_refused, 50);
}

}  // namespace
}  // namespace df11::test
