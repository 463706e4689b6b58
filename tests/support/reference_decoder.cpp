#include "support/reference_decoder.h"

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
};

Symbol next_symbol(const GroupTensors& group, const BitReader& stream, uint64_t at) {
  const size_t n_rows = group.luts.size() / 256;
  size_t row = 0;
  for (uint64_t level = 0; level < 4; ++level) {
    const uint32_t entry = group.luts.at(row * 256 + stream.bits(at + 8 * level, 8));
    if (entry < 240) {
      const uint32_t length_bits = group.luts.at((n_rows - 1) * 256 + entry);
      if (length_bits == 0) throw std::runtime_error("symbol without a code");
      return {entry, length_bits};
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

}  // namespace

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
