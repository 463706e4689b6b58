#include "tools/bench_stages.h"

#include <algorithm>
#include <cstring>

#include "compressor/shard_job.h"
#include "format/hash.h"
#include "tools/bench.h"

namespace df11::bench {

CpuStages::CpuStages(size_t n_elements)
    : words_(trained_like_weights(n_elements, 0.35, 11, Executor())),
      copy_target_(words_.size()),
      decoder_(make_cpu_decoder()) {}

Result<void> CpuStages::prepare() {
  std::vector<SliceCounts> counts;
  for (size_t begin = 0; begin < words_.size(); begin += kSliceElements) {
    slices_.push_back(
        std::span(words_).subspan(begin, std::min(kSliceElements, words_.size() - begin)));
    counts.push_back(SliceCounts::of(slices_.back()));
  }
  DF11_ASSIGN(plan_, GroupPlan::make(counts));
  table_.emplace(plan_.codebook());
  const std::span<const uint16_t> member[] = {words_};
  DF11_ASSIGN(const GroupTensors tensors, encode_group(member, Executor(), kSliceElements));
  DF11_ASSIGN(group_,
              HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa,
                               tensors.gaps, tensors.output_positions}));
  DF11_ASSIGN(group_decoder_, decoder_->prepare(group_.tables()));
  run_begins_ = group_.run_begins(decoder_->run_blocks());
  return check();
}

// The decoder returns the weights: speed of wrong code is worth nothing.
Result<void> CpuStages::check() {
  for (size_t i = 0; i < n_runs(); ++i) {
    const auto words = runs_.take();
    DF11_TRY(decode_run(i, *words));
    const BlockRun r = run(i);
    if (!std::equal(words->data(), words->data() + r.n_elements(),
                    words_.begin() + r.positions.front())) {
      return fail(ErrorCode::corrupt_stream, "decoded weights differ");
    }
  }
  return {};
}

Stage CpuStages::over_slices(std::string name, std::function<void(size_t)> work) const {
  return {std::move(name), [n = slices_.size(), work = std::move(work)](const Executor& executor) {
            (void)executor.for_each(n, [&](size_t i) -> Result<void> {
              work(i);
              return {};
            });
          }};
}

std::vector<Stage> CpuStages::stages() {
  std::vector<Stage> stages;
  stages.push_back(over_slices("memory copy", [this](size_t i) {
    std::memcpy(&copy_target_[i * kSliceElements], slices_[i].data(), slices_[i].size_bytes());
  }));
  stages.push_back(over_slices("memory read", [this](size_t i) { read(i); }));
  stages.push_back(
      over_slices("histogram", [this](size_t i) { (void)SliceCounts::of(slices_[i]); }));
  stages.push_back(over_slices("encode", [this](size_t i) { encode(i); }));
  stages.push_back(over_slices("histogram + encode", [this](size_t i) {
    (void)SliceCounts::of(slices_[i]);
    encode(i);
  }));
  stages.push_back({"decode + join + check", [this](const Executor& executor) {
                      (void)executor.for_each(
                          n_runs(), [&](size_t i) { return decode_run(i, *runs_.take()); });
                    }});
  stages.push_back(over_slices("XXH3-128", [this](size_t i) {
    Xxh128Hasher hasher;
    hasher.update(slice_bytes(i));
    (void)hasher.digest();
  }));
  stages.push_back(over_slices("SHA-256", [this](size_t i) { (void)sha256(slice_bytes(i)); }));
  return stages;
}

double CpuStages::bits_a_weight() const {
  return 8 * static_cast<double>(plan_.tensor_bytes(1)) / static_cast<double>(words_.size());
}

ByteSpan CpuStages::slice_bytes(size_t i) const {
  return {reinterpret_cast<const uint8_t*>(slices_[i].data()), slices_[i].size_bytes()};
}

void CpuStages::read(size_t i) {
  const ByteSpan bytes = slice_bytes(i);
  uint64_t sum = 0;
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) sum += load_le64(&bytes[at]);
  sum_read_.fetch_add(sum, std::memory_order_relaxed);
}

void CpuStages::encode(size_t i) {
  const auto scratch = encoders_.take();
  encode_slice(slices_[i], *table_, plan_.slice(i),
               scratch->sign_mantissa.ensure(slices_[i].size()), scratch->slice);
}

Result<void> CpuStages::decode_run(size_t i, ScratchBuffer<uint16_t>& words) {
  const BlockRun r = run(i);
  return group_decoder_->decode(r, words.ensure(r.n_elements()));
}

}  // namespace df11::bench
