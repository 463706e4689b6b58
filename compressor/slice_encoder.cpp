#include "compressor/slice_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/bf16.h"

namespace df11 {

namespace {

constexpr uint32_t kWindowsPerGapUnit = 8;  // 8 gaps of 5 bits fill 5 bytes
constexpr uint32_t kGapUnitBytes = kWindowsPerGapUnit * kGapBits / 8;

// Slices are worked off in chunks that fit the first-level cache.
constexpr size_t kChunkElements = 4096;
constexpr size_t kRunElements = 8;
static_assert(kChunkElements % kRunElements == 0);

// Slots of the pairs of exponents, up to 7 weights of padding included.
using PairSlots = std::array<uint16_t, kChunkElements / 2 + kRunElements / 2>;

[[gnu::always_inline]] inline void find_pairs(std::span<const uint16_t> words, PairSlots& slots) {
  alignas(64) std::array<uint8_t, kChunkElements + kRunElements> exponents;
  for (size_t i = 0; i < words.size(); ++i) exponents[i] = bf16_exponent(words[i]);
  std::fill_n(&exponents[words.size()], kRunElements, bf16_exponent(words.back()));
  const size_t n_pairs = words.size() / 2 + kRunElements / 2;
  std::memcpy(slots.data(), exponents.data(), 2 * n_pairs);
  for (size_t i = 0; i < n_pairs; ++i) slots[i] = pair_slot(slots[i]);
}

[[gnu::always_inline]] inline void take_sign_mantissas(std::span<const uint16_t> words,
                                                       uint8_t* sign_mantissa) {
  for (size_t i = 0; i < words.size(); ++i) sign_mantissa[i] = bf16_sign_mantissa(words[i]);
}

struct Chunk {
  static constexpr size_t kMaxWindows = kChunkElements * kMaxCodeLength / kWindowBits + 2;
  alignas(64) PairSlots slots;
  // By window, counted from the chunk's first: the last run of codes that starts in it, and its
  // first bit there. That run is the one that crosses into the next window.
  std::array<uint16_t, kMaxWindows> run_begin;
  std::array<uint8_t, kMaxWindows> run_bit;
  std::span<const uint16_t> words;
};

// Appends runs of codes to 64-bit words, which are the windows of the stream, most significant bit
// first. Free of branches: whether a run fills its window is as good as random.
class CodeWriter {
 public:
  // `code` begins at the window that holds `first_bit`.
  CodeWriter(uint64_t first_bit, uint8_t* code) : code_(code), filled_(first_bit % kWindowBits) {}

  // The window that is being written, counted from where rebase() was last called.
  size_t window() const { return window_; }
  uint64_t filled() const { return filled_; }

  // `bits` are left-aligned, zeros after the first `length_bits` <= 64.
  [[gnu::always_inline]] void put(uint64_t bits, uint64_t length_bits) {
    const uint64_t merged = pending_ | bits >> filled_;
    store_be64(code_ + window_ * kWindowBytes, merged);
    const uint64_t rest = bits << 1 << (~filled_ % kWindowBits);  // 0 when all of it fits
    filled_ += length_bits;
    const uint64_t n_full = filled_ / kWindowBits;  // 0 or 1
    pending_ = rest | (merged & (n_full - 1));
    window_ += n_full;
    filled_ %= kWindowBits;
  }

  void rebase() {
    code_ += window_ * kWindowBytes;
    window_ = 0;
  }

  // Stores the last partial word and returns one past the last byte that holds bits.
  uint8_t* finish() const {
    uint8_t* word = code_ + window_ * kWindowBytes;
    if (filled_ != 0) store_be64(word, pending_);
    return word + ceil_div(filled_, 8);
  }

 private:
  uint8_t* code_;
  size_t window_ = 0;
  uint64_t pending_ = 0;  // the current word, left-aligned
  uint64_t filled_;       // its valid bits
};

// Writes the codes of `chunk`, and notes which run fills which window.
[[gnu::always_inline]] inline void put_codes(const EncodeTable& table, Chunk& chunk,
                                             CodeWriter& shared_writer) {
  // Copies that bytes stored through pointers cannot alias.
  CodeWriter writer = shared_writer;
  const EncodeTable::Pairs pairs = table.pairs();
  const uint16_t* const slots = chunk.slots.data();
  const auto put = [&](size_t i, uint64_t bits, uint64_t length_bits)
      __attribute__((always_inline)) {
    chunk.run_begin[writer.window()] = static_cast<uint16_t>(i);
    chunk.run_bit[writer.window()] = static_cast<uint8_t>(writer.filled());
    writer.put(bits, length_bits);
  };
  const auto put_run = [&](size_t i, EncodeTable::Run run) __attribute__((always_inline)) {
    put(i, run.bits & ~uint64_t{0xffff}, run.length_bits());
  };
  const auto put_one = [&](size_t i) {
    const Code code = table.code(bf16_exponent(chunk.words[i]));
    put(i, code.length_bits == 0 ? 0 : uint64_t{code.bits} << (64 - code.length_bits),
        code.length_bits);
  };
  const size_t n_in_runs = chunk.words.size() / kRunElements * kRunElements;
  for (size_t i = 0; i < n_in_runs; i += kRunElements) {
    __builtin_prefetch(chunk.words.data() + i +
                       kChunkElements);  // the next chunk, while this one computes
    const uint16_t* const run_slots =
        reinterpret_cast<const uint16_t*>(reinterpret_cast<const uint8_t*>(slots) + i);
    const EncodeTable::Run eight = pairs.eight(run_slots);
    if (eight.length_bits() <= EncodeTable::kMaxRunBits) [[likely]] {
      put_run(i, eight);
      continue;
    }
    for (size_t j = 0; j < kRunElements; j += 4) {
      const EncodeTable::Run four = pairs.four(run_slots + j / 2);
      if (four.length_bits() <= EncodeTable::kMaxRunBits) {
        put_run(i + j, four);
      } else {
        for (size_t k = j; k < j + 4; ++k) put_one(i + k);
      }
    }
  }
  for (size_t i = n_in_runs; i < chunk.words.size(); ++i) put_one(i);
  shared_writer = writer;
}

// Where the first code begins that starts past a window, given the run that crosses its end.
struct NextStart {
  uint32_t gap;      // from the window's end
  uint32_t element;  // in the chunk
};
[[gnu::always_inline]] inline NextStart next_start(const EncodeTable& table, const Chunk& chunk,
                                                   size_t window) {
  const uint32_t begin = chunk.run_begin[window];
  const uint64_t bit = chunk.run_bit[window];
  if (begin % 2 != 0) [[unlikely]] {  // a run of one code, outside the order of pairs
    const uint64_t end = bit + table.code(bf16_exponent(chunk.words[begin])).length_bits;
    return {static_cast<uint32_t>(end % kWindowBits), begin + 1};
  }
  // The ends of the run's codes, a byte each. Bytes after the first end past the window may have
  // overflown; those up to it are below 64 + 48.
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff, kOneEach = 0x0101010101010101;
  const EncodeTable::Pairs pairs = table.pairs();
  uint64_t lengths = 0;
  for (size_t i = 0; i < 4; ++i)
    lengths |= (pairs[chunk.slots[begin / 2 + i]] & 0xffff) << (16 * i);
  const uint64_t ends_of_pairs = (lengths & kEven) * 0x0001000100010001;
  const uint64_t ends =
      (ends_of_pairs << 16) + (lengths >> 8 & kEven) + (ends_of_pairs << 8) + bit * kOneEach;
  // The top bit ends the search where codes are missing, because the source changed.
  const uint32_t at =
      static_cast<uint32_t>(std::countr_zero((ends & kOneEach * kWindowBits) | uint64_t{1} << 63)) /
      8;
  return {static_cast<uint32_t>(ends >> (8 * at)) % kWindowBits, begin + at + 1};
}

// Splits chunk.words and encodes them; stores the gaps of the windows after those that it fills.
[[gnu::always_inline]] inline void encode_chunk_generic(const EncodeTable& table, Chunk& chunk,
                                                        CodeWriter& writer, uint8_t* sign_mantissa,
                                                        uint8_t* gaps) {
  writer.rebase();
  take_sign_mantissas(chunk.words, sign_mantissa);
  find_pairs(chunk.words, chunk.slots);
  put_codes(table, chunk, writer);
  for (size_t window = 0; window < writer.window(); ++window) {
    gaps[window] = static_cast<uint8_t>(next_start(table, chunk, window).gap);
  }
}

void pack_gaps(const uint8_t* window_gaps, uint64_t n_units, uint8_t* packed) {
  for (uint64_t unit = 0; unit < n_units; ++unit) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < kWindowsPerGapUnit; ++i) bits = bits << kGapBits | *window_gaps++;
    for (int shift = 32; shift >= 0; shift -= 8) *packed++ = static_cast<uint8_t>(bits >> shift);
  }
}

// Packs the gaps of [first_window, end_window); zeroes for windows of the first unit that belong to
// the slice before, and of the last that belong to the one after.
void pack_owned_gaps(EncodedSlice& out) {
  uint8_t* window_gaps = out.window_gaps.data();
  const uint64_t first_unit = out.first_window / kWindowsPerGapUnit;
  const uint64_t end_unit = ceil_div(out.end_window, kWindowsPerGapUnit);
  std::fill_n(window_gaps, out.first_window - first_unit * kWindowsPerGapUnit, uint8_t{0});
  std::fill(window_gaps + (out.end_window - first_unit * kWindowsPerGapUnit),
            window_gaps + (end_unit - first_unit) * kWindowsPerGapUnit, uint8_t{0});
  out.n_gap_bytes = (end_unit - first_unit) * kGapUnitBytes;
  pack_gaps(window_gaps, end_unit - first_unit, out.gaps.ensure(out.n_gap_bytes));
}

// The same code twice: shifts by any register (BMI2) and wider vectors make it a third faster.
using EncodeChunk = void(const EncodeTable&, Chunk&, CodeWriter&, uint8_t* sign_mantissa,
                         uint8_t* gaps);

void encode_chunk_baseline(const EncodeTable& table, Chunk& chunk, CodeWriter& writer,
                           uint8_t* sign_mantissa, uint8_t* gaps) {
  encode_chunk_generic(table, chunk, writer, sign_mantissa, gaps);
}

#if defined(__x86_64__)
[[gnu::target("avx2,bmi,bmi2")]] void encode_chunk_avx2(const EncodeTable& table, Chunk& chunk,
                                                        CodeWriter& writer, uint8_t* sign_mantissa,
                                                        uint8_t* gaps) {
  encode_chunk_generic(table, chunk, writer, sign_mantissa, gaps);
}

EncodeChunk* encode_chunk() {
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                           __builtin_cpu_supports("bmi2");
  return avx2 ? encode_chunk_avx2 : encode_chunk_baseline;
}
#else
EncodeChunk* encode_chunk() {
  return encode_chunk_baseline;
}
#endif

}  // namespace

EncodeTable::EncodeTable(const Codebook& codebook)
    : end_of_stream_(codebook.end_of_stream), pairs_(size_t{1} << 16, 0) {
  std::vector<uint32_t> coded;
  for (uint32_t exponent = 0; exponent < codebook.codes.size(); ++exponent) {
    const Code code = codebook.codes[exponent];
    if (code.length_bits == 0) continue;
    coded.push_back(exponent);
    longest_bits_ = std::max<uint32_t>(longest_bits_, code.length_bits);
  }
  codes_ = codebook.codes;
  for (const uint32_t second : coded) {
    for (const uint32_t first : coded) {
      const Code a = codes_[first], b = codes_[second];
      const uint32_t length_bits = a.length_bits + b.length_bits;
      const uint64_t bits = uint64_t{a.bits} << b.length_bits | b.bits;
      pairs_[pair_slot(static_cast<uint8_t>(first), static_cast<uint8_t>(second))] =
          a.length_bits << 8 |
          (length_bits > kMaxRunBits ? kLongPair : bits << (64 - length_bits) | length_bits);
    }
  }
}

void encode_slice(std::span<const uint16_t> words, const EncodeTable& table,
                  const SlicePosition& position, uint8_t* sign_mantissa, EncodedSlice& out) {
  const bool first = position.first_element == 0;
  out.first_window = first ? 0 : position.first_bit / kWindowBits + 1;
  out.first_block = first ? 0 : position.first_bit / kBlockBits + 1;
  out.positions.clear();

  // Upper bounds, so that the loops need no checks: every code as long as the longest, the partial
  // first window, a word's store past the end, and close_stream's whole blocks.
  const uint64_t max_bits = uint64_t{words.size()} * table.longest_bits() + kWindowBits;
  uint8_t* code = out.code_words.ensure(max_bits / 8 + 2 * kWindowBytes);
  uint8_t* window_gaps = out.window_gaps.ensure(max_bits / kWindowBits + 2 * kWindowsPerGapUnit +
                                                kWindowsPerBlock + 2);

  if (first) {
    window_gaps[0] = 0;
    out.positions.push_back(0);
  }
  CodeWriter writer(position.first_bit, code);
  uint64_t window = position.first_bit / kWindowBits;
  const uint64_t base_window = out.first_window / kWindowsPerGapUnit * kWindowsPerGapUnit;
  Chunk chunk;
  for (size_t begin = 0; begin < words.size(); begin += kChunkElements) {
    chunk.words = words.subspan(begin, std::min(kChunkElements, words.size() - begin));
    encode_chunk()(table, chunk, writer, sign_mantissa + begin,
                   window_gaps + (window + 1 - base_window));
    const uint64_t end_window = window + writer.window();
    for (uint64_t at = (window / kWindowsPerBlock + 1) * kWindowsPerBlock; at <= end_window;
         at += kWindowsPerBlock) {
      const uint32_t element = next_start(table, chunk, at - 1 - window).element;
      out.positions.push_back(static_cast<uint32_t>(position.first_element + begin + element));
    }
    window = end_window;
  }

  out.end_bit = window * kWindowBits + writer.filled();
  out.end_window = window + 1;
  out.code = {code + position.first_bit % kWindowBits / 8, writer.finish()};
  pack_owned_gaps(out);
}

void close_stream(const EncodeTable& table, uint64_t n_group_elements, EncodedSlice& out) {
  const uint32_t used = static_cast<uint32_t>(out.end_bit % 8);
  if (used != 0) {
    // Spec 5.2: the end-of-stream code's leading bits, then zeros if it is shorter.
    const uint64_t aligned = uint64_t{table.end_of_stream().bits}
                             << (64 - table.end_of_stream().length_bits);
    out.code.back() |= static_cast<uint8_t>(aligned >> (56 + used));
  }

  const uint64_t n_stream_bytes = ceil_div(out.end_bit, 8);
  const uint64_t n_blocks = n_code_blocks(n_stream_bytes);
  const uint64_t first_unit = out.first_window / kWindowsPerGapUnit;
  const auto gap = [&](uint64_t window) {
    return out.window_gaps.data() + (window - first_unit * kWindowsPerGapUnit);
  };
  // Spec 5.3: a window that holds only the tail of the last code has gap 0 if the stream ends at a
  // whole byte, and otherwise that of the end-of-stream code.
  const uint64_t last_window = out.end_bit / kWindowBits;
  if (used == 0 && out.first_window <= last_window &&
      *gap(last_window) == out.end_bit % kWindowBits) {
    *gap(last_window) = 0;
  }
  const uint64_t n_windows = n_blocks * kWindowsPerBlock;
  if (out.end_window < n_windows) {
    std::fill(gap(out.end_window), gap(n_windows), uint8_t{0});
  }
  out.end_window = n_windows;
  pack_owned_gaps(out);

  // Spec 5.4. A block that holds only the tail of the last code starts at N, too.
  const uint32_t n_elements = static_cast<uint32_t>(n_group_elements);
  out.positions.resize(n_blocks + 1 - out.first_block, n_elements);
  out.positions.back() = n_elements;
}

}  // namespace df11
