// Whole-buffer zstd: the one place that uses libzstd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/error.h"

namespace df11 {

std::string zstd_compress(std::string_view bytes);
// malformed_manifest when `frame` is no single zstd frame of exactly `n_bytes` bytes.
Result<std::string> zstd_decompress(std::string_view frame, uint64_t n_bytes);

}  // namespace df11
