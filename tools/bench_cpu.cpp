// df11-bench --cpu: all stages, thread counts and peers in every round, one after the other, so
// that drift of the machine hits all of them.
#include <algorithm>
#include <iostream>
#include <memory>

#include "tools/bench.h"
#include "tools/bench_peers.h"
#include "tools/bench_stages.h"
#include "tools/cli/app.h"

namespace df11::bench {

namespace {

// Seconds of each round over the same bytes.
struct Times {
  std::vector<double> seconds = {};
  double median_rate(size_t n_bytes) const { return gigabytes(n_bytes) / median(seconds); }
  double best_rate(size_t n_bytes) const {
    return gigabytes(n_bytes) / *std::min_element(seconds.begin(), seconds.end());
  }
  static double gigabytes(size_t n_bytes) { return static_cast<double>(n_bytes) / 1e9; }
};

struct PeerTimes {
  Times compress, decompress;
  uint64_t compressed_bytes = 0;
};

struct MeasuredPeer {
  std::string name;
  std::unique_ptr<Peer> peer;    // none once it has failed
  std::string reason;            // of that
  std::vector<PeerTimes> times;  // by thread count
};

class CpuBench {
 public:
  explicit CpuBench(const CpuOptions& options) : options_(options), stages_(n_elements(options)) {
    for (const int n : options.threads) executors_.push_back(std::make_unique<Executor>(n));
  }

  Result<void> prepare() {
    DF11_TRY(stages_.prepare());
    rows_ = stages_.stages();
    times_.assign(rows_.size(), std::vector<Times>(executors_.size()));
    if (options_.peer) {
      add_peer("zstd", make_zstd_peer(stages_.words()));
      add_peer("ZipNN", make_zipnn_peer(stages_.words(), options_.peer_python));
    }
    return {};
  }

  void measure() {
    for (int round = -1; round < options_.n_rounds; ++round) {  // the first warms up
      for (size_t row = 0; row < rows_.size(); ++row) {
        for (size_t t = 0; t < executors_.size(); ++t) {
          const cli::Stopwatch watch;
          rows_[row].run(*executors_[t]);
          if (round >= 0) times_[row][t].seconds.push_back(watch.seconds());
        }
      }
      for (MeasuredPeer& peer : peers_) measure_peer(peer, round >= 0);
    }
  }

  void print() const {
    std::cout << cli::format_count(stages_.words().size()) << " weights, exponent entropy "
              << cli::format_fixed(stages_.entropy(), 3) << " bits, coded in "
              << cli::format_fixed(stages_.bits_a_weight(), 3) << " bits a weight; median of "
              << options_.n_rounds << "\n";
    for (size_t t = 0; t < executors_.size(); ++t) {
      const int n_threads = executors_[t]->n_threads();
      std::cout << "\n" << n_threads << " thread" << (n_threads == 1 ? "" : "s") << "\n";
      print_stages(t);
      if (std::ranges::any_of(peers_, [](const MeasuredPeer& p) { return p.peer != nullptr; })) {
        std::cout << "\n";
        print_peers(t);
      }
    }
    for (const MeasuredPeer& peer : peers_) {
      if (peer.peer) {
        std::cout << "\n" << peer.name << ": " << peer.peer->settings();
      } else {
        std::cout << "\n" << peer.name << ": not measured: " << cli::printable(peer.reason);
      }
    }
    if (!peers_.empty()) std::cout << "\n";
    std::cout << std::flush;
  }

  Json to_json() const {
    Json reports = Json::array();
    for (size_t t = 0; t < executors_.size(); ++t) {
      Json stages = Json::array();
      for (size_t row = 0; row < rows_.size(); ++row) {
        stages.push_back({{"stage", rows_[row].name},
                          {"gb_per_s", rate(row, t)},
                          {"best_gb_per_s", times_[row][t].best_rate(n_bytes())}});
        if (const auto value = efficiency(row, t)) stages.back()["efficiency"] = *value;
      }
      reports.push_back({{"threads", executors_[t]->n_threads()},
                         {"elements", stages_.words().size()},
                         {"exponent_entropy_bits", stages_.entropy()},
                         {"bits_per_weight", stages_.bits_a_weight()},
                         {"rounds", options_.n_rounds},
                         {"stages", std::move(stages)}});
      if (options_.peer) reports.back()["peers"] = peers_json(t);
    }
    return reports;
  }

 private:
  // By default enough slices that no thread waits long for the others' last ones.
  static size_t n_elements(const CpuOptions& options) {
    if (options.n_elements != 0) return options.n_elements;
    const int most = *std::max_element(options.threads.begin(), options.threads.end());
    return std::clamp(static_cast<size_t>(most) << 22, size_t{32} << 20, size_t{1} << 30);
  }

  void add_peer(std::string name, Result<std::unique_ptr<Peer>> made) {
    MeasuredPeer peer{std::move(name), nullptr, {}, std::vector<PeerTimes>(executors_.size())};
    if (made) {
      peer.peer = std::move(*made);
    } else {
      peer.reason = made.error().describe();
    }
    peers_.push_back(std::move(peer));
  }

  void measure_peer(MeasuredPeer& peer, bool keep) {
    for (size_t t = 0; t < executors_.size() && peer.peer; ++t) {
      const Result<PeerRound> round = peer.peer->measure(*executors_[t]);
      if (!round) {
        peer.reason = round.error().describe();
        peer.peer.reset();
      } else if (keep) {
        peer.times[t].compress.seconds.push_back(round->compress_seconds);
        peer.times[t].decompress.seconds.push_back(round->decompress_seconds);
        peer.times[t].compressed_bytes = round->compressed_bytes;
      }
    }
  }

  size_t n_bytes() const { return stages_.words().size_bytes(); }
  double rate(size_t row, size_t t) const { return times_[row][t].median_rate(n_bytes()); }
  double rate(std::string_view stage, size_t t) const {
    const auto row = std::ranges::find(rows_, stage, &Stage::name);
    return rate(static_cast<size_t>(row - rows_.begin()), t);
  }
  double compress_rate(size_t t) const { return rate("histogram + encode", t); }
  double decompress_rate(size_t t) const { return rate("decode + join + check", t); }

  // Of n threads, the share of n times one thread's rate; nothing if one thread was not measured.
  std::optional<double> efficiency(size_t row, size_t t) const {
    for (size_t one = 0; one < executors_.size(); ++one) {
      if (executors_[one]->n_threads() == 1) {
        return rate(row, t) / (executors_[t]->n_threads() * rate(row, one));
      }
    }
    return std::nullopt;
  }

  double bits_a_weight(const PeerTimes& times) const {
    return 8 * static_cast<double>(times.compressed_bytes) /
           static_cast<double>(stages_.words().size());
  }

  void print_stages(size_t t) const {
    const bool scaled = executors_[t]->n_threads() > 1 && efficiency(0, t);
    std::vector<std::string> header{"stage", "GB/s of BF16", "of copy", "of read"};
    if (scaled) header.push_back("efficiency");
    cli::Table table(std::move(header), {false, true, true, true, true});
    for (size_t row = 0; row < rows_.size(); ++row) {
      std::vector<std::string> cells{rows_[row].name, cli::format_fixed(rate(row, t), 2),
                                     cli::format_percent(rate(row, t), rate("memory copy", t)),
                                     cli::format_percent(rate(row, t), rate("memory read", t))};
      if (scaled) cells.push_back(cli::format_percent(*efficiency(row, t), 1));
      table.add(std::move(cells));
    }
    std::cout << table.to_string();
  }

  void print_peers(size_t t) const {
    const auto times_as_fast = [](double ours, double theirs) {
      return cli::format_fixed(ours / theirs, 2) + " x";
    };
    cli::Table table({"codec", "compress", "decompress", "bits a weight", "df11 compresses",
                      "df11 decompresses"},
                     {false, true, true, true, true, true});
    table.add({"df11", cli::format_fixed(compress_rate(t), 2),
               cli::format_fixed(decompress_rate(t), 2),
               cli::format_fixed(stages_.bits_a_weight(), 3), "", ""});
    for (const MeasuredPeer& peer : peers_) {
      if (!peer.peer) continue;
      const double compress = peer.times[t].compress.median_rate(n_bytes());
      const double decompress = peer.times[t].decompress.median_rate(n_bytes());
      table.add({peer.name + " " + peer.peer->version(), cli::format_fixed(compress, 2),
                 cli::format_fixed(decompress, 2),
                 cli::format_fixed(bits_a_weight(peer.times[t]), 3),
                 times_as_fast(compress_rate(t), compress),
                 times_as_fast(decompress_rate(t), decompress)});
    }
    std::cout << table.to_string();
  }

  Json peers_json(size_t t) const {
    Json peers = Json::array();
    for (const MeasuredPeer& peer : peers_) {
      if (!peer.peer) {
        peers.push_back({{"peer", peer.name}, {"not_measured", peer.reason}});
        continue;
      }
      const auto& [compress, decompress, compressed_bytes] = peer.times[t];
      peers.push_back({{"peer", peer.name},
                       {"version", peer.peer->version()},
                       {"settings", peer.peer->settings()},
                       {"compress_gb_per_s", compress.median_rate(n_bytes())},
                       {"best_compress_gb_per_s", compress.best_rate(n_bytes())},
                       {"decompress_gb_per_s", decompress.median_rate(n_bytes())},
                       {"best_decompress_gb_per_s", decompress.best_rate(n_bytes())},
                       {"bits_per_weight", bits_a_weight(peer.times[t])}});
    }
    return peers;
  }

  const CpuOptions& options_;
  CpuStages stages_;
  std::vector<std::unique_ptr<Executor>> executors_;  // by thread count
  std::vector<Stage> rows_;
  std::vector<std::vector<Times>> times_;  // by stage, then thread count
  std::vector<MeasuredPeer> peers_;
};

}  // namespace

Result<Json> bench_cpu(const CpuOptions& options) {
  CpuBench bench(options);
  DF11_TRY(bench.prepare());
  bench.measure();
  if (!options.json) bench.print();
  return bench.to_json();
}

}  // namespace df11::bench
