// Many groups a call: mixed plans, more than a launch takes, several streams, a captured graph.
#include <cuda_runtime.h>

#include <cmath>
#include <memory>

#include "device.h"
#include "support/named_inputs.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

class CudaBatch : public DeviceTest {
 protected:
  // Words by exponents of `decay`: mean codes from 1 to 6 bits.
  void add(size_t n, double decay, std::optional<cuda::DecodePlan> plan = std::nullopt) {
    std::vector<double> frequencies;
    for (int i = 0; i < 60; ++i) frequencies.push_back(std::exp(-decay * i));
    words.push_back(random_words(n, frequencies, 80, n));
    Result<HostGroup> host = host_group(encode_words(words.back()));
    ASSERT_TRUE(succeeded(host));
    Result<cuda::PreparedGroup> group = cuda::PreparedGroup::upload(*host, 0, nullptr, plan);
    ASSERT_TRUE(succeeded(group));
    groups.push_back(std::move(*group));
    outputs.push_back(std::make_unique<GuardedWords>(n));
  }
  std::vector<cuda::DecodeTarget> targets() const {
    std::vector<cuda::DecodeTarget> all;
    for (size_t i = 0; i < groups.size(); ++i) all.push_back({&groups[i], outputs[i]->words()});
    return all;
  }
  void expect_decoded() const {
    EXPECT_EQ(status->read(), 0u);
    for (size_t i = 0; i < groups.size(); ++i) {
      EXPECT_TRUE(outputs[i]->download() == words[i]) << "group " << i;
      EXPECT_TRUE(outputs[i]->canaries_intact()) << "group " << i;
    }
  }

  std::vector<std::vector<uint16_t>> words;
  std::vector<cuda::PreparedGroup> groups;
  std::vector<std::unique_ptr<GuardedWords>> outputs;
  std::optional<DeviceStatus> status;
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) status.emplace();
  }
};

TEST_F(CudaBatch, SevenTensorsInOneLaunch) {
  for (const size_t n : {160000, 40001, 40002, 160003, 480000, 480001, 480007}) add(n, 0.7);
  ASSERT_TRUE(succeeded(cuda::decode(targets(), status->word(), nullptr)));
  expect_decoded();
}

TEST_F(CudaBatch, MixedPlans) {
  for (int i = 0; i < 9; ++i) {
    add(30000 + 777 * i,
        i % 3 == 0   ? 5.0
        : i % 3 == 1 ? 0.7
                     : 0.05,
        i == 4 ? std::optional(cuda::DecodePlan::kOneCode) : std::nullopt);
  }
  ASSERT_TRUE(succeeded(cuda::decode(targets(), status->word(), nullptr)));
  expect_decoded();
}

TEST_F(CudaBatch, MoreGroupsThanALaunchTakes) {
  for (size_t i = 0; i < 131; ++i) add(1 + 37 * i, i % 5 == 0 ? 0.05 : 0.7);
  ASSERT_TRUE(succeeded(cuda::decode(targets(), status->word(), nullptr)));
  expect_decoded();
}

TEST_F(CudaBatch, MayBeCapturedInAGraph) {
  add(100000, 0.7);
  add(50000, 0.05);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_TRUE(succeeded(cuda::decode(targets(), status->word(), stream)));
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  expect_decoded();
  (void)cudaGraphExecDestroy(executable);
  (void)cudaGraphDestroy(graph);
  (void)cudaStreamDestroy(stream);
}

TEST_F(CudaBatch, RefusesWhatItCanSee) {
  add(1000, 0.7);
  const auto decode_to = [&](uint16_t* to, uint32_t* word) {
    const cuda::DecodeTarget target{&groups[0], to};
    return cuda::decode({&target, 1}, word, nullptr);
  };
  EXPECT_TRUE(failed_with(decode_to(outputs[0]->words() + 1, status->word()),
                          ErrorCode::invalid_argument, "aligned"));
  EXPECT_TRUE(
      failed_with(decode_to(outputs[0]->words(), nullptr), ErrorCode::invalid_argument, "status"));
  EXPECT_TRUE(succeeded(cuda::decode({}, nullptr, nullptr)));
}

}  // namespace
}  // namespace df11::test
