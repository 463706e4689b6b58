// The inner loops of the CPU decoder, in versions for different processors.
//
// A block is decoded in three steps. Lookups follow the codes and do nothing else: they lay the
// table entries that they meet on a tape, all of the same size, so that no address depends on what
// was decoded. Then the exponents are taken off the tape. Last they are joined with the other
// halves of the words, and the code starts are found that gaps have to agree with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "decoder/decoder.h"
#include "decoder/multi_symbol_table.h"
#include "format/df11_layout.h"

namespace df11 {

// Blocks whose lookups are made in one instruction stream: each lookup waits for the one before it,
// and eight chains of them hide that wait.
inline constexpr size_t kStreams = 8;

inline constexpr int kLookupsPerLoad = 5;
inline constexpr uint32_t kPeekedBitsPerLoad = kLookupsPerLoad * MultiSymbolTable::kPeekBits;
static_assert(kPeekedBitsPerLoad <= 57);  // what a load leaves, at least
// The last lookup may meet a code that is longer than the peek.
inline constexpr uint32_t kMaxBitsPerLoad =
    (kLookupsPerLoad - 1) * MultiSymbolTable::kPeekBits + kMaxCodeLength;

// Of trained weights; what to fetch in advance depends on it.
inline constexpr size_t kTypicalElementsPerLoad = 18;

// What loads yield before it is expanded: little, so that it stays in the first-level cache.
inline constexpr size_t kLoadsPerTape = 16;
struct alignas(64) LookupTape {
  std::array<uint64_t, kLoadsPerTape * kLookupsPerLoad> entries;
};
static_assert(sizeof(LookupTape) % 64 == 0);  // expanded by eight entries

// A block holds at most one code start a bit.
inline constexpr uint32_t kMaxBlockElements = kBlockBits;

// How far lookups go on after a block, for as long as its neighbours are not done: reading stays
// within the lookahead. What they find there is dropped.
inline constexpr uint32_t kOverrunBits = 8 * (kCodeLookaheadBytes - 8);
static_assert(kOverrunBits % kWindowBits == 0);

// What decoding one block leaves behind. Vectors are stored whole, up to 64 bytes past what counts.
struct BlockScratch {
  alignas(64) std::array<uint8_t, kMaxBlockElements + kOverrunBits + 64> exponents;
  // By window, from 1 on: the offset of the first code that starts in it.
  std::array<uint8_t, kWindowsPerBlock + 1 + 64> starts;
  // By window: the bit of the last lookup in it, which crosses into the next one. Not all kernels
  // need it.
  std::array<uint16_t, kWindowsPerBlock + kOverrunBits / kWindowBits> last_lookup;
};

// One block while it is decoded. Bits count from the block's first one.
struct BlockStream {
  const uint8_t* code;  // the block's first byte
  uint32_t first_bit;   // where its first code starts
  uint32_t end_bit;     // where no code starts any more
  uint32_t n_elements;  // to decode
  BlockScratch* scratch;
  uint64_t bit;  // of the next code
  uint64_t kept_bit;
  uint32_t n_decoded = 0;
  uint32_t n_kept = 0;

  bool done() const { return n_decoded >= n_elements || bit >= end_bit; }
  uint64_t n_safe_loads() const { return (end_bit + kOverrunBits - bit) / kMaxBitsPerLoad; }

  // Before a tape: drop_surplus() comes back here if it leads beyond the block.
  void keep() {
    if (done()) return;
    n_kept = n_decoded;
    kept_bit = bit;
  }
};

inline uint64_t peek_stream(const uint8_t* code, uint64_t bit) {
  return load_be64(code + bit / 8) << (bit % 8);
}

// Decodes one symbol. False: no code starts here, or no code may start here any more.
bool decode_one(const MultiSymbolTable& table, BlockStream& stream);

struct LookedUp {
  size_t n_loads;
  bool good;  // false: the last load of a stream met bits without a code
};

struct BlockKernels {
  std::string_view name;
  // Up to `n_loads` loads, not more than a tape holds or than are safe, for each of kStreams
  // neighbouring blocks, or for one; one tape a block.
  // `halves` goes along, fetching about as many sign and mantissa bytes as there are codes.
  using LookUp = LookedUp (*)(const MultiSymbolTable&, BlockStream*, LookupTape*, size_t n_loads,
                              const uint8_t*& halves);
  LookUp look_up_together, look_up_alone;
  // Appends the exponents of a tape's first `n_entries` to the stream's, looked up from `bit` on.
  void (*expand)(LookupTape&, size_t n_entries, uint64_t bit, BlockStream&);
  // For a block whose codes are all decoded: writes its words, and scratch->starts for all windows
  // that its codes reach.
  void (*join)(const MultiSymbolTable&, BlockStream&, const uint8_t* sign_mantissa,
               uint16_t* words);
};

// Those that this processor can run, the fastest first. They all do the same.
std::span<const BlockKernels> block_kernels();

// The steps of block_kernels_avx512.cpp. Only for processors for which this is true.
bool avx512_supported();
void expand_avx512(LookupTape& tape, size_t n_entries, uint64_t bit, BlockStream& stream);
void join_avx512(const MultiSymbolTable& table, BlockStream& stream, const uint8_t* sign_mantissa,
                 uint16_t* words);

}  // namespace df11
