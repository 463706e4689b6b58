// df11-bench: speed of the codec in memory, beside what the machine can copy.
//
// Every figure is GB (10^9 bytes) of BF16 weights a second and the median of several rounds; the
// stages of one round run one after the other, so that drift of the machine hits all of them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <random>

#include "compressor/group_encoder.h"
#include "compressor/shard_job.h"
#include "decoder/group_reader.h"
#include "format/hash.h"
#include "format/json.h"
#include "format/version.h"
#include "tools/cli/app.h"

namespace {

using namespace df11;

// Normal weights whose rows of 4096 have log-normally varying scales, as in trained matrices.
std::vector<uint16_t> trained_like_weights(size_t n) {
  std::mt19937_64 engine(11);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> words(n);
  float scale = 0;
  for (size_t i = 0; i < n; ++i) {
    if (i % 4096 == 0) scale = 0.02f * std::exp(0.35f * normal(engine));
    const uint32_t bits = std::bit_cast<uint32_t>(scale * normal(engine));
    words[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  return words;
}

struct Stage {
  std::string name;
  std::function<void()> run;  // over all the weights
  std::vector<double> seconds = {};

  double gigabytes_a_second(size_t n_bytes) const {
    std::vector<double> sorted = seconds;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return static_cast<double>(n_bytes) / sorted[sorted.size() / 2] / 1e9;
  }
};

class CpuBench {
 public:
  CpuBench(size_t n_elements, int n_threads)
      : words_(trained_like_weights(n_elements)),
        executor_(n_threads),
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
    DF11_ASSIGN(tensors_, encode_group(member, executor_, kSliceElements));
    tensors_.encoded_exponent.resize(plan_.n_code_bytes() + kCodeLookaheadBytes);
    positions_.resize(tensors_.output_positions.size() / 4);
    std::memcpy(positions_.data(), tensors_.output_positions.data(),
                tensors_.output_positions.size());
    DF11_ASSIGN(group_decoder_, decoder_->prepare(plan_.codebook().luts));
    copy_target_.resize(words_.size());
    return check();
  }

  // The decoder returns the weights: speed of wrong code is worth nothing.
  Result<void> check() {
    for (size_t i = 0; i < n_runs(); ++i) {
      RunBuffers buffers;
      DF11_TRY(decode_run(i, buffers));
      const size_t first = positions_[i * kRunBlocks];
      if (!std::equal(words_.begin() + first, words_.begin() + first + run(i).n_elements(),
                      buffers.words.data())) {
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
  size_t n_runs() const { return ceil_div(positions_.size() - 1, kRunBlocks); }
  BlockRun run(size_t i) const {
    const size_t begin = i * kRunBlocks, end = std::min(begin + kRunBlocks, positions_.size() - 1);
    BlockRun r;
    r.code = tensors_.encoded_exponent.data() + begin * kBlockBytes;
    r.n_code_bytes =
        std::min<uint64_t>(end * kBlockBytes, plan_.n_code_bytes()) - begin * kBlockBytes;
    r.gaps = tensors_.gaps.data() + begin * kGapBytesPerBlock;
    r.positions = std::span(positions_).subspan(begin, end - begin + 1);
    r.sign_mantissa = tensors_.sign_mantissa.data() + positions_[begin];
    r.first_block = begin;
    r.ends_group = end == positions_.size() - 1;
    if (!r.ends_group) r.next_gap = load_gap(tensors_.gaps.data(), end * kWindowsPerBlock);
    return r;
  }
  Result<void> decode_run(size_t i, RunBuffers& buffers) {
    const BlockRun r = run(i);
    return group_decoder_->decode(r, buffers.words.ensure(r.n_elements()));
  }

  std::vector<uint16_t> words_, copy_target_;
  Executor executor_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<GroupDecoder> group_decoder_;
  std::vector<std::span<const uint16_t>> slices_;
  std::vector<SliceCounts> counts_;
  GroupPlan plan_;
  std::optional<EncodeTable> table_;
  GroupTensors tensors_;
  std::vector<uint32_t> positions_;
  Pool<GroupEncoder::Scratch> encoders_;
  Pool<RunBuffers> runs_;
};

Result<Json> bench_cpu(size_t n_elements, int n_threads, int n_rounds, bool json) {
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

int run(int argc, char** argv) {
  CLI::App app("Measure the codec in memory, in GB (10^9 bytes) of BF16 weights a second.");
  bool cpu = false, json = false;
  size_t n_elements = size_t{32} << 20;
  int n_rounds = 7;
  std::vector<int> threads;
  app.add_flag("--cpu", cpu, "the CPU stages, beside a memory copy")->required();
  app.add_option("--elements", n_elements, "weights")
      ->check(CLI::Range(size_t{1} << 16, size_t{1} << 30))
      ->capture_default_str();
  app.add_option("--threads", threads, "thread counts (default: 1 and all)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--rounds", n_rounds, "rounds to take the median of")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", json, "print JSON");
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;

  if (threads.empty()) {
    threads = {1};
    if (const int all = Executor().n_threads(); all > 1) threads.push_back(all);
  }
  Json runs = Json::array();
  for (const int n_threads : threads) {
    Result<Json> run = bench_cpu(n_elements, n_threads, n_rounds, json);
    if (!run) return cli::report_error("df11-bench", run.error());
    runs.push_back(std::move(*run));
  }
  if (json)
    std::cout << Json{{"report", "df11-bench"},
                      {"report_version", 1},
                      {"tool_version", kVersion},
                      {"cpu", runs}}
                     .dump(2)
              << "\n";
  return cli::kExitGood;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-bench", [&] { return run(argc, argv); });
}
