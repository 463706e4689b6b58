// What one thread of the decode kernel does with its windows: count the codes that start in them,
// and, once it knows where they go, decode them. For device and host: a test runs a whole block of
// 512 windows through it on the CPU.
//
// Positions and counts travel in one register, `at`: bits 0..6 are the next code's bit in the
// window (64 and more: the window is done), the number of codes so far begins at bit 8. Table
// entries have the same form and are simply added.
#pragma once

#include <cstdint>

#include "decoder/cuda/decode_tables.h"
#include "decoder/cuda/device_bits.h"
#include "format/df11_layout.h"

namespace df11::cuda {

inline constexpr uint32_t kOneCodeSoFar = 256;

// The next 96 bits of a thread's code.
struct CodeBits {
  uint32_t high, middle, low;

  DF11_INLINE void skip(uint32_t n) {  // n mod 32 bits
    high = shift_left_in(middle, high, n);
    middle = shift_left_in(low, middle, n);
    low <<= n & 31;
  }
  DF11_INLINE void skip_code(uint32_t length) {  // up to 32 bits
    if (length == 32) {
      high = middle;
      middle = low;
      low = 0;
    }
    skip(length);
  }
};

// The windows of one thread and the 32 bits after them, most significant bit first.
template <int kWindows>
struct ThreadCode {
  uint32_t words[2 * kWindows + 1];

  // From bit `skip` (below 32) of window `window` on. Selects instead of indexing, so that the
  // words stay in registers.
  DF11_INLINE CodeBits from(int window, uint32_t skip) const {
    uint32_t a = words[0], b = words[1], c = words[2];
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int k = 1; k < kWindows; ++k) {
      if (window == k) {
        a = words[2 * k];
        b = words[2 * k + 1];
        c = words[2 * k + 2];
      }
    }
    return {shift_left_in(b, a, skip), shift_left_in(c, b, skip), shift_left_in(0, c, skip)};
  }
};

struct WindowCount {
  uint32_t n_codes;     // that start in the thread's windows
  uint32_t next_start;  // bit of the first code that starts after them, from their end
  bool gaps_agree;      // the gaps within the thread's windows are where codes start
};

// Counts the codes that start in a thread's windows, from bit `gap` of the first one on.
// `second_gap` is the gap of the second of two windows. Without `live`: no codes; every thread of a
// warp has to call.
template <int kWindows, typename Tables>
DF11_INLINE WindowCount count_codes(const Tables& tables, const ThreadCode<kWindows>& code,
                                    uint32_t gap, uint32_t second_gap, bool live) {
  uint32_t at = gap, n_past = 0, next_start = 0;
  bool gaps_agree = true;
#ifdef __CUDACC__
#pragma unroll 1
#endif
  for (int window = 0; window < kWindows; ++window) {
    if (live) {
      CodeBits bits = code.from(window, at);
      if constexpr (Tables::kPeekBits == 0) {
        while ((at & kWindowBits) == 0) {
          const uint32_t entry = walk_rows(tables.rows, bits.high);
          const uint32_t length = entry != 0 ? entry & 63 : 32;
          at += length | kOneCodeSoFar;
          bits.skip_code(length);
        }
        at -= kWindowBits;
        next_start = at & 127;
      } else {
        uint32_t peek = 0, entry = 0;
        bool by_peek = true;
        const auto look_up = [&] {
          peek = first_bits<Tables::kPeekBits>(bits.high);
          entry = tables.counts[peek];
          at += entry;
          bits.skip(entry);
        };
        do look_up();
        while ((at & kWindowBits) == 0);
        while (entry == kLongCode) [[unlikely]] {  // kLongCode ends the loop above, too
            const uint32_t found = tables.long_code(tables.entries[peek].counts >> 16, bits.high);
            entry = (found != 0 ? found & 63 : 32) | kOneCodeSoFar;
            at += entry - kLongCode;
            bits.skip_code(entry & 63);
            by_peek = false;
            while ((at & kWindowBits) == 0) {
              look_up();
              by_peek = true;
            }
          }
        at -= kWindowBits;
        // The last lookup may have found codes that start after the window.
        const uint32_t starts = by_peek ? tables.entries[peek].counts >> 16 : 0;
        const uint32_t n_bits_within = (entry & 255) - (at & 127);
        const uint32_t past = starts >> (n_bits_within & 31);
        n_past = count_ones(past);
        next_start = past != 0 ? lowest_one(past) : at & 127;
      }
      if (window + 1 < kWindows) gaps_agree &= next_start == second_gap;
    }
    reconverge();
  }
  return {live ? (at >> 8) - n_past : 0, next_start, gaps_agree};
}

// Gathers exponents in a register and stores them as aligned 32-bit words.
//
// The first word may begin with bytes of the thread before: this thread stores zeros there, and the
// caller merges them in (merge_first_word), from what that thread has left in `pending`.
struct ExponentWriter {
  uint32_t bit;      // 8 * index of the next exponent in the staging buffer
  uint32_t end_bit;  // nothing is put from here on
  uint32_t pending;  // bytes of the word that is not stored yet
  uint8_t* word;     // where it goes

  DF11_INLINE ExponentWriter(uint8_t* staging, uint32_t first, uint32_t n)
      : bit(first * 8), end_bit((first + n) * 8), pending(0), word(staging + (first & ~3u)) {}

  DF11_INLINE void put(PeekEntry entry) {
    const uint32_t next = smaller(add_eight_times_byte_1(entry.counts, bit), end_bit);
    const uint32_t low = pending | entry.exponents << (bit & 31);
    const uint32_t high = shift_left_in(entry.exponents, 0, bit);
    pending = low;
    if (((bit ^ next) & 32) != 0) {
      *reinterpret_cast<uint32_t*>(word) = low;
      word += 4;
      pending = high;
    }
    bit = next;
  }
  // The bytes of `pending` that count.
  DF11_INLINE uint32_t tail() const { return pending & ((1u << (bit & 31)) - 1); }
};

// Decodes the codes that count_codes counted, at least four of them. on_no_code(bit) is called
// where the stream has no code, with the place in the staging buffer.
template <int kWindows, typename Tables, typename OnNoCode>
DF11_INLINE void decode_codes(const Tables& tables, const ThreadCode<kWindows>& code, uint32_t gap,
                              ExponentWriter& writer, const OnNoCode& on_no_code) {
  uint32_t at = gap;
  const auto put_single = [&](uint32_t found, CodeBits& bits) {
    if (found == 0) {
      on_no_code(writer.bit);
      found = 32;
    }
    const PeekEntry single = {found >> 8, (found & 63) | kOneCodeSoFar};
    writer.put(single);
    at += single.counts;
    bits.skip_code(found & 63);
  };
#ifdef __CUDACC__
#pragma unroll 1
#endif
  for (int window = 0; window < kWindows; ++window) {
    CodeBits bits = code.from(window, at);
    if constexpr (Tables::kPeekBits == 0) {
      while ((at & kWindowBits) == 0) put_single(walk_rows(tables.rows, bits.high), bits);
    } else {
      PeekEntry entry;
      const auto look_up = [&] {
        entry = tables.entries[first_bits<Tables::kPeekBits>(bits.high)];
        writer.put(entry);
        at += entry.counts;
        bits.skip(entry.counts);
      };
      do look_up();
      while ((at & kWindowBits) == 0);
      while ((entry.counts & kLongCode) != 0) [[unlikely]] {
          at -= kLongCode;
          put_single(tables.long_code(entry.counts >> 16, bits.high), bits);
          entry.counts = 0;
          while ((at & kWindowBits) == 0) look_up();
        }
    }
    at -= kWindowBits;
    reconverge();
  }
}

// The same one code at a time, with byte stores: for warps in which a thread has fewer than four
// codes, at the end of the stream and where codes are very long.
template <int kWindows, typename Tables, typename OnNoCode>
DF11_INLINE void decode_few_codes(const Tables& tables, const ThreadCode<kWindows>& code,
                                  uint32_t gap, uint8_t* staging, uint32_t first, uint32_t n_codes,
                                  const OnNoCode& on_no_code) {
  uint32_t at = gap, i = 0;
#ifdef __CUDACC__
#pragma unroll 1
#endif
  for (int window = 0; window < kWindows; ++window) {
    CodeBits bits = code.from(window, at);
#ifdef __CUDACC__
#pragma unroll 1
#endif
    while ((at & kWindowBits) == 0 && i < n_codes) {
      uint32_t found;
      if constexpr (Tables::kPeekBits == 0) {
        found = walk_rows(tables.rows, bits.high);
      } else {
        const PeekEntry entry = tables.entries[first_bits<Tables::kPeekBits>(bits.high)];
        const uint32_t high = entry.counts >> 16;  // starts, or a slot
        if ((entry.counts & kLongCode) != 0) {
          found = tables.long_code(high, bits.high);
        } else {
          const uint32_t length = high != 0 ? lowest_one(high) : entry.counts & 63;
          found = (entry.exponents & 255) << 8 | length;
        }
      }
      if (found == 0) {
        on_no_code((first + i) * 8);
        found = 32;
      }
      staging[first + i++] = static_cast<uint8_t>(found >> 8);
      at += found & 63;
      bits.skip_code(found & 63);
    }
    at -= kWindowBits;
  }
}

// Four rotated exponents and four sign_mantissa bytes to four words (spec/df11_format.md section
// 2): low byte = (exponent & 0x80) | (sm & 0x7f), high byte = (sm & 0x80) | (exponent & 0x7f).
// `mask` is kJoinMask; the kernel keeps it in a register.
inline constexpr uint32_t kJoinMask = 0x80808080u;
struct TwoByTwoWords {
  uint32_t first, second;
};
DF11_INLINE TwoByTwoWords join_four(uint32_t exponents, uint32_t sign_mantissa, uint32_t mask) {
  const uint32_t low = select_bits(exponents, sign_mantissa, mask);
  const uint32_t high = select_bits(sign_mantissa, exponents, mask);
  return {permute_bytes(low, high, 0x5140), permute_bytes(low, high, 0x7362)};
}
DF11_INLINE uint16_t join_one(uint32_t exponent, uint32_t sign_mantissa) {
  return static_cast<uint16_t>(((sign_mantissa & 0x80) | (exponent & 0x7f)) << 8 |
                               (exponent & 0x80) | (sign_mantissa & 0x7f));
}

}  // namespace df11::cuda
