// Streams that end at a chosen bit. The counts are Fibonacci-like, so the most frequent exponent
// has a 1-bit code and one more of it moves the end by exactly one bit; the order of the weights
// changes neither the code nor the length, so any exponent can be put last.
#include <algorithm>
#include <cstdlib>

#include "format/bf16.h"
#include "format/df11_layout.h"
#include "support/named_inputs.h"
#include "support/reference_encoder.h"

namespace df11::test {

namespace {

// Ends at `past_border_bits` after a multiple of `border_bits`, with a last code of at least
// `min_last_bits`: one with more bits than `past_border_bits` crosses the border.
std::vector<uint16_t> ending_at(uint64_t border_bits, uint64_t past_border_bits,
                                size_t min_last_bits, size_t n_symbols, uint64_t seed) {
  const std::vector<uint64_t> counts = fibonacci_counts(n_symbols);
  std::vector<uint16_t> words = words_with_counts(counts, 100, seed);
  const uint32_t most_frequent = 100 + static_cast<uint32_t>(n_symbols) - 1;

  const auto code_of = [](const std::vector<uint16_t>& w) {
    return reference_code(exponent_counts(w));
  };
  const auto n_bits = [&](const ReferenceCode& code) {
    uint64_t bits = 0;
    for (const uint16_t word : words) bits += code.bits(bf16_exponent(word)).size();
    return bits;
  };
  const uint64_t bits = n_bits(code_of(words));
  const uint64_t target = ceil_div(bits, border_bits) * border_bits + past_border_bits;
  for (uint64_t i = bits; i < target; ++i) {
    words.push_back(bf16_join(static_cast<uint8_t>(most_frequent), static_cast<uint8_t>(i)));
  }
  const ReferenceCode code = code_of(words);
  // The shortest code that is long enough, so that different ones come last in different inputs.
  auto last = words.end();
  size_t last_bits = 1000;
  for (auto it = words.begin(); it != words.end(); ++it) {
    const size_t length = code.bits(bf16_exponent(*it)).size();
    if (length >= min_last_bits && length < last_bits) {
      last = it;
      last_bits = length;
    }
  }
  // A generator that misses its border would quietly test nothing.
  if (n_bits(code) != target || last == words.end()) std::abort();
  std::iter_swap(last, words.end() - 1);
  return words;
}

}  // namespace

std::vector<NamedInput> border_inputs() {
  return {
      {"ends_on_byte", {ending_at(64, 40, 1, 12, 41)}},
      {"ends_on_window", {ending_at(64, 0, 1, 12, 42)}},
      {"ends_on_block", {ending_at(kBlockBits, 0, 1, 18, 43)}},
      {"ends_on_third_block", {ending_at(3 * kBlockBits, 0, 3, 18, 44)}},
      {"ends_one_bit_before_block", {ending_at(kBlockBits, kBlockBits - 1, 2, 18, 45)}},
      {"ends_one_bit_into_block", {ending_at(kBlockBits, 1, 1, 18, 46)}},
      {"last_code_crosses_window_aligned", {ending_at(64, 8, 9, 12, 47)}},
      {"last_code_crosses_window_unaligned", {ending_at(64, 5, 6, 12, 48)}},
      {"last_code_crosses_block_by_1", {ending_at(kBlockBits, 1, 2, 18, 49)}},
      {"last_code_crosses_block_by_3", {ending_at(kBlockBits, 3, 4, 18, 50)}},
      {"last_code_crosses_block_by_8", {ending_at(kBlockBits, 8, 9, 18, 51)}},
      {"last_code_crosses_block_by_11", {ending_at(kBlockBits, 11, 12, 18, 52)}},
      {"last_code_crosses_block_by_16", {ending_at(kBlockBits, 16, 17, 20, 53)}},
      {"last_code_crosses_block_by_24", {ending_at(kBlockBits, 24, 25, 26, 54)}},
      {"last_code_starts_on_block_aligned", {ending_at(kBlockBits, 8, 8, 18, 55)}},
      {"last_code_starts_on_block_unaligned", {ending_at(kBlockBits, 5, 5, 18, 56)}},
  };
}

}  // namespace df11::test
