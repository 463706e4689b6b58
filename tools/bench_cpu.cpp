// The stages of the codec on the CPU, in memory, beside a memory copy. The stages of one round run
// one after the other, so that drift of the machine hits all of them.
#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>

#include "compressor/group_encoder.h"
#include "compressor/shard_job.h"
#include "decoder/host_group.h"
#include "format/hash.h"
#include "tools/bench.h"
#include "tools/cli/app.h"

namespace df11::bench {

namespace {

struct Stage {
  std::string name;
  std::function<void()> run;  // over all the weights
  std::vector<double> seconds = {};

  double gigabytes_a_second(size_t n_bytes) const {
    return static_cast<double>(n_bytes) / median(seconds) / 1e9;
  }
};

class CpuBench {
 public:
  CpuBench(size_t n_elements, int n_threads)
      : executor_(n_threads),
        words_(trained_like_weights(n_elements, 0.35, 11, Executor())),
        decoder_(make_cpu_decoder()) {}

  Result<void> prepare() {
    for (size_t begin = 0; begin < words_.size(); begin += kSliceElements) {
      slices_.push_back(
          std::span(words_).subspan(begin, std::min(kSliceElements, words_.size() - begin)));
      counts_.push_back(SliceCounts::of(slices_.back()));
    }
    DF11_ASSIGN(plan_, GroupPlan::make(counts_));
    table_.emplace(plan_.codebook());
    const std::span<const uint16_t> member[] = {words_};
    DF11_ASSIGN(const GroupTensors tensors, encode_group(member, executor_, kSliceElements));
    DF11_ASSIGN(group_,
                HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa,
                                 tensors.gaps, tensors.output_positions}));
    DF11_ASSIGN(group_decoder_, decoder_->prepare(group_.tables()));
    run_begins_ = group_.run_begins(decoder_->run_blocks());
    copy_target_.resize(words_.size());
    return check();
  }

  // The decoder returns the weights: speed of wrong code is worth nothing.
  Result<void> check() {
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

  std::vector<Stage> stages() {
    const auto over_slices = [this](auto work) {
      return [this, work] {
        (void)executor_.for_each(slices_.size(), [&](size_t i) -> Result<void> {
          work(i);
          return {};
        });
      };
    };
    const auto over_runs = [this](auto work) {
      return [this, work] {
        (void)executor_.for_each(n_runs(), [&](size_t i) -> Result<void> {
          work(i);
          return {};
        });
      };
    };
    std::vector<Stage> stages;
    stages.push_back({"memory copy", over_slices([this](size_t i) {
                        std::memcpy(&copy_target_[i * kSliceElements], slices_[i].data(),
                                    slices_[i].size_bytes());
                      })});
    stages.push_back(
        {"histogram", over_slices([this](size_t i) { (void)SliceCounts::of(slices_[i]); })});
    stages.push_back({"encode", over_slices([this](size_t i) { encode(i); })});
    stages.push_back({"histogram + encode", over_slices([this](size_t i) {
                        (void)SliceCounts::of(slices_[i]);
                        encode(i);
                      })});
    stages.push_back({"decode + join + check",
                      over_runs([this](size_t i) { (void)decode_run(i, *runs_.take()); })});
    stages.push_back({"XXH3-128", over_slices([this](size_t i) {
                        Xxh128Hasher hasher;
                        hasher.update({reinterpret_cast<const uint8_t*>(slices_[i].data()),
                                       slices_[i].size_bytes()});
                        (void)hasher.digest();
                      })});
    stages.push_back({"SHA-256", over_slices([this](size_t i) {
                        (void)sha256({reinterpret_cast<const uint8_t*>(slices_[i].data()),
                                      slices_[i].size_bytes()});
                      })});
    return stages;
  }

  size_t n_bytes() const { return 2 * words_.size(); }
  double entropy() const { return entropy_bits(plan_.histogram()); }
  double bits_a_weight() const {
    return 8 * static_cast<double>(plan_.tensor_bytes(1)) / static_cast<double>(words_.size());
  }

 private:
  void encode(size_t i) {
    const auto scratch = encoders_.take();
    encode_slice(slices_[i], *table_, plan_.slice(i),
                 scratch->sign_mantissa.ensure(slices_[i].size()), scratch->slice);
  }
  size_t n_runs() const { return run_begins_.size() - 1; }
  BlockRun run(size_t i) const { return group_.run(run_begins_[i], run_begins_[i + 1]); }
  Result<void> decode_run(size_t i, ScratchBuffer<uint16_t>& words) {
    const BlockRun r = run(i);
    return group_decoder_->decode(r, words.ensure(r.n_elements()));
  }

  Executor executor_;
  std::vector<uint16_t> words_, copy_target_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<GroupDecoder> group_decoder_;
  std::vector<std::span<const uint16_t>> slices_;
  std::vector<SliceCounts> counts_;
  GroupPlan plan_;
  std::optional<EncodeTable> table_;
  HostGroup group_;
  std::vector<size_t> run_begins_;
  Pool<GroupEncoder::Scratch> encoders_;
  Pool<ScratchBuffer<uint16_t>> runs_;
};

}  // namespace

Result<Json> bench_cpu(const CpuOptions& options) {
  const auto [n_elements, n_rounds, n_threads, json] = options;
  CpuBench bench(n_elements, n_threads);
  DF11_TRY(bench.prepare());
  std::vector<Stage> stages = bench.stages();
  for (int round = -1; round < n_rounds; ++round) {  // the first warms up
    for (Stage& stage : stages) {
      const cli::Stopwatch watch;
      stage.run();
      if (round >= 0) stage.seconds.push_back(watch.seconds());
    }
  }
  Json rows = Json::array();
  cli::Table table({"stage", "GB/s of BF16", "share of copy"}, {false, true, true});
  const double copy = stages.front().gigabytes_a_second(bench.n_bytes());
  for (const Stage& stage : stages) {
    const double rate = stage.gigabytes_a_second(bench.n_bytes());
    table.add({stage.name, cli::format_fixed(rate, 2), cli::format_percent(rate, copy)});
    rows.push_back({{"stage", stage.name}, {"gb_per_s", rate}});
  }
  if (!json) {
    std::cout << cli::format_count(n_elements) << " weights, exponent entropy "
              << cli::format_fixed(bench.entropy(), 3) << " bits, coded in "
              << cli::format_fixed(bench.bits_a_weight(), 3) << " bits a weight; " << n_threads
              << " thread" << (n_threads == 1 ? "" : "s") << ", median of " << n_rounds << "\n"
              << table.to_string() << std::flush;
  }
  return Json{{"threads", n_threads},
              {"elements", n_elements},
              {"exponent_entropy_bits", bench.entropy()},
              {"bits_per_weight", bench.bits_a_weight()},
              {"rounds", n_rounds},
              {"stages", std::move(rows)}};
}

}  // namespace df11::bench
