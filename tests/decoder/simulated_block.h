// Decodes a group as the CUDA kernel does (decoder/cuda/decode_kernel.cuh), with the shared
// host/device functions, one simulated thread after the other: what is left out is memory traffic.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "decoder/cuda/block_geometry.h"
#include "decoder/cuda/launch.h"
#include "decoder/cuda/window_decoding.h"
#include "decoder/host_group.h"

namespace df11::test {

struct SimulatedDecode {
  std::vector<uint16_t> words;
  uint32_t status = 0;
};

template <typename G>
class SimulatedBlocks {
 public:
  SimulatedBlocks(const HostGroup& group, cuda::DecodePlan plan)
      : group_(group), image_(cuda::build_table_image(group.tables(), plan)) {}

  SimulatedDecode decode() {
    SimulatedDecode result;
    result.words.assign(group_.n_elements(), 0xa5a5);
    const auto& positions = group_.positions();
    uint32_t max_elements = 0;
    for (size_t b = 0; b + 1 < positions.size(); ++b)
      max_elements = std::max(max_elements, positions[b + 1] - positions[b]);
    staging_.resize(G::staging_bytes(max_elements) / 4 + 1);
    for (uint32_t block = 0; block < group_.n_blocks(); ++block)
      decode_block(block, max_elements, result);
    return result;
  }

 private:
  static constexpr int kWindows = G::kWindows;
  static constexpr uint32_t kThreads = G::kBlockThreads;
  using Code = cuda::ThreadCode<kWindows>;

  auto tables() const {
    const uint8_t* image = image_.bytes.data();
    const uint8_t* rows = image + cuda::rows_offset(image_.plan);
    if constexpr (G::kPeekBits == 0) {
      return cuda::RowTables{reinterpret_cast<const cuda::CodeEntry*>(rows)};
    } else {
      return cuda::PeekTables<G::kPeekBits>{
          reinterpret_cast<const cuda::PeekEntry*>(image),
          reinterpret_cast<const uint16_t*>(image + cuda::PeekLayout::counts_offset(G::kPeekBits)),
          reinterpret_cast<const cuda::CodeEntry*>(rows),
          reinterpret_cast<const cuda::CodeEntry*>(rows + cuda::kRowsBytes)};
    }
  }

  Code load(uint64_t at) const {
    Code code{};
    const uint64_t n_readable = group_.code().size() + kCodeLookaheadBytes;
    for (int k = 0; k < 2 * kWindows + 1 && at < group_.code().size(); ++k) {
      uint8_t bytes[4] = {};
      for (uint64_t i = 0; i < 4 && at + 4 * k + i < n_readable; ++i)
        bytes[i] = group_.code().data()[at + 4 * k + i];
      code.words[k] = cuda::reverse_bytes(load_le32(bytes));
    }
    return code;
  }

  void decode_block(uint32_t block, uint32_t max_elements, SimulatedDecode& result) {
    const uint32_t position = group_.positions()[block], next = group_.positions()[block + 1];
    const bool at_end = next == group_.n_elements();
    std::vector<Code> code(kThreads);
    std::vector<uint32_t> gap(kThreads), begin(kThreads + 1, 0);
    std::vector<cuda::WindowCount> counted(kThreads);
    for (uint32_t t = 0; t < kThreads; ++t) {
      const uint64_t window = uint64_t{block} * kWindowsPerBlock + t * kWindows;
      code[t] = load(window * kWindowBytes);
      gap[t] = load_gap(group_.gaps().data(), window);
      const uint32_t second = kWindows > 1 ? load_gap(group_.gaps().data(), window + 1) : 0;
      counted[t] = cuda::count_codes<kWindows>(tables(), code[t], gap[t], second,
                                               window * kWindowBytes < group_.code().size());
      begin[t + 1] = begin[t] + counted[t].n_codes;
      const uint64_t next_window = window + kWindows;
      if (!at_end && (counted[t].next_start != load_gap(group_.gaps().data(), next_window) ||
                      !counted[t].gaps_agree)) {
        result.status |= cuda::kBadGap;
      }
    }
    const uint32_t total = begin[kThreads], n = next - position;
    if (total < n || (total > n && block + 1 != group_.n_blocks()) ||
        total > max_elements + G::kPhantomCodes) {
      result.status |= cuda::kBadCount;
      return;
    }
    std::fill(staging_.begin(), staging_.end(), 0xdddddddd);
    for (uint32_t warp = 0; warp < G::kBlockWarps; ++warp)
      decode_warp(warp, position, next, code, gap, counted, begin, result);
  }

  void decode_warp(uint32_t warp, uint32_t position, uint32_t next, const std::vector<Code>& code,
                   const std::vector<uint32_t>& gap, const std::vector<cuda::WindowCount>& counted,
                   const std::vector<uint32_t>& begins, SimulatedDecode& result) {
    uint8_t* const staging = reinterpret_cast<uint8_t*>(staging_.data());
    const uint32_t before = begins[warp * 32], warp_count = begins[warp * 32 + 32] - before;
    const uint32_t warp_begin = position % 16 + before + 16 * warp, first = position + before;
    const auto on_no_code = [&](uint32_t bit) {
      if (first + (bit / 8 - warp_begin) < next) result.status |= cuda::kNoCode;
    };
    const auto place = [&](uint32_t t) { return warp_begin + begins[t] - before; };
    const bool all_have_four =
        std::all_of(counted.begin() + warp * 32, counted.begin() + warp * 32 + 32,
                    [](const cuda::WindowCount& count) { return count.n_codes >= 4; });
    std::vector<uint32_t> tails(33, 0);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t t = warp * 32 + lane;
      if (!all_have_four) {
        cuda::decode_few_codes<kWindows>(tables(), code[t], gap[t], staging, place(t),
                                         counted[t].n_codes, on_no_code);
        continue;
      }
      cuda::ExponentWriter writer(staging, place(t), counted[t].n_codes);
      cuda::decode_codes<kWindows>(tables(), code[t], gap[t], writer, on_no_code);
      tails[lane + 1] = writer.tail();
      if (lane == 31) store_le32(writer.word, writer.pending);
    }
    for (uint32_t lane = 1; all_have_four && lane < 32; ++lane) {
      const uint32_t at = place(warp * 32 + lane);
      if (at % 4 == 0) continue;
      uint8_t* const word = staging + (at & ~3u);
      store_le32(word, load_le32(word) | tails[lane]);
    }
    for (uint32_t i = 0; i < warp_count && first + i < next; ++i) {
      result.words[first + i] =
          cuda::join_one(staging[warp_begin + i], group_.sign_mantissa()[first + i]);
    }
  }

  const HostGroup& group_;
  cuda::TableImage image_;
  std::vector<uint32_t> staging_;  // words, for their alignment
};

inline SimulatedDecode simulate(const HostGroup& group, int geometry) {
  using cuda::DecodePlan, cuda::Geometry;
  switch (geometry) {
    case 0: return SimulatedBlocks<Geometry<11, 1, 1>>(group, DecodePlan::kPeek11).decode();
    case 1: return SimulatedBlocks<Geometry<12, 1, 1>>(group, DecodePlan::kPeek12).decode();
    case 2: return SimulatedBlocks<Geometry<12, 2, 2>>(group, DecodePlan::kPeek12).decode();
    // Every image has the rows: the launch falls back on them where shared memory is small.
    case 3: return SimulatedBlocks<Geometry<0, 1, 1>>(group, DecodePlan::kPeek12).decode();
    case 4: return SimulatedBlocks<Geometry<0, 1, 1>>(group, DecodePlan::kOneCode).decode();
    default: throw std::logic_error("no such geometry");
  }
}
inline constexpr int kSimulatedGeometries = 5;

}  // namespace df11::test
