#include "compressor/slice_encoder.h"

#include <algorithm>
#include <cstring>

#include "format/bf16.h"

namespace df11 {

namespace {

constexpr uint32_t kWindowsPerGapUnit = 8;  // 8 gaps of 5 bits fill 5 bytes
constexpr uint32_t kGapUnitBytes = kWindowsPerGapUnit * kGapBits / 8;

void split(std::span<const uint16_t> words, uint8_t* exponents, uint8_t* sign_mantissa) {
  for (size_t i = 0; i < words.size(); ++i) {
    exponents[i] = bf16_exponent(words[i]);
    sign_mantissa[i] = bf16_sign_mantissa(words[i]);
  }
}

// Appends codes to a window-aligned buffer, most significant bit first. A 64-bit word that fills up
// is a window that ends: the bits left over are the next window's gap.
class CodeWriter {
 public:
  CodeWriter(const SlicePosition& position, EncodedSlice& out, uint8_t* code, uint8_t* window_gaps)
      : word_(code),
        gap_(window_gaps + position.first_bit / kWindowBits + 1 -
             out.first_window / kWindowsPerGapUnit * kWindowsPerGapUnit),
        window_(position.first_bit / kWindowBits),
        filled_(static_cast<uint32_t>(position.first_bit % kWindowBits)),
        out_(out) {}

  // Up to four codes as one of `length_bits` <= 64; `ends` are where each of them ends, in bits from
  // its start, and `next_element` is the index of the weight after the first of them.
  [[gnu::always_inline]] void put(uint64_t bits, uint32_t length_bits,
                                  const std::array<uint32_t, 4>& ends, uint64_t next_element) {
    filled_ += length_bits;
    if (filled_ < kWindowBits) {
      pending_ = pending_ << length_bits | bits;
      return;
    }
    filled_ -= kWindowBits;
    // What pending_ holds above its valid bits leaves at the top, here or in a later word.
    const uint32_t to_boundary = length_bits - filled_;  // 1 to 64
    store_be64(word_, pending_ << 1 << (to_boundary - 1) | bits >> filled_);
    pending_ = bits;
    word_ += kWindowBytes;
    ++window_;
    // Every window holds a code's first bit: the first end past the boundary is the next gap.
    const uint32_t n_before = (ends[0] < to_boundary) + (ends[1] < to_boundary) + (ends[2] < to_boundary);
    *gap_++ = static_cast<uint8_t>(ends[n_before] - to_boundary);
    if (window_ % kWindowsPerBlock == 0) {
      out_.positions.push_back(static_cast<uint32_t>(next_element + n_before));
    }
  }

  uint64_t end_bit() const { return window_ * kWindowBits + filled_; }

  // Flushes the last partial word and returns one past the last byte that holds bits.
  uint8_t* finish() {
    if (filled_ != 0) store_be64(word_, pending_ << (kWindowBits - filled_));
    return word_ + ceil_div(filled_, 8);
  }

 private:
  uint8_t* word_;
  uint8_t* gap_;     // of the window after the current one
  uint64_t window_;  // the current one
  uint64_t pending_ = 0;
  uint32_t filled_;  // valid low bits of pending_
  EncodedSlice& out_;
};

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

}  // namespace

void count_exponents(std::span<const uint16_t> words, Histogram& histogram) {
  // Four tables: equal neighbours would otherwise wait for each other's store.
  constexpr size_t kMaxCountedAtOnce = size_t{1} << 30;
  while (!words.empty()) {
    std::array<std::array<uint32_t, 256>, 4> counts{};
    const std::span<const uint16_t> part = words.first(std::min(words.size(), kMaxCountedAtOnce));
    size_t i = 0;
    for (; i + 4 <= part.size(); i += 4) {
      uint64_t four;
      std::memcpy(&four, &part[i], sizeof four);
      ++counts[0][four >> 7 & 0xff];
      ++counts[1][four >> 23 & 0xff];
      ++counts[2][four >> 39 & 0xff];
      ++counts[3][four >> 55 & 0xff];
    }
    for (; i < part.size(); ++i) ++counts[0][bf16_exponent(part[i])];
    for (int symbol = 0; symbol < 256; ++symbol) {
      for (const auto& table : counts) histogram[symbol] += table[symbol];
    }
    words = words.subspan(part.size());
  }
}

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
      pairs_[second << 8 | first] =
          length_bits > kMaxPairBits
              ? kLongPair
              : (uint64_t{a.bits} << b.length_bits | b.bits) << 16 | a.length_bits << 8 | length_bits;
    }
  }
}

void encode_slice(std::span<const uint16_t> words, const EncodeTable& table,
                  const SlicePosition& position, uint8_t* sign_mantissa, EncodedSlice& out) {
  const bool first = position.first_element == 0;
  out.first_window = first ? 0 : position.first_bit / kWindowBits + 1;
  out.first_block = first ? 0 : position.first_bit / kBlockBits + 1;
  out.positions.clear();

  // Two spare exponents, so that the last pair can be loaded whole.
  uint8_t* exponents = out.exponents.ensure(words.size() + 2);
  split(words, exponents, sign_mantissa);

  // Upper bounds, so that the loops need no checks: every code as long as the longest, the partial
  // first window, a word's store past the end, and close_stream's whole blocks.
  const uint64_t max_bits = uint64_t{words.size()} * table.longest_bits() + kWindowBits;
  uint8_t* code = out.code_words.ensure(max_bits / 8 + 2 * kWindowBytes);
  uint8_t* window_gaps =
      out.window_gaps.ensure(max_bits / kWindowBits + 2 * kWindowsPerGapUnit + kWindowsPerBlock + 2);

  if (first) {
    window_gaps[0] = 0;
    out.positions.push_back(0);
  }
  CodeWriter writer(position, out, code, window_gaps);
  const auto put_one = [&](size_t i) {
    const Code code_i = table.code(exponents[i]);
    const uint32_t length = code_i.length_bits;
    writer.put(code_i.bits, length, {length, length, length, length}, position.first_element + i + 1);
  };
  size_t i = 0;
  for (; i + 4 <= words.size(); i += 4) {
    const EncodeTable::Pair ab = table.pair(exponents + i), cd = table.pair(exponents + i + 2);
    const uint32_t length_bits = ab.length_bits + cd.length_bits;
    if (length_bits <= kWindowBits) [[likely]] {
      writer.put(ab.bits << cd.length_bits | cd.bits, length_bits,
                 {ab.first_length_bits, ab.length_bits, ab.length_bits + cd.first_length_bits, length_bits},
                 position.first_element + i + 1);
    } else {
      for (size_t j = i; j < i + 4; ++j) put_one(j);
    }
  }
  for (; i < words.size(); ++i) put_one(i);

  out.end_bit = writer.end_bit();
  out.end_window = out.end_bit / kWindowBits + 1;
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
