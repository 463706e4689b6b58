#include "format/zstd.h"

#include <new>

#include <zstd.h>

namespace df11 {

namespace {
constexpr int kLevel = 19;  // headers are small, and written once
}

std::string zstd_compress(std::string_view bytes) {
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const size_t n = ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(n)) throw std::bad_alloc();  // with a bound-sized buffer only memory can fail
  frame.resize(n);
  return frame;
}

Result<std::string> zstd_decompress(std::string_view frame, uint64_t n_bytes) {
  std::string bytes(n_bytes, '\0');
  const size_t n = ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size());
  if (ZSTD_isError(n) || n != n_bytes) {
    return fail(ErrorCode::malformed_manifest, "a zstd record is damaged");
  }
  return bytes;
}

struct ZstdCodec::Contexts {
  ZSTD_CCtx* const compression = ZSTD_createCCtx();
  ZSTD_DCtx* const decompression = ZSTD_createDCtx();
  ~Contexts() {
    ZSTD_freeCCtx(compression);
    ZSTD_freeDCtx(decompression);
  }
};

ZstdCodec::ZstdCodec(int level) : contexts_(std::make_unique<Contexts>()), level_(level) {
  if (contexts_->compression == nullptr || contexts_->decompression == nullptr) {
    throw std::bad_alloc();
  }
}

ZstdCodec::~ZstdCodec() = default;

ByteSpan ZstdCodec::compress(ByteSpan bytes) {
  const size_t bound = ZSTD_compressBound(bytes.size());
  uint8_t* const frame = frame_.ensure(bound);
  const size_t n =
      ZSTD_compressCCtx(contexts_->compression, frame, bound, bytes.data(), bytes.size(), level_);
  if (ZSTD_isError(n)) throw std::bad_alloc();  // as above
  return {frame, n};
}

bool ZstdCodec::decompress(ByteSpan frame, MutableByteSpan bytes) {
  return ZSTD_decompressDCtx(contexts_->decompression, bytes.data(), bytes.size(), frame.data(),
                             frame.size()) == bytes.size();
}

std::string zstd_version() {
  return ZSTD_versionString();
}

}  // namespace df11
