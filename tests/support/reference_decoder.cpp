#include "support/reference_decoder.h"

#include <algorithm>
#include <stdexcept>

namespace df11::test {

namespace {

class BitReader {
 public:
  explicit BitReader(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  // Bits after the end are zeros.
  uint32_t bit(uint64_t i) const {
    return i / 8 < bytes_.size() ? bytes_[i / 8] >> (7 - i % 8) & 1 : 0;
  }
  uint32_t bits(uint64_t first, int n) const {
    uint32_t value = 0;
    for (int i = 0; i < n; ++i) value = value * 2 + bit(first + static_cast<uint64_t>(i));
    return value;
  }

 private:
  const std::vector<uint8_t>& bytes_;
};

struct Symbol {
  uint32_t exponent;
  uint32_t length_bits;
  uint64_t level;
};

Symbol next_symbol(const GroupTensors& group, const BitReader& stream, uint64_t at) {
  const size_t n_rows = group.luts.size() / 256;
  size_t row = 0;
  for (uint64_t level = 0; level < 4; ++level) {
    const uint32_t entry = group.luts.at(row * 256 + stream.bits(at + 8 * level, 8));
    if (entry < 240) {
      const uint32_t length_bits = group.luts.at((n_rows - 1) * 256 + entry);
      if (length_bits == 0) throw std::runtime_error("symbol without a code");
      return {entry, length_bits, level};
    }
    row = 256 - entry;
    if (row + 1 >= n_rows) throw std::runtime_error("link to a row that is not there");
  }
  throw std::runtime_error("more than four levels");
}

uint16_t join(uint32_t exponent, uint32_t sign_mantissa) {
  const uint32_t sign = sign_mantissa / 128, mantissa = sign_mantissa % 128;
  return static_cast<uint16_t>(sign * 32768 + exponent * 128 + mantissa);
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

void check_tables(const std::vector<uint8_t>& luts) {
  require(luts.size() % 256 == 0, "luts is not rows of 256 bytes");
  require(luts.size() >= 2 * 256 && luts.size() <= 18 * 256, "rows of luts");
  const std::vector<uint8_t> lengths(luts.end() - 256, luts.end());
  require(std::any_of(lengths.begin(), lengths.end(), [](uint8_t n) { return n != 0; }), "no code");
  for (size_t exponent = 0; exponent < 256; ++exponent) {
    require(lengths[exponent] <= (exponent < 240 ? 32 : 0), "length of a code");
  }
}

// What gaps and positions have to be, noted while the codes are walked.
struct CodeStarts {
  std::vector<uint64_t> gaps, positions;
  std::vector<bool> starts_in_window;

  explicit CodeStarts(uint64_t n_blocks)
      : gaps(n_blocks * 512, 0), positions(n_blocks + 1, 0), starts_in_window(n_blocks * 512) {}
  void note(uint64_t at) {
    require(at / 64 < gaps.size(), "the stream ends before the weights do");
    if (!starts_in_window[at / 64]) gaps[at / 64] = at % 64;
    starts_in_window[at / 64] = true;
    for (uint64_t block = at / 32768 + 1; block < positions.size(); ++block) ++positions[block];
  }
};

}  // namespace

std::vector<uint16_t> reference_decode_strictly(const GroupTensors& group) {
  check_tables(group.luts);
  const uint64_t n = group.sign_mantissa.size(), n_bytes = group.encoded_exponent.size();
  require(n != 0 && n_bytes != 0, "no weights");
  const BitReader stream(group.encoded_exponent), gaps(group.gaps);
  const uint64_t n_blocks = (n_bytes + 4095) / 4096;
  CodeStarts starts(n_blocks);
  std::vector<uint16_t> words;
  uint64_t at = 0;
  for (const uint8_t sign_mantissa : group.sign_mantissa) {
    const Symbol symbol = next_symbol(group, stream, at);
    require((symbol.length_bits - 1) / 8 == symbol.level, "length and level");
    starts.note(at);
    at += symbol.length_bits;
    words.push_back(join(symbol.exponent, sign_mantissa));
  }
  require((at + 7) / 8 == n_bytes, "the weights do not end where the stream does");
  // The end-of-stream code starts in the last byte, if that is not full.
  if (at % 8 != 0 && !starts.starts_in_window[at / 64]) starts.gaps[at / 64] = at % 64;

  require(group.gaps.size() == 320 * n_blocks, "size of gaps");
  for (uint64_t window = 0; window < starts.gaps.size(); ++window) {
    require(gaps.bits(5 * window, 5) == starts.gaps[window], "a gap");
  }
  std::vector<uint64_t> positions;
  require(group.output_positions.size() % 4 == 0, "size of output_positions");
  for (size_t i = 0; i < group.output_positions.size(); i += 4) {
    const uint8_t* p = &group.output_positions[i];
    positions.push_back(p[0] + 256u * p[1] + 65536u * p[2] + 16777216u * uint64_t{p[3]});
  }
  // Section 10.1.
  if (positions.size() == n_blocks && positions.back() == n) positions.push_back(n);
  require(positions == starts.positions, "output_positions");
  return words;
}

std::vector<uint16_t> reference_decode(const GroupTensors& group) {
  const BitReader stream(group.encoded_exponent);
  std::vector<uint16_t> words;
  uint64_t at = 0;
  for (const uint8_t sign_mantissa : group.sign_mantissa) {
    const Symbol symbol = next_symbol(group, stream, at);
    at += symbol.length_bits;
    words.push_back(join(symbol.exponent, sign_mantissa));
  }
  if ((at + 7) / 8 != group.encoded_exponent.size()) throw std::runtime_error("stream goes on");
  return words;
}

std::vector<uint16_t> reference_decode_by_windows(const GroupTensors& group) {
  constexpr uint64_t kWindow = 64, kWindows = 512;
  const BitReader stream(group.encoded_exponent), gaps(group.gaps);
  const uint64_t n = group.sign_mantissa.size();
  const uint64_t n_bits = group.encoded_exponent.size() * 8;
  std::vector<uint16_t> words(n);
  std::vector<int> n_writes(n, 0);
  for (uint64_t block = 0; block * kWindow * kWindows < n_bits; ++block) {
    const uint8_t* p = &group.output_positions.at(4 * block + 3) - 3;
    uint64_t element = p[0] + 256u * p[1] + 65536u * p[2] + 16777216u * uint64_t{p[3]};
    for (uint64_t i = 0; i < kWindows; ++i) {
      const uint64_t window = block * kWindows + i;
      const uint64_t end = (window + 1) * kWindow;
      uint64_t at = window * kWindow + gaps.bits(window * 5, 5);
      while (at < end && at < n_bits && element < n) {
        const Symbol symbol = next_symbol(group, stream, at);
        at += symbol.length_bits;
        words[element] = join(symbol.exponent, group.sign_mantissa[element]);
        ++n_writes[element];
        ++element;
      }
    }
  }
  for (const int writes : n_writes) {
    if (writes != 1) throw std::runtime_error("a weight was not written exactly once");
  }
  return words;
}

}  // namespace df11::test
