#include "compressor/encode_table.h"

#include <algorithm>

#include "format/df11_layout.h"

namespace df11 {

namespace {

using Window = EncodeTable::Window;

// Where the window lies that holds most weights, going by the lengths of codes: one of n bits
// stands for about one weight in 2^n.
Window best_window(const Codebook& codebook) {
  const auto share = [&](size_t exponent) -> uint64_t {
    const uint32_t length_bits = codebook.codes[exponent].length_bits;
    return length_bits == 0 ? 0 : uint64_t{1} << kMaxCodeLength >> length_bits;
  };
  Window window;
  uint64_t most = 0, all = 0;
  for (size_t exponent = 0; exponent < codebook.codes.size(); ++exponent) all += share(exponent);
  // Not from 0 on, which has its own place.
  for (size_t first = 1; first + Window::kExponents <= codebook.codes.size(); ++first) {
    uint64_t inside = share(0);
    for (size_t i = 0; i < Window::kExponents; ++i) inside += share(first + i);
    if (inside > most) most = inside, window.first_exponent = static_cast<uint8_t>(first);
  }
  window.useful = most * 16 >= all * 15;

  window.length_bits.fill(Window::kNoCode);
  const auto set_place = [&](size_t place, Code code) {
    if (code.length_bits == 0 || code.length_bits > Window::kMaxCodeBits) return;
    const uint32_t bits = code.bits << (Window::kMaxCodeBits - code.length_bits);
    window.length_bits[place] = code.length_bits;
    window.high_bits[place] = static_cast<uint8_t>(bits >> 8);
    window.low_bits[place] = static_cast<uint8_t>(bits);
  };
  for (size_t i = 0; i < Window::kExponents; ++i)
    set_place(i, codebook.codes[window.first_exponent + i]);
  set_place(Window::kPlaceOfZero, codebook.codes[0]);
  return window;
}

}  // namespace

EncodeTable::EncodeTable(const Codebook& codebook)
    : window_(best_window(codebook)), end_of_stream_(codebook.end_of_stream) {
  for (size_t exponent = 0; exponent < codes_.size(); ++exponent) {
    const Code code = codebook.codes[exponent];
    if (code.length_bits == 0) continue;
    codes_[exponent] = uint64_t{code.bits} << (64 - code.length_bits) | code.length_bits;
    longest_bits_ = std::max<uint32_t>(longest_bits_, code.length_bits);
  }
}

}  // namespace df11
