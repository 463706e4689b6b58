// Other compressors of BF16 weights, measured in the rounds of df11-bench --cpu --peer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "format/error.h"
#include "format/parallel.h"

namespace df11::bench {

struct PeerRound {
  double compress_seconds, decompress_seconds;
  uint64_t compressed_bytes;
};

// A compressor and the weights it is measured with.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string version() const = 0;
  virtual std::string settings() const = 0;
  // Compresses and decompresses all the weights with as many threads as `executor` has.
  virtual Result<PeerRound> measure(const Executor& executor) = 0;
};

// zstd over slices of the words. Errors: corrupt_stream when it does not restore them.
Result<std::unique_ptr<Peer>> make_zstd_peer(std::span<const uint16_t> words);

// ZipNN in the Python interpreter `python` (tools/peers/zipnn_peer.py).
// Errors: not_found without the interpreter; unsupported with what the script says, such as that
// there is no such package; io_error when it ends on its own.
Result<std::unique_ptr<Peer>> make_zipnn_peer(std::span<const uint16_t> words,
                                              const std::string& python);

}  // namespace df11::bench
