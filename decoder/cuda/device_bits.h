// Bit primitives of the GPU decoder, for device and host. On the device each is one instruction.
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define DF11_INLINE __host__ __device__ __forceinline__
#else
#define DF11_INLINE inline
#endif

namespace df11::cuda {

// The upper 32 bits of high:low shifted left by n mod 32.
DF11_INLINE uint32_t shift_left_in(uint32_t low, uint32_t high, uint32_t n) {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(low, high, n);
#else
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) << (n & 31) >> 32);
#endif
}

// The first (highest) kBits bits. Asm keeps the shift apart from the address arithmetic of the
// lookup that follows, which is slower when folded.
template <int kBits>
DF11_INLINE uint32_t first_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("shr.u32 %0, %1, %2;" : "=r"(result) : "r"(bits), "n"(32 - kBits));
  return result;
#else
  return bits >> (32 - kBits);
#endif
}

DF11_INLINE uint32_t reverse_bytes(uint32_t word) {
#ifdef __CUDA_ARCH__
  return __byte_perm(word, 0, 0x0123);
#else
  return __builtin_bswap32(word);
#endif
}

// Bytes 0..3 of `a` and 4..7 of `b`, chosen by the four digits of `selector`, the lowest first.
DF11_INLINE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, selector);
#else
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return result;
#endif
}

// a where `mask` is set, b elsewhere.
DF11_INLINE uint32_t select_bits(uint32_t a, uint32_t b, uint32_t mask) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(result) : "r"(a), "r"(b), "r"(mask));
  return result;
#else
  return (a & mask) | (b & ~mask);
#endif
}

// t + 8 * (byte 1 of counts).
DF11_INLINE uint32_t add_eight_times_byte_1(uint32_t counts, uint32_t t) {
#ifdef __CUDA_ARCH__
  return __dp4a(counts, 0x0800u, t);
#else
  return t + 8 * (counts >> 8 & 0xff);
#endif
}

DF11_INLINE uint32_t count_ones(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__popc(static_cast<int>(bits)));
#else
  return static_cast<uint32_t>(std::popcount(bits));
#endif
}

// Index of the lowest set bit; `bits` is not 0.
DF11_INLINE uint32_t lowest_one(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1;
#else
  return static_cast<uint32_t>(std::countr_zero(bits));
#endif
}

// Threads of a warp go on together from here.
DF11_INLINE void reconverge() {
#ifdef __CUDA_ARCH__
  __syncwarp();
#endif
}

DF11_INLINE uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
DF11_INLINE uint32_t larger(uint32_t a, uint32_t b) {
  return a < b ? b : a;
}

}  // namespace df11::cuda
