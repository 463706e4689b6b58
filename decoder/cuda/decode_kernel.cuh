// The decode kernel (spec/cuda_decoder.md). Included by launch.cu only.
//
// The code is small on purpose: loops stay rolled and rare paths out of line. Code that every
// multiprocessor runs once costs 0.1 to 0.2 microseconds for each 128 bytes at the start of a
// launch.
#pragma once

#include <cuda_runtime.h>

#include "decoder/cuda/block_geometry.h"
#include "decoder/cuda/launch.h"
#include "decoder/cuda/window_decoding.h"

namespace df11::cuda {

template <int kGroups>
struct LaunchArguments {
  GroupArguments groups[kGroups];
  uint32_t* status;
  uint32_t n_groups;
  uint32_t max_block_elements;  // sizes the staging
  uint32_t prefetch_blocks;     // how far ahead L2 is filled
};

// CTAs a multiprocessor that the compiler must leave registers for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kMinCtas = 1;  // compute capability 7.5 has 1024 threads a multiprocessor
#else
inline constexpr int kMinCtas = 3;
#endif

__device__ __forceinline__ void prefetch_l2(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}
// Data that is read once: not into L1.
__device__ __forceinline__ uint2 load_8_streaming(const void* p) {
  uint2 r;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
               : "=r"(r.x), "=r"(r.y)
               : "l"(p));
  return r;
}

// Begins to copy the decode tables to shared memory; finish_copy() and a barrier complete it.
template <typename G>
__device__ __forceinline__ void begin_copy(const uint8_t* tables, uint8_t* shared) {
  constexpr uint32_t kVectors = G::kTableBytes / 16;
#pragma unroll
  for (uint32_t k = 0; k < (kVectors + G::kThreads - 1) / G::kThreads; ++k) {
    const uint32_t i = threadIdx.x + k * G::kThreads;
    if (kVectors % G::kThreads != 0 && i >= kVectors) continue;
#if __CUDA_ARCH__ >= 800
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + i * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(tables + i * 16)
                 : "memory");
#else
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(tables)[i];
#endif
  }
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}
__device__ __forceinline__ void finish_copy() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
}

// A barrier of one block's threads. Constant ids: a variable one would reserve all 16 barriers.
template <typename G>
__device__ __forceinline__ void sync_block(uint32_t slot) {
  static_assert(G::kBlocks <= 2);
  if (G::kBlocks == 1) {
    __syncthreads();
  } else if (slot == 0) {
    asm volatile("bar.sync 1, %0;" ::"n"(G::kBlockThreads) : "memory");
  } else {
    asm volatile("bar.sync 2, %0;" ::"n"(G::kBlockThreads) : "memory");
  }
}

// Loads a thread's windows and the 32 bits after them, as they lie in memory.
template <int kWindows>
__device__ __forceinline__ void load_code(const GroupArguments& g, uint32_t at,
                                          ThreadCode<kWindows>& code) {
#pragma unroll
  for (uint32_t& word : code.words) word = 0;
  if (at >= g.n_code_bytes) return;
  const uint8_t* p = g.code + at;
  if constexpr (kWindows == 1) {
    const uint2 v = load_8_streaming(p);
    code.words[0] = v.x;
    code.words[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < kWindows / 2; ++i) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(p) + i);
      code.words[4 * i] = v.x;
      code.words[4 * i + 1] = v.y;
      code.words[4 * i + 2] = v.z;
      code.words[4 * i + 3] = v.w;
    }
  }
  code.words[2 * kWindows] = __ldg(reinterpret_cast<const uint32_t*>(p + kWindowBytes * kWindows));
}

// Brings what a later CTA will load into L2: code, gaps and position of its block.
__device__ __forceinline__ void prefetch_block(const GroupArguments& g, uint32_t block,
                                               uint32_t thread) {
  if (block >= g.n_blocks) return;
  if (thread < 32) {
    prefetch_l2(g.code +
                min(size_t{block} * kBlockBytes + thread * 128, size_t{g.n_code_bytes} - 1));
  } else if (thread < 35) {
    prefetch_l2(g.gaps + size_t{block} * kGapBytesPerBlock +
                min((thread - 32) * 128, kGapBytesPerBlock - 1));
  } else if (thread == 35) {
    prefetch_l2(g.positions + block);
  }
}

struct BlockSums {
  uint32_t before;  // of the warps before this one
  uint32_t total;
};
template <uint32_t kWarps>
__device__ __forceinline__ BlockSums sum_warps(const uint32_t* warp_totals, uint32_t warp,
                                               uint32_t lane) {
  const uint32_t own = lane < kWarps ? warp_totals[lane] : 0;
#if __CUDA_ARCH__ >= 800
  return {__reduce_add_sync(~0u, lane < warp ? own : 0), __reduce_add_sync(~0u, own)};
#else
  uint32_t before = lane < warp ? own : 0, total = own;
  for (int i = 16; i != 0; i >>= 1) {
    before += __shfl_xor_sync(~0u, before, i);
    total += __shfl_xor_sync(~0u, total, i);
  }
  return {before, total};
#endif
}

// Joins one warp's weights [first, end) with their exponents; that of `first` is at
// exponents[first % 16]. Whole vectors of eight words, then single words at both ends.
__device__ __forceinline__ void join_warp(const GroupArguments& g, const uint8_t* exponents,
                                          uint32_t first, uint32_t end, uint32_t lane) {
  const uint32_t begin_vector = (first + 7) / 8, end_vector = end / 8;
  const uint32_t single = lane < 8 ? first + lane : end_vector * 8 + lane - 8;
  const bool has_single = lane < 16 && (lane < 8 ? single < min(begin_vector * 8, end)
                                                 : end_vector >= begin_vector && single < end);
  uint32_t single_sign_mantissa = 0;
  if (has_single) single_sign_mantissa = __ldg(g.sign_mantissa + single);
  __syncwarp();  // the warp's exponents are complete
  uint32_t mask = kJoinMask;
  asm volatile("" : "+r"(mask));  // kept in a register: one instruction instead of two
  uint32_t vector = begin_vector + lane;
  const uint8_t* from = exponents + (vector - first / 16 * 2) * 8;
  const uint8_t* sign_mantissa = g.sign_mantissa + size_t{vector} * 8;
  uint4* to = reinterpret_cast<uint4*>(g.words) + vector;
#pragma unroll 1
  for (; vector < end_vector; vector += 128, from += 1024, sign_mantissa += 1024, to += 128) {
    uint2 s[4];  // all loads first
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (vector + 32 * i < end_vector) s[i] = load_8_streaming(sign_mantissa + 256 * i);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (vector + 32 * i >= end_vector) continue;
      const uint2 e = *reinterpret_cast<const uint2*>(from + 256 * i);
      const TwoByTwoWords a = join_four(e.x, s[i].x, mask), b = join_four(e.y, s[i].y, mask);
      __stcs(to + 32 * i, make_uint4(a.first, a.second, b.first, b.second));
    }
  }
  if (has_single)
    g.words[single] = join_one(exponents[single - first / 16 * 16], single_sign_mantissa);
}

// The tables of a CTA: those in shared memory, and the rare ones in global memory.
template <typename G>
__device__ __forceinline__ auto tables_of(const GroupArguments& g, const uint8_t* shared) {
  if constexpr (G::kPeekBits == 0) {
    return RowTables{reinterpret_cast<const CodeEntry*>(shared)};
  } else {
    return PeekTables<G::kPeekBits>{
        reinterpret_cast<const PeekEntry*>(shared),
        reinterpret_cast<const uint16_t*>(shared + PeekLayout::counts_offset(G::kPeekBits)),
        reinterpret_cast<const CodeEntry*>(g.rows),
        reinterpret_cast<const CodeEntry*>(g.rows + kRowsBytes)};
  }
}

template <typename G, int kGroups>
__global__ void __launch_bounds__(G::kThreads, kMinCtas)
    decode_kernel(const __grid_constant__ LaunchArguments<kGroups> launch) {
  constexpr int kWindows = G::kWindows;
  extern __shared__ __align__(16) uint8_t shared[];
  const uint32_t slot = G::kBlocks == 1 ? 0 : threadIdx.x / G::kBlockThreads;
  const uint32_t thread = G::kBlocks == 1 ? threadIdx.x : threadIdx.x % G::kBlockThreads;
  const uint32_t lane = thread & 31, warp = thread / 32;
  uint32_t* const warp_totals =
      reinterpret_cast<uint32_t*>(shared + G::kTableBytes + G::kScanBytes * slot);
  uint8_t* const staging = shared + G::kTableBytes + G::kScanBytes * G::kBlocks +
                           slot * G::staging_bytes(launch.max_block_elements);

  uint32_t group = 0;
  if (kGroups > 1) {  // the last group that begins at this CTA or before
    for (uint32_t end = launch.n_groups; end - group > 1;) {
      const uint32_t middle = (group + end) / 2;
      if (launch.groups[middle].first_cta <= blockIdx.x)
        group = middle;
      else
        end = middle;
    }
  }
  const GroupArguments& g = launch.groups[group];
  const uint32_t block = (blockIdx.x - g.first_cta) * G::kBlocks + slot;
  const bool has_block = block < g.n_blocks;  // the same for all threads of a block

  begin_copy<G>(G::kPeekBits == 0 ? g.rows : g.image, shared);
  ThreadCode<kWindows> code;
  uint32_t gap = 0, second_gap = 0, position = 0, next_position = 0;
  const uint32_t at = block * kBlockBytes + thread * (kWindowBytes * kWindows);
  const bool live = has_block && at < g.n_code_bytes;
  if (has_block) {
    load_code(g, at, code);
    // One thread's gaps lie in two bytes: 5 bits at any bit, or 10 at an even one.
    const uint8_t* gaps = g.gaps + size_t{block} * kGapBytesPerBlock;
    const uint32_t gap_bit = kGapBits * kWindows * thread;
    const uint32_t two_bytes =
        __ldg(gaps + gap_bit / 8) << 8 | __ldg(gaps + min(gap_bit / 8 + 1, kGapBytesPerBlock - 1));
    gap = two_bytes >> (11 - gap_bit % 8) & 31;
    if (kWindows > 1) second_gap = two_bytes >> (6 - gap_bit % 8) & 31;
    position = __ldg(g.positions + block);
    next_position = min(__ldg(g.positions + block + 1), g.n_elements);
    if (const uint32_t line = position + thread * 128; line < next_position)
      prefetch_l2(g.sign_mantissa + line);
  }
  prefetch_block(g, block + launch.prefetch_blocks, thread);
  finish_copy();
  __syncthreads();
  if (!has_block) return;
#pragma unroll
  for (uint32_t& word : code.words) word = reverse_bytes(word);
  const auto tables = tables_of<G>(g, shared);

  // 1. Count.
  const WindowCount counted = count_codes<kWindows>(tables, code, gap, second_gap, live);

  // 2. Where do the exponents go? And do codes end where the next gap says? Blocks that end the
  // group have gaps of their own rule (spec section 5.3): the caller checks them on the host.
  const bool at_end = g.ends_group != 0 && next_position == g.n_elements;
  uint32_t next_gap = __shfl_down_sync(~0u, gap, 1);
  if (lane == 31 && !at_end) {
    next_gap = __ldg(g.gaps + size_t{block} * kGapBytesPerBlock +
                     (warp + 1) * (32 * kWindows * kGapBits / 8)) >>
               3;
  }
  uint32_t inclusive = counted.n_codes;
#pragma unroll
  for (int i = 1; i < 32; i <<= 1) {
    const uint32_t other = __shfl_up_sync(~0u, inclusive, i);
    if (lane >= i) inclusive += other;
  }
  if (lane == 31) warp_totals[warp] = inclusive;
  if (!at_end && (counted.next_start != next_gap || !counted.gaps_agree))
    atomicOr(launch.status, kBadGap);
  sync_block<G>(slot);
  const BlockSums sums = sum_warps<G::kBlockWarps>(warp_totals, warp, lane);
  const uint32_t warp_count = __shfl_sync(~0u, inclusive, 31);
  const uint32_t n_elements = next_position - position;
  if (next_position < position || sums.total < n_elements ||
      (sums.total > n_elements && !(g.ends_group != 0 && block + 1 == g.n_blocks)) ||
      sums.total > launch.max_block_elements + G::kPhantomCodes) {
    if (thread == 0) atomicOr(launch.status, kBadCount);
    return;  // the whole block
  }
  const uint32_t warp_begin = position % 16 + sums.before + 16 * warp;  // in the staging
  const uint32_t begin = warp_begin + inclusive - counted.n_codes;
  const uint32_t first = position + sums.before;
  const uint32_t end = max(first, min(first + warp_count, next_position));

  // 3. Decode into the staging.
  const auto on_no_code = [&](uint32_t bit) {
    if (bit / 8 - warp_begin < next_position - first && first < next_position)
      atomicOr(launch.status, kNoCode);
  };
  if (__all_sync(~0u, counted.n_codes >= 4)) [[likely]] {
    ExponentWriter writer(staging, begin, counted.n_codes);
    decode_codes<kWindows>(tables, code, gap, writer, on_no_code);
    // A word that two threads share: the later one stored it with zeros for the earlier one's
    // bytes.
    const uint32_t previous = __shfl_up_sync(~0u, writer.tail(), 1);
    if (lane != 0 && begin % 4 != 0)
      *reinterpret_cast<uint32_t*>(staging + (begin & ~3u)) |= previous;
    if (lane == 31) *reinterpret_cast<uint32_t*>(writer.word) = writer.pending;
  } else {
    decode_few_codes<kWindows>(tables, code, gap, staging, begin, counted.n_codes, on_no_code);
  }

  // 4. Join.
  join_warp(g, staging + (warp_begin - first % 16), first, end, lane);
}

}  // namespace df11::cuda
