// Whole-buffer zstd: the one place that uses libzstd.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/bytes.h"
#include "format/error.h"

namespace df11 {

std::string zstd_compress(std::string_view bytes);
// malformed_manifest when `frame` is no single zstd frame of exactly `n_bytes` bytes.
Result<std::string> zstd_decompress(std::string_view frame, uint64_t n_bytes);

// zstd at one level, with contexts and a buffer that are kept from call to call: as fast as it is,
// for measurements. For one thread at a time.
class ZstdCodec {
 public:
  explicit ZstdCodec(int level);
  ~ZstdCodec();

  // Valid until the next call.
  ByteSpan compress(ByteSpan bytes);
  // Whether `frame` is a zstd frame of exactly bytes.size() bytes.
  bool decompress(ByteSpan frame, MutableByteSpan bytes);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
  int level_;
  ScratchBuffer<uint8_t> frame_;
};

std::string zstd_version();

}  // namespace df11
