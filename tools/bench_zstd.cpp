// zstd as a peer: it sees bytes, and finds in them the skew of the exponents and no matches.
#include <algorithm>
#include <vector>

#include "format/bytes.h"
#include "format/zstd.h"
#include "tools/bench_peers.h"
#include "tools/cli/app.h"

namespace df11::bench {

namespace {

constexpr int kLevel = 1;  // higher ones take longer and find no more
constexpr size_t kSliceBytes = size_t{1} << 20;

struct Scratch {
  ZstdCodec codec{kLevel};
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kSliceBytes);
};

class ZstdPeer final : public Peer {
 public:
  explicit ZstdPeer(ByteSpan weights) : weights_(weights) {}

  Result<void> prepare() {
    for (size_t i = 0; i < n_slices(); ++i) {
      const auto scratch = scratches_.take();
      const ByteSpan frame = scratch->codec.compress(slice(i));
      frames_.emplace_back(frame.begin(), frame.end());
      n_bytes_ += frame.size();
      const MutableByteSpan bytes = std::span(scratch->bytes).first(slice(i).size());
      if (!scratch->codec.decompress(frames_[i], bytes) || !std::ranges::equal(bytes, slice(i))) {
        return fail(ErrorCode::corrupt_stream, "it does not restore what it was given");
      }
    }
    return {};
  }

  std::string version() const override { return zstd_version(); }
  std::string settings() const override {
    return "level " + std::to_string(kLevel) + ", slices of 1 MiB, contexts and memory reused";
  }
  Result<PeerRound> measure(const Executor& executor) override {
    const cli::Stopwatch compress;
    DF11_TRY(executor.for_each(n_slices(), [&](size_t i) -> Result<void> {
      (void)scratches_.take()->codec.compress(slice(i));
      return {};
    }));
    const double compress_seconds = compress.seconds();
    const cli::Stopwatch decompress;
    DF11_TRY(executor.for_each(n_slices(), [&](size_t i) -> Result<void> {
      const auto scratch = scratches_.take();
      (void)scratch->codec.decompress(frames_[i], std::span(scratch->bytes).first(slice(i).size()));
      return {};
    }));
    return PeerRound{compress_seconds, decompress.seconds(), n_bytes_};
  }

 private:
  size_t n_slices() const { return ceil_div(weights_.size(), kSliceBytes); }
  ByteSpan slice(size_t i) const {
    return weights_.subspan(i * kSliceBytes,
                            std::min(kSliceBytes, weights_.size() - i * kSliceBytes));
  }

  ByteSpan weights_;
  std::vector<std::vector<uint8_t>> frames_;
  uint64_t n_bytes_ = 0;
  Pool<Scratch> scratches_;
};

}  // namespace

Result<std::unique_ptr<Peer>> make_zstd_peer(std::span<const uint16_t> words) {
  auto peer = std::make_unique<ZstdPeer>(
      ByteSpan(reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()));
  DF11_TRY(peer->prepare());
  return peer;
}

}  // namespace df11::bench
