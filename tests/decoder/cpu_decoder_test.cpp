#include <gtest/gtest.h>

#include "compressor/group_encoder.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/reference_decoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

constexpr size_t kAllBlocks = 1 << 20;

GroupTensors encoded(const NamedInput& input) {
  return *encode_group(input.spans(), Executor(1), size_t{1} << 30);
}

// The two oracles agree with the source: what the other tests compare with is right.
TEST(ReferenceDecoder, RestoresEveryInput) {
  for (const NamedInput& input : named_inputs()) {
    SCOPED_TRACE(input.name);
    const GroupTensors group = encoded(input);
    EXPECT_TRUE(reference_decode(group) == input.words());
    EXPECT_TRUE(reference_decode_by_windows(group) == input.words());
  }
}

TEST(CpuDecoder, RestoresEveryInputInOneRun) {
  for (const NamedInput& input : named_inputs()) {
    SCOPED_TRACE(input.name);
    const Result<std::vector<uint16_t>> words = decode_group(encoded(input), kAllBlocks);
    ASSERT_TRUE(succeeded(words));
    EXPECT_TRUE(*words == input.words());
  }
}

class RunSize : public ::testing::TestWithParam<size_t> {};

TEST_P(RunSize, DoesNotMatter) {
  for (const NamedInput& input : named_inputs()) {
    SCOPED_TRACE(input.name);
    const Result<std::vector<uint16_t>> words = decode_group(encoded(input), GetParam());
    EXPECT_TRUE(succeeded(words) && *words == input.words());
  }
}

INSTANTIATE_TEST_SUITE_P(CpuDecoder, RunSize, ::testing::Values(1, 2, 3, 4, 5, 7, 8),
                         ::testing::PrintToStringParamName());

TEST(CpuDecoder, DoesNotDependOnWhatFollowsTheStream) {
  // The interface promises lookahead bytes, zeros at the end; their content must not count.
  for (const NamedInput& input : named_inputs()) {
    SCOPED_TRACE(input.name);
    const Result<std::vector<uint16_t>> words = decode_group(encoded(input), kAllBlocks, 0xff);
    ASSERT_TRUE(succeeded(words));
    EXPECT_TRUE(*words == input.words());
  }
}

TEST(CpuDecoder, HasAName) {
  EXPECT_EQ(make_cpu_decoder()->name(), "cpu");
  for (const DeviceChoice choice : {DeviceChoice::kAuto, DeviceChoice::kCpu})
    EXPECT_EQ((*make_decoder(choice))->name(), "cpu");
}

TEST(CpuDecoder, OneGroupDecoderServesSeveralThreads) {
  const NamedInput& input = named_inputs()[0];
  const GroupTensors group = encoded(input);
  const std::vector<uint16_t> expected = input.words();
  const LookupTables luts = *LookupTables::parse(group.luts, group.luts.size() / 256);
  const std::unique_ptr<GroupDecoder> decoder = *make_cpu_decoder()->prepare(luts);
  const std::vector<uint32_t> positions = positions_of(group);
  std::vector<uint8_t> code = group.encoded_exponent;
  code.resize(code.size() + kCodeLookaheadBytes);
  const Result<void> done = Executor(4).for_each(64, [&](size_t) -> Result<void> {
    std::vector<uint16_t> words(expected.size());
    BlockRun run;
    run.code = code.data();
    run.n_code_bytes = group.encoded_exponent.size();
    run.gaps = group.gaps.data();
    run.positions = positions;
    run.sign_mantissa = group.sign_mantissa.data();
    run.ends_group = true;
    DF11_TRY(decoder->decode(run, words.data()));
    return words == expected ? Result<void>{} : fail(ErrorCode::corrupt_stream, "other words");
  });
  EXPECT_TRUE(succeeded(done));
}

}  // namespace
}  // namespace df11::test
