#include "compressor/group_encoder.h"

#include <gtest/gtest.h>

#include "format/df11_layout.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/reference_encoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

// What the reference makes with the code that the codebook chose; codes themselves are compared in
// codebook_test.
GroupTensors reference_group(const NamedInput& input) {
  const Codebook book = *build_codebook(exponent_counts(input.words()));
  GroupTensors tensors = reference_encode(input.members, code_of(book));
  tensors.luts.assign(book.luts.bytes().begin(), book.luts.bytes().end());
  return tensors;
}

void expect_equal(const GroupTensors& actual, const GroupTensors& expected) {
  EXPECT_TRUE(actual.luts == expected.luts) << "luts";
  EXPECT_TRUE(actual.encoded_exponent == expected.encoded_exponent) << "encoded_exponent";
  EXPECT_TRUE(actual.sign_mantissa == expected.sign_mantissa) << "sign_mantissa";
  EXPECT_TRUE(actual.gaps == expected.gaps) << "gaps";
  EXPECT_TRUE(actual.output_positions == expected.output_positions) << "output_positions";
  EXPECT_TRUE(actual.split_positions == expected.split_positions) << "split_positions";
}

constexpr size_t kAll = size_t{1} << 40;

TEST(GroupEncoder, EqualsTheReferenceForEverySliceSize) {
  const Executor one(1), four(4);
  for (const NamedInput& input : named_inputs()) {
    const GroupTensors expected = reference_group(input);
    const size_t n = expected.sign_mantissa.size();
    for (const size_t slice_elements :
         {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{63}, size_t{64}, size_t{65},
          size_t{4095}, size_t{100'003}, kAll}) {
      // Tiny slices of large groups: every border between slices costs a lock.
      if (n / slice_elements > 60'000) continue;
      for (const Executor* executor : {&one, &four}) {
        SCOPED_TRACE(input.name + ", slices of " + std::to_string(slice_elements) + ", threads " +
                     std::to_string(executor->n_threads()));
        const Result<GroupTensors> actual = encode_group(input.spans(), *executor, slice_elements);
        ASSERT_TRUE(succeeded(actual));
        expect_equal(*actual, expected);
        if (HasFailure()) return;
      }
    }
  }
}

// A sink that keeps the bytes and fails the test when a byte is written twice or not at all.
class CheckingSink final : public GroupSink {
 public:
  explicit CheckingSink(const GroupPlan& plan) {
    const uint64_t n_bytes = plan.n_code_bytes();
    const std::array<uint64_t, 4> sizes = {n_bytes, plan.n_elements(), gaps_bytes(n_bytes),
                                           4 * n_output_positions(n_bytes)};
    for (size_t i = 0; i < 4; ++i) {
      bytes_[i].resize(sizes[i]);
      writes_[i].resize(sizes[i], 0);
    }
  }
  Result<void> write(GroupStream stream, uint64_t offset_bytes, ByteSpan bytes) override {
    const std::lock_guard lock(mutex_);
    const size_t s = static_cast<size_t>(stream);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes_[s].at(offset_bytes + i) = bytes[i];
      ++writes_[s].at(offset_bytes + i);
    }
    return {};
  }
  void expect_each_byte_once() const {
    for (size_t s = 0; s < 4; ++s) {
      for (size_t i = 0; i < writes_[s].size(); ++i) {
        ASSERT_EQ(writes_[s][i], 1) << "stream " << s << ", byte " << i;
      }
    }
  }
  const std::vector<uint8_t>& bytes(GroupStream stream) const {
    return bytes_[static_cast<size_t>(stream)];
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<uint8_t>, 4> bytes_;
  std::array<std::vector<int>, 4> writes_;
};

// Cuts `words` at random places, empty slices included, and encodes the slices in random order.
void check_random_cuts(const NamedInput& input, bool empty_slices, uint64_t seed) {
  const std::vector<uint16_t> words = input.words();
  Random random(seed);
  std::vector<size_t> cuts = {0, words.size()};
  for (size_t i = 0; i < 6; ++i) cuts.push_back(random.below(words.size() + 1));
  if (empty_slices) cuts.insert(cuts.end(), {0, words.size(), cuts[2], cuts[2]});
  std::sort(cuts.begin(), cuts.end());
  if (!empty_slices) cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  std::vector<std::span<const uint16_t>> slices;
  std::vector<SliceCounts> counts;
  std::vector<size_t> order;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    slices.push_back(std::span(words).subspan(cuts[i], cuts[i + 1] - cuts[i]));
    counts.push_back(SliceCounts::of(slices.back()));
    order.push_back(i);
  }
  random.shuffle(order);
  const Result<GroupPlan> plan = GroupPlan::make(counts);
  ASSERT_TRUE(succeeded(plan));
  CheckingSink sink(*plan);
  GroupEncoder encoder(*plan, sink);
  GroupEncoder::Scratch scratch;
  for (const size_t i : order) ASSERT_TRUE(succeeded(encoder.encode(i, slices[i], scratch)));
  ASSERT_TRUE(succeeded(encoder.finish()));
  sink.expect_each_byte_once();

  const GroupTensors expected = reference_group({input.name, {words}});
  EXPECT_EQ(plan->tensor_bytes(1), expected.luts.size() + expected.encoded_exponent.size() +
                                       expected.sign_mantissa.size() + expected.gaps.size() +
                                       expected.output_positions.size());
  EXPECT_TRUE(sink.bytes(GroupStream::kEncodedExponent) == expected.encoded_exponent);
  EXPECT_TRUE(sink.bytes(GroupStream::kSignMantissa) == expected.sign_mantissa);
  EXPECT_TRUE(sink.bytes(GroupStream::kGaps) == expected.gaps);
  EXPECT_TRUE(sink.bytes(GroupStream::kOutputPositions) == expected.output_positions);
}

TEST(GroupEncoder, WritesEveryByteOnceInAnyOrderOfUnequalSlices) {
  for (const NamedInput& input : named_inputs()) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(input.name + ", seed " + std::to_string(seed));
      check_random_cuts(input, false, seed);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(GroupEncoder, TakesEmptySlicesAnywhere) {
  for (const NamedInput& input : named_inputs()) {
    SCOPED_TRACE(input.name);
    check_random_cuts(input, true, 99);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GroupEncoder, NoticesWordsThatChangedAfterTheyWereCounted) {
  const std::vector<uint16_t> words = named_inputs()[0].words();
  const std::vector<SliceCounts> counts = {SliceCounts::of(words)};
  const GroupPlan plan = *GroupPlan::make(counts);
  const auto encode = [&](std::span<const uint16_t> changed) {
    CheckingSink sink(plan);
    GroupEncoder encoder(plan, sink);
    GroupEncoder::Scratch scratch;
    return encoder.encode(0, changed, scratch);
  };
  ASSERT_TRUE(succeeded(encode(words)));
  EXPECT_TRUE(
      failed_with(encode(std::span(words).first(words.size() - 1)), ErrorCode::source_changed));
  // An exponent that has no code, at the start, in the middle, in the last quadruple and after it.
  for (const size_t i : {size_t{0}, words.size() / 2, words.size() - 2, words.size() - 1}) {
    std::vector<uint16_t> changed = words;
    changed[i] = 0x7f80;
    EXPECT_TRUE(failed_with(encode(changed), ErrorCode::source_changed)) << i;
  }
  // Every word without a code.
  EXPECT_TRUE(
      failed_with(encode(std::vector<uint16_t>(words.size(), 0x7fc0)), ErrorCode::source_changed));
}

class FailingSink final : public GroupSink {
 public:
  explicit FailingSink(int n_good) : n_good_(n_good) {}
  Result<void> write(GroupStream, uint64_t, ByteSpan) override {
    if (n_good_-- > 0) return {};
    return fail(ErrorCode::no_space, "full");
  }

 private:
  int n_good_;
};

TEST(GroupEncoder, PassesOnTheSinksFailure) {
  const std::vector<uint16_t> words = named_inputs()[0].words();
  const size_t half = words.size() / 2;
  const std::vector<std::span<const uint16_t>> slices = {std::span(words).first(half),
                                                         std::span(words).subspan(half)};
  const std::vector<SliceCounts> counts = {SliceCounts::of(slices[0]), SliceCounts::of(slices[1])};
  const GroupPlan plan = *GroupPlan::make(counts);
  const auto run = [&](int n_good) -> Result<void> {
    FailingSink sink(n_good);
    GroupEncoder encoder(plan, sink);
    GroupEncoder::Scratch scratch;
    DF11_TRY(encoder.encode(0, slices[0], scratch));
    DF11_TRY(encoder.encode(1, slices[1], scratch));
    return encoder.finish();
  };
  int n_writes = 0;
  while (!run(n_writes)) {
    EXPECT_TRUE(failed_with(run(n_writes), ErrorCode::no_space));
    ASSERT_LT(++n_writes, 100);
  }
  EXPECT_GE(n_writes, 8) << "four streams of two slices";
}

TEST(GroupPlan, RefusesWhatUpstreamsKernelCannotCount) {
  SliceCounts slice;
  slice.counts[100] = slice.n_elements = 0x7fffffff;
  EXPECT_TRUE(succeeded(GroupPlan::make(std::vector{slice})));
  SliceCounts one_more;
  one_more.counts[100] = one_more.n_elements = 1;
  EXPECT_TRUE(
      failed_with(GroupPlan::make(std::vector{slice, one_more}), ErrorCode::limit_exceeded));
  // 2^31 weights or more by a sum that 32 bits would wrap.
  EXPECT_TRUE(
      failed_with(GroupPlan::make(std::vector{slice, slice, slice}), ErrorCode::limit_exceeded));
  EXPECT_TRUE(failed_with(GroupPlan::make({}), ErrorCode::invalid_argument));
  EXPECT_TRUE(
      failed_with(GroupPlan::make(std::vector<SliceCounts>(3)), ErrorCode::invalid_argument));
  SliceCounts infinite;
  infinite.counts[255] = infinite.n_elements = 1;
  EXPECT_TRUE(failed_with(GroupPlan::make(std::vector{slice, infinite}), ErrorCode::unsupported));
}

TEST(SplitPositions, AreCumulativeWithoutTheLast) {
  EXPECT_TRUE(split_positions_bytes(std::vector<uint64_t>{5}).empty());
  const std::vector<uint8_t> bytes = split_positions_bytes(std::vector<uint64_t>{5, 0, 300, 7});
  ASSERT_EQ(bytes.size(), 24u);
  EXPECT_EQ(load_le64(&bytes[0]), 5u);
  EXPECT_EQ(load_le64(&bytes[8]), 5u);
  EXPECT_EQ(load_le64(&bytes[16]), 305u);
}

}  // namespace
}  // namespace df11::test
