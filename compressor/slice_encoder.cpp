#include "compressor/slice_encoder.h"

#include <algorithm>

#include "compressor/chunk_encoder.h"

namespace df11 {

namespace {

constexpr uint32_t kWindowsPerGapUnit = 8;  // 8 gaps of 5 bits fill 5 bytes
constexpr uint32_t kGapUnitBytes = kWindowsPerGapUnit * kGapBits / 8;

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
  for (size_t begin = 0; begin < words.size(); begin += Chunk::kMaxElements) {
    chunk.words = words.subspan(begin, std::min(Chunk::kMaxElements, words.size() - begin));
    encode_chunk(table, chunk, writer, sign_mantissa + begin,
                 window_gaps + (window + 1 - base_window));
    const uint64_t end_window = window + writer.window();
    for (uint64_t at = (window / kWindowsPerBlock + 1) * kWindowsPerBlock; at <= end_window;
         at += kWindowsPerBlock) {
      const uint32_t element = next_start(chunk, at - 1 - window).element;
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
