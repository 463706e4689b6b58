#include "decoder/block_kernels.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "format/bf16.h"

namespace df11 {

bool decode_one(const MultiSymbolTable& table, BlockStream& stream) {
  if (stream.bit >= stream.end_bit) return false;
  const DecodedSymbol symbol = table.first_symbol(peek_stream(stream.code, stream.bit));
  if (symbol.length_bits == 0) return false;
  stream.scratch->exponents[stream.n_decoded++] = symbol.exponent;
  stream.scratch->last_lookup[stream.bit / kWindowBits] = static_cast<uint16_t>(stream.bit);
  stream.bit += symbol.length_bits;
  return true;
}

namespace {

constexpr size_t kLineBytes = 64;  // of the cache

// Puts long codes in the place of empty last entries. False when there is no code.
[[gnu::noinline]] bool look_up_long(const MultiSymbolTable& table, std::span<BlockStream> streams,
                                    LookupTape* tapes, size_t last) {
  bool good = true;
  for (size_t i = 0; i < streams.size(); ++i) {
    uint64_t& entry = tapes[i].entries[last];
    if (!MultiSymbolTable::is_empty(entry)) continue;
    entry = MultiSymbolTable::entry_of(
        table.first_symbol(peek_stream(streams[i].code, streams[i].bit)));
    streams[i].bit += MultiSymbolTable::n_bits(entry);
    good &= !MultiSymbolTable::is_empty(entry);
  }
  return good;
}

template <size_t... kStream>
[[gnu::always_inline]] inline LookedUp look_up(const MultiSymbolTable& table, BlockStream* streams,
                                               LookupTape* tapes, size_t n_loads,
                                               const uint8_t*& halves,
                                               std::index_sequence<kStream...>) {
  const uint64_t* const entries = table.entries();
  const uint8_t* const code = streams[0].code;
  uint64_t bit[] = {streams[kStream].bit...};
  size_t n = 0, at = 0;
  bool good = true;
  while (n < n_loads && good) {
    // Processors fetch ahead by themselves within a page of memory, but a block's three pages of
    // sign and mantissa bytes are over as soon as they have begun.
    constexpr size_t kHalves = kTypicalElementsPerLoad * sizeof...(kStream);
    for (size_t i = 0; i < kHalves; i += kLineBytes) __builtin_prefetch(halves + i, 0, 2);
    halves += kHalves;
    // The lowest bit shows how far the bits have been shifted. All streams go step by step: of
    // whole loads, one after the other, only two or three have room to wait in a scheduler.
    uint64_t bits[] = {peek_stream(code + kStream * kBlockBytes, bit[kStream]) | 1 ...};
    uint64_t entry[sizeof...(kStream)];
#pragma GCC unroll 8
    for (int i = 0; i < kLookupsPerLoad; ++i) {
      ((entry[kStream] = entries[MultiSymbolTable::peek(bits[kStream])],
        tapes[kStream].entries[at + i] = entry[kStream],
        bits[kStream] <<=
        entry[kStream] % 64),  // an entry's bits, and more where shifts do not look
       ...);
    }
    ((bit[kStream] += static_cast<uint64_t>(std::countr_zero(bits[kStream]))), ...);
    ++n;
    at += kLookupsPerLoad;
    if (MultiSymbolTable::is_empty((entry[kStream] | ...))) [[unlikely]] {
      ((streams[kStream].bit = bit[kStream]), ...);
      good = look_up_long(table, {streams, sizeof...(kStream)}, tapes, at - 1);
      ((bit[kStream] = streams[kStream].bit), ...);
    }
  }
  ((streams[kStream].bit = bit[kStream]), ...);
  return {n, good};
}

[[gnu::always_inline]] inline void expand_generic(const LookupTape& tape, size_t n_entries,
                                                  uint64_t bit, BlockStream& stream) {
  uint8_t* const begin = stream.scratch->exponents.data();
  uint8_t* out = begin + stream.n_decoded;
  for (size_t i = 0; i < n_entries; ++i) {
    const uint64_t entry = tape.entries[i];
    store_le64(out, MultiSymbolTable::exponents(entry));
    out += MultiSymbolTable::n_exponents(entry);
    stream.scratch->last_lookup[bit / kWindowBits] = static_cast<uint16_t>(bit);
    bit += MultiSymbolTable::n_bits(entry);
  }
  stream.n_decoded = static_cast<uint32_t>(out - begin);
}

[[gnu::always_inline]] inline void join_generic(const MultiSymbolTable& table, BlockStream& stream,
                                                const uint8_t* sign_mantissa, uint16_t* words) {
  BlockScratch& scratch = *stream.scratch;
  const uint64_t n_windows = std::min<uint64_t>(stream.bit / kWindowBits + 1, kWindowsPerBlock);
  for (uint64_t window = 1; window < n_windows; ++window) {
    const uint64_t begin = scratch.last_lookup[window - 1];
    const uint64_t bits = peek_stream(stream.code, begin);
    uint64_t ends = table.ends()[MultiSymbolTable::peek(bits)];
    if (ends == 0) [[unlikely]]
      ends = uint64_t{1} << table.first_symbol(bits).length_bits;
    const uint64_t after = ends >> ((window * kWindowBits - begin) % 64);
    scratch.starts[window] = static_cast<uint8_t>(std::countr_zero(after));
  }
  const uint8_t* const exponents = scratch.exponents.data();
  const size_t n = stream.n_elements;
  for (size_t i = 0; i < n; ++i) words[i] = bf16_join(exponents[i], sign_mantissa[i]);
}

constexpr auto kTogether = std::make_index_sequence<kStreams>();
constexpr auto kAlone = std::make_index_sequence<1>();

// The same code twice: shifts by any register (BMI2) and wider vectors are worth it.
#define DF11_KERNELS_FOR(NAME, TARGET)                                                             \
  TARGET LookedUp look_up_together_##NAME(const MultiSymbolTable& table, BlockStream* streams,     \
                                          LookupTape* tapes, size_t n_loads,                       \
                                          const uint8_t*& halves) {                                \
    return look_up(table, streams, tapes, n_loads, halves, kTogether);                             \
  }                                                                                                \
  TARGET LookedUp look_up_alone_##NAME(const MultiSymbolTable& table, BlockStream* stream,         \
                                       LookupTape* tape, size_t n_loads, const uint8_t*& halves) { \
    return look_up(table, stream, tape, n_loads, halves, kAlone);                                  \
  }                                                                                                \
  TARGET void expand_##NAME(LookupTape& tape, size_t n_entries, uint64_t bit,                      \
                            BlockStream& stream) {                                                 \
    expand_generic(tape, n_entries, bit, stream);                                                  \
  }                                                                                                \
  TARGET void join_##NAME(const MultiSymbolTable& table, BlockStream& stream,                      \
                          const uint8_t* sign_mantissa, uint16_t* words) {                         \
    join_generic(table, stream, sign_mantissa, words);                                             \
  }

DF11_KERNELS_FOR(portable, )
#if defined(__x86_64__)
DF11_KERNELS_FOR(avx2, [[gnu::target("avx2,bmi,bmi2")]])
#endif
#undef DF11_KERNELS_FOR

std::vector<BlockKernels> find_kernels() {
  std::vector<BlockKernels> kernels;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  if (avx2 && avx512_supported()) {
    kernels.push_back(
        {"avx512", look_up_together_avx2, look_up_alone_avx2, expand_avx512, join_avx512});
  }
  if (avx2) {
    kernels.push_back({"avx2", look_up_together_avx2, look_up_alone_avx2, expand_avx2, join_avx2});
  }
#endif
  kernels.push_back({"portable", look_up_together_portable, look_up_alone_portable, expand_portable,
                     join_portable});
  return kernels;
}

}  // namespace

std::span<const BlockKernels> block_kernels() {
  static const std::vector<BlockKernels> kernels = find_kernels();
  return kernels;
}

}  // namespace df11
