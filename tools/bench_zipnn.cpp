// ZipNN as a peer: a Python package, so a process of its own answers.
#include "format/json.h"
#include "tools/bench_peers.h"
#include "tools/peer_process.h"
#include "tools/peers/zipnn_peer.h"

namespace df11::bench {

namespace {

// What the script prints: an object, or why there is none.
Result<Json> read_answer(PeerProcess& process) {
  DF11_ASSIGN(const std::string line, process.read_line());
  DF11_ASSIGN(Json answer, parse_json(line));
  if (const Json* error = json_find(answer, "error"); error != nullptr && error->is_string()) {
    return fail(ErrorCode::unsupported, error->get<std::string>());
  }
  return answer;
}

Result<double> seconds(const Json& answer, std::string_view key) {
  const Json* value = json_find(answer, key);
  if (value == nullptr || !value->is_number_float()) {
    return fail(ErrorCode::malformed_json, "an answer without \"" + std::string(key) + '"');
  }
  return value->get<double>();
}

class ZipnnPeer final : public Peer {
 public:
  ZipnnPeer(PeerProcess process, std::string version, std::string settings)
      : process_(std::move(process)),
        version_(std::move(version)),
        settings_(std::move(settings)) {}

  std::string version() const override { return version_; }
  std::string settings() const override { return settings_; }
  Result<PeerRound> measure(const Executor& executor) override {
    DF11_TRY(process_.send(as_bytes(std::to_string(executor.n_threads()) + '\n')));
    DF11_ASSIGN(const Json answer, read_answer(process_));
    PeerRound round;
    DF11_ASSIGN(round.compress_seconds, seconds(answer, "compress_s"));
    DF11_ASSIGN(round.decompress_seconds, seconds(answer, "decompress_s"));
    DF11_ASSIGN(round.compressed_bytes, json_uint(answer, "compressed_bytes"));
    return round;
  }

 private:
  PeerProcess process_;
  std::string version_, settings_;
};

}  // namespace

Result<std::unique_ptr<Peer>> make_zipnn_peer(std::span<const uint16_t> words,
                                              const std::string& python) {
  DF11_ASSIGN(PeerProcess process,
              PeerProcess::start({python, "-c", std::string(zipnn_peer_script()),
                                  std::to_string(words.size_bytes())}));
  // A child that has ended takes no weights, and its answer, if any, says why.
  (void)process.send({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
  DF11_ASSIGN(const Json answer, read_answer(process));
  DF11_ASSIGN(std::string version, json_string(answer, "version"));
  DF11_ASSIGN(std::string settings, json_string(answer, "settings"));
  return std::make_unique<ZipnnPeer>(std::move(process), std::move(version), std::move(settings));
}

}  // namespace df11::bench
