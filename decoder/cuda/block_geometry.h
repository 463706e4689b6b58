// How blocks map to threads, and how much shared memory a CTA (a CUDA thread block) needs.
//
// A block of 512 windows (spec/df11_format.md section 5.1) belongs to 512 / kWindows threads of one
// CTA; a CTA may hold two blocks, which then share its decode tables.
#pragma once

#include <cstdint>

#include "decoder/cuda/decode_tables.h"
#include "format/df11_layout.h"

namespace df11::cuda {

// One block's number, staging place and part of the output.
template <int kPeekBits_, int kWindows_, int kBlocks_>
struct Geometry {
  static constexpr int kPeekBits = kPeekBits_;
  static constexpr int kWindows = kWindows_;  // consecutive windows a thread has
  static constexpr int kBlocks = kBlocks_;    // of a CTA
  static constexpr uint32_t kBlockThreads = kWindowsPerBlock / kWindows;
  static constexpr uint32_t kThreads = kBlockThreads * kBlocks;
  static constexpr uint32_t kBlockWarps = kBlockThreads / 32;
  static constexpr uint32_t kTableBytes =
      kPeekBits == 0 ? kRowsBytes : PeekLayout::rows_offset(kPeekBits);
  static constexpr uint32_t kScanBytes = 128;  // totals of a block's warps
  // Codes a block may count beyond its weights: those of a last window after the stream's end.
  static constexpr uint32_t kPhantomCodes = kWindowBits * kWindows;

  // Staging of one block's exponents. Each warp's part begins at the residue modulo 16 of its first
  // weight, so that both sides of the join are aligned alike.
  DF11_INLINE static constexpr uint32_t staging_bytes(uint32_t max_block_elements) {
    return (max_block_elements + kPhantomCodes + kWindowBits + kBlockWarps * 16 + 32 + 127) & ~127u;
  }
  DF11_INLINE static constexpr uint32_t shared_bytes(uint32_t max_block_elements) {
    return kTableBytes + kBlocks * (kScanBytes + staging_bytes(max_block_elements));
  }
};

}  // namespace df11::cuda
