// Encoding of as many weights as fit the first-level cache, the inner part of encode_slice().
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "compressor/encode_table.h"
#include "format/bytes.h"
#include "format/df11_layout.h"

namespace df11 {

// Appends runs of codes to 64-bit words, which are the windows of the stream, most significant bit
// first. Free of branches: whether a run fills its window is as good as random.
class CodeWriter {
 public:
  // `code` begins at the window that holds `first_bit`.
  CodeWriter(uint64_t first_bit, uint8_t* code) : code_(code), bit_(first_bit % kWindowBits) {}

  // The window that is being written, counted from where rebase() was last called, and its bits
  // that are taken.
  size_t window() const { return window_; }
  uint64_t filled() const { return bit_ % kWindowBits; }

  // `bits` are left-aligned, zeros after the first `length_bits` <= 64.
  [[gnu::always_inline]] void put(uint64_t bits, uint64_t length_bits) {
    const uint64_t here = bits >> filled();
    const uint64_t rest = std::rotr(bits, static_cast<int>(filled())) ^ here;  // past the window
    const uint64_t merged = pending_ | here;
    store_be64(code_ + window_ * kWindowBytes, merged);
    bit_ += length_bits;
    const uint64_t next = bit_ / kWindowBits;  // the same window, or one more
    pending_ = rest | (merged & ~(window_ - next));
    window_ = next;
  }

  void rebase() {
    code_ += window_ * kWindowBytes;
    bit_ %= kWindowBits;
    window_ = 0;
  }

  // Stores the last partial word and returns one past the last byte that holds bits.
  uint8_t* finish() const {
    uint8_t* word = code_ + window_ * kWindowBytes;
    if (filled() != 0) store_be64(word, pending_);
    return word + ceil_div(filled(), 8);
  }

 private:
  uint8_t* code_;
  uint64_t window_ = 0;
  uint64_t pending_ = 0;  // the current word, left-aligned
  uint64_t bit_;          // the next, counted from the first window
};

struct Chunk {
  static constexpr size_t kMaxElements = 2048;
  static constexpr size_t kMaxRun = 16;  // weights
  static constexpr size_t kMaxWindows = kMaxElements * kMaxCodeLength / kWindowBits + 2;

  // By weight, the length of its code. As many as a run has are read from any place on.
  alignas(64) std::array<uint8_t, kMaxElements + kMaxRun> length_bits{};
  // By window, counted from the chunk's first: the last run of codes that starts in it, and its
  // first bit there. That run is the one that crosses into the next window.
  std::array<uint16_t, kMaxWindows> run_begin;
  std::array<uint8_t, kMaxWindows> run_bit;
  std::span<const uint16_t> words;
};

// Splits chunk.words and encodes them; stores the gaps of the windows after those that it fills.
void encode_chunk(const EncodeTable& table, Chunk& chunk, CodeWriter& writer,
                  uint8_t* sign_mantissa, uint8_t* gaps);

// Where the first code begins that starts past a window, given the run that crosses its end.
struct NextStart {
  uint32_t gap;      // from the window's end
  uint32_t element;  // in the chunk
};
[[gnu::always_inline]] inline NextStart next_start(const Chunk& chunk, size_t window) {
  constexpr uint64_t kOneEach = 0x0101010101010101;
  constexpr uint64_t kPastEach = kOneEach * kWindowBits;
  // The ends of eight codes, a byte each. Those up to the first one past the window are below
  // 64 + 32; bytes after it may have overflown.
  const auto ends_of_eight = [&](size_t element, uint64_t bit) {
    return (load_le64(&chunk.length_bits[element]) + bit) * kOneEach;
  };
  const size_t begin = chunk.run_begin[window];
  const uint64_t first = ends_of_eight(begin, chunk.run_bit[window]);
  const uint64_t second = ends_of_eight(begin + 8, first >> 56);
  // Which half of a run of 16 it is is as good as random: no branch, which compilers would make of
  // a comparison. 1 if no bit is set in the first half.
  const uint64_t half = (((first & kPastEach) - 1) & ~(first & kPastEach)) >> 63;
  const uint64_t ends = first ^ ((first ^ second) & (0 - half));
  // No end is found where codes are missing, because the source changed.
  const uint32_t at = static_cast<uint32_t>(std::countr_zero(ends & kPastEach)) / 8 % 8;
  return {static_cast<uint32_t>(ends >> (8 * at)) % kWindowBits,
          static_cast<uint32_t>(begin + 8 * half + at + 1)};
}

}  // namespace df11
