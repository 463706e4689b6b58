// The one list of named inputs that the unit tests, the interop tests and the fuzz seeds share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/bytes.h"

namespace df11::test {

struct NamedInput {
  std::string name;
  std::vector<std::vector<uint16_t>> members;  // BF16 words; together one group

  std::vector<std::span<const uint16_t>> spans() const { return {members.begin(), members.end()}; }
  // All words in order.
  std::vector<uint16_t> words() const;
};

// Everything that is quick to code: about 2 million weights in all. Built once.
const std::vector<NamedInput>& named_inputs();
// Groups whose Huffman code has words of exactly 32 bits, and of more: 15 million weights.
std::vector<NamedInput> slow_inputs();
// Streams that end on or around byte, window and block borders (part of named_inputs()).
std::vector<NamedInput> border_inputs();

// Nearest BF16 word, ties to even. Finite values only.
uint16_t to_bf16(double value);

// For each i, counts[i] words with exponent first_exponent + i and random sign and mantissa,
// shuffled.
std::vector<uint16_t> words_with_counts(std::span<const uint64_t> counts, uint32_t first_exponent,
                                        uint64_t seed);
// `n` counts that, with the end-of-stream symbol's 1, give the smallest group whose longest code
// has `n` bits: 1, 1, 2, 3, 5, …
std::vector<uint64_t> fibonacci_counts(size_t n);

}  // namespace df11::test
