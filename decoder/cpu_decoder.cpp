// CPU decoding. Blocks of a run are decoded four at a time in one instruction stream: each lookup
// waits for the one before it, and four chains of them hide that wait.
#include <algorithm>
#include <bit>
#include <string>

#include "decoder/decoder.h"
#include "decoder/multi_symbol_table.h"
#include "format/bf16.h"
#include "format/df11_layout.h"
#include "format/parallel.h"

namespace df11 {

namespace {

constexpr size_t kStreams = 4;
constexpr int kLookupsPerLoad = 5;  // 5 * 11 bits of the at least 57 that a load leaves
static_assert(kLookupsPerLoad * MultiSymbolTable::kPeekBits <= 57);
constexpr uint32_t kMaxSymbolsPerLoad = kLookupsPerLoad * MultiSymbolTable::kMaxSymbols;
// The last lookup may meet a code that is longer than the peek.
constexpr uint32_t kMaxBitsPerLoad =
    (kLookupsPerLoad - 1) * MultiSymbolTable::kPeekBits + kMaxCodeLength;

// A block holds at most one code start a bit.
constexpr uint32_t kMaxBlockElements = kBlockBits;

// What decoding one block leaves behind.
struct BlockScratch {
  // Exponents may be stored up to 8 bytes past those that count.
  alignas(64) std::array<uint8_t, kMaxBlockElements + kMaxSymbolsPerLoad + 8> exponents;
  // By window: the first bit of the last load that begins in it, and where codes end from there on
  // (bit i: after i bits). That load is the one that crosses into the next window, and tells where
  // the first code there starts.
  std::array<uint16_t, kWindowsPerBlock + 2> load_bit;
  std::array<uint64_t, kWindowsPerBlock + 2> load_ends;
};
using Scratch = std::array<BlockScratch, kStreams>;

struct Cursor {
  uint32_t bit;  // of the next code, from the block's first bit
  uint64_t
      n_decoded;  // of another width, so that compilers do not keep both in one vector register
};

// One block while it is decoded.
struct BlockStream {
  const uint8_t* code;  // the block's first byte
  uint32_t end_bit;     // where no code starts any more
  uint32_t n_elements;  // to decode
  Cursor at;
  BlockScratch* scratch;

  uint64_t n_left() const { return n_elements - at.n_decoded; }
  // Loads that certainly stay within the block and its elements.
  uint64_t n_safe_loads() const {
    if (at.bit >= end_bit) return 0;
    return std::min<uint64_t>(n_left() / kMaxSymbolsPerLoad, (end_bit - at.bit) / kMaxBitsPerLoad);
  }
};

inline uint64_t peek(const uint8_t* code, uint64_t bit) {
  return load_be64(code + bit / 8) << (bit % 8);
}

// Lookups on one load of the stream. False when the next code is longer than a peek, or there is
// none.
template <int kLookups>
[[gnu::always_inline]] inline bool decode_load(const uint64_t* entries, const uint16_t* entry_ends,
                                               const uint8_t* code, BlockScratch& scratch,
                                               Cursor& at) {
  uint64_t bits = peek(code, at.bit);
  uint8_t* const exponents = &scratch.exponents[at.n_decoded];
  uint64_t counts = 0, ends = 0, last = 0;
  for (int i = 0; i < kLookups; ++i) {
    const uint32_t index = MultiSymbolTable::peek(bits);
    const uint64_t entry = entries[index];
    store_le64(exponents + MultiSymbolTable::n_exponents(counts),
               MultiSymbolTable::exponents(entry));
    ends |= uint64_t{entry_ends[index]} << (counts % 64);
    last = MultiSymbolTable::counts(entry);
    bits <<= last % 64;
    counts += last;
  }
  scratch.load_bit[at.bit / kWindowBits] = static_cast<uint16_t>(at.bit);
  scratch.load_ends[at.bit / kWindowBits] = ends;
  at.bit += static_cast<uint32_t>(MultiSymbolTable::n_bits(counts));
  at.n_decoded += MultiSymbolTable::n_exponents(counts);
  return last != 0;
}

// Decodes one symbol. False: no code starts here, or no code may start here any more.
bool decode_one(const MultiSymbolTable& table, BlockStream& stream) {
  Cursor& at = stream.at;
  if (at.bit >= stream.end_bit) return false;
  const DecodedSymbol symbol = table.first_symbol(peek(stream.code, at.bit));
  if (symbol.length_bits == 0) return false;
  const uint64_t window = at.bit / kWindowBits;
  stream.scratch->exponents[at.n_decoded++] = symbol.exponent;
  at.bit += symbol.length_bits;
  // As from the end of the window: if the code crosses it, its end is the next window's gap.
  stream.scratch->load_bit[window] = static_cast<uint16_t>((window + 1) * kWindowBits);
  stream.scratch->load_ends[window] = uint64_t{1} << (at.bit % kWindowBits);
  return true;
}

// Several lookups on one load, for each of four blocks. False when the lookups met a bit pattern
// without a code.
[[gnu::always_inline]] inline bool decode_together_generic(
    const MultiSymbolTable& table, std::array<BlockStream, kStreams>& streams, Scratch& scratch) {
  const uint64_t* const entries = table.entries();
  const uint16_t* const ends = table.ends();
  const uint8_t* const code = streams[0].code;
  for (;;) {
    uint64_t n_rounds = streams[0].n_safe_loads();
    for (const BlockStream& stream : streams) n_rounds = std::min(n_rounds, stream.n_safe_loads());
    if (n_rounds == 0) return true;
    Cursor a = streams[0].at, b = streams[1].at, c = streams[2].at, d = streams[3].at;
    bool good = true;
    do {
      const bool good_a = decode_load<kLookupsPerLoad>(entries, ends, code, scratch[0], a);
      const bool good_b =
          decode_load<kLookupsPerLoad>(entries, ends, code + kBlockBytes, scratch[1], b);
      const bool good_c =
          decode_load<kLookupsPerLoad>(entries, ends, code + 2 * kBlockBytes, scratch[2], c);
      const bool good_d =
          decode_load<kLookupsPerLoad>(entries, ends, code + 3 * kBlockBytes, scratch[3], d);
      if (!good_a || !good_b || !good_c || !good_d) [[unlikely]] {
        const std::array<bool, kStreams> loaded = {good_a, good_b, good_c, good_d};
        streams[0].at = a, streams[1].at = b, streams[2].at = c, streams[3].at = d;
        for (size_t i = 0; i < kStreams; ++i) good &= loaded[i] || decode_one(table, streams[i]);
        a = streams[0].at, b = streams[1].at, c = streams[2].at, d = streams[3].at;
      }
    } while (--n_rounds != 0 && good);
    streams[0].at = a, streams[1].at = b, streams[2].at = c, streams[3].at = d;
    if (!good) return false;
  }
}

bool finish_block(const MultiSymbolTable& table, BlockStream& stream) {
  while (stream.n_left() >= MultiSymbolTable::kMaxSymbols && stream.at.bit < stream.end_bit) {
    if (!decode_load<1>(table.entries(), table.ends(), stream.code, *stream.scratch, stream.at) &&
        !decode_one(table, stream)) {
      return false;
    }
  }
  while (stream.n_left() != 0) {
    if (!decode_one(table, stream)) return false;
  }
  return true;
}

[[gnu::always_inline]] inline void join_generic(const uint8_t* exponents,
                                                const uint8_t* sign_mantissa, size_t n,
                                                uint16_t* words) {
  for (size_t i = 0; i < n; ++i) words[i] = bf16_join(exponents[i], sign_mantissa[i]);
}

// The same code twice: shifts by any register (BMI2) and wider vectors are worth it.
struct Kernels {
  bool (*decode_together)(const MultiSymbolTable&, std::array<BlockStream, kStreams>&, Scratch&);
  void (*join)(const uint8_t* exponents, const uint8_t* sign_mantissa, size_t n, uint16_t* words);
};
bool decode_together_baseline(const MultiSymbolTable& table,
                              std::array<BlockStream, kStreams>& streams, Scratch& scratch) {
  return decode_together_generic(table, streams, scratch);
}
void join_baseline(const uint8_t* exponents, const uint8_t* sign_mantissa, size_t n,
                   uint16_t* words) {
  join_generic(exponents, sign_mantissa, n, words);
}
constexpr Kernels kBaseline = {decode_together_baseline, join_baseline};

#if defined(__x86_64__)
[[gnu::target("avx2,bmi,bmi2")]] bool decode_together_avx2(
    const MultiSymbolTable& table, std::array<BlockStream, kStreams>& streams, Scratch& scratch) {
  return decode_together_generic(table, streams, scratch);
}
[[gnu::target("avx2,bmi,bmi2")]] void join_avx2(const uint8_t* exponents,
                                                const uint8_t* sign_mantissa, size_t n,
                                                uint16_t* words) {
  join_generic(exponents, sign_mantissa, n, words);
}
constexpr Kernels kAvx2 = {decode_together_avx2, join_avx2};

const Kernels& kernels() {
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                           __builtin_cpu_supports("bmi2");
  return avx2 ? kAvx2 : kBaseline;
}
#else
const Kernels& kernels() {
  return kBaseline;
}
#endif

class CpuGroupDecoder final : public GroupDecoder {
 public:
  explicit CpuGroupDecoder(const LookupTables& tables) : table_(tables) {}

  Result<void> decode(const BlockRun& run, uint16_t* words) const override {
    const auto scratch = scratch_.take();
    for (size_t begin = 0; begin < run.n_blocks(); begin += kStreams) {
      const size_t n = std::min<size_t>(kStreams, run.n_blocks() - begin);
      std::array<BlockStream, kStreams> streams;
      for (size_t i = 0; i < n; ++i) {
        DF11_ASSIGN(streams[i], open_block(run, begin + i, *scratch, i));
      }
      // finish_block meets again what stops this early, and reports it for the right block.
      if (n == kStreams) kernels().decode_together(table_, streams, *scratch);
      for (size_t i = 0; i < n; ++i) {
        const size_t block = begin + i;
        if (!finish_block(table_, streams[i])) {
          return corrupt(run, block,
                         "the code stream has no code at bit " + std::to_string(streams[i].at.bit) +
                             " of the block, after " + std::to_string(streams[i].at.n_decoded) +
                             " weights");
        }
        DF11_TRY(check_end(run, block, streams[i]));
        DF11_TRY(check_gaps(run, block, streams[i]));
        const uint64_t first = run.positions[block] - run.positions.front();
        kernels().join((*scratch)[i].exponents.data(), run.sign_mantissa + first,
                       streams[i].n_elements, words + first);
      }
    }
    return {};
  }

 private:
  static tl::unexpected<Error> corrupt(const BlockRun& run, size_t block, std::string what) {
    return fail(ErrorCode::corrupt_stream,
                "block " + std::to_string(run.first_block + block) + ": " + std::move(what));
  }

  static Result<BlockStream> open_block(const BlockRun& run, size_t block, Scratch& scratch,
                                        size_t stream) {
    const uint32_t begin = run.positions[block], end = run.positions[block + 1];
    if (end < begin || end - begin > kMaxBlockElements) {
      return corrupt(run, block,
                     "output_positions " + std::to_string(begin) + " and " + std::to_string(end) +
                         " do not delimit a block");
    }
    const uint32_t gap = load_gap(run.gaps, block * kWindowsPerBlock);
    if (run.first_block + block == 0 && gap != 0) {
      return corrupt(run, block,
                     "the gap of window 0 is " + std::to_string(gap) +
                         ", the first code there starts at bit 0");
    }
    const uint64_t n_bytes =
        std::min<uint64_t>(kBlockBytes, run.n_code_bytes - block * kBlockBytes);
    return BlockStream{run.code + block * kBlockBytes,
                       static_cast<uint32_t>(n_bytes * 8),
                       end - begin,
                       {gap, 0},
                       &scratch[stream]};
  }

  // Checks that the codes end where the stream, or the next block's first gap, says.
  Result<void> check_end(const BlockRun& run, size_t block, const BlockStream& stream) const {
    const uint64_t n_bytes =
        std::min<uint64_t>(kBlockBytes, run.n_code_bytes - block * kBlockBytes);
    const uint32_t end_bit = stream.at.bit;
    bool good;
    if (run.ends_group && block + 1 == run.n_blocks()) {
      // With no weights this is a tail block: check_end of the block before it knows the end.
      good = stream.n_elements == 0 || ceil_div(end_bit, 8) == n_bytes;
    } else if (block + 1 == run.n_blocks()) {
      good = end_bit == kBlockBits + run.next_gap;
    } else if (run.positions[block + 1] != run.positions[block + 2]) {
      good = end_bit == kBlockBits + load_gap(run.gaps, (block + 1) * kWindowsPerBlock);
    } else {
      // The next block holds nothing but the tail of this one's last code.
      const uint64_t n_tail_bytes = run.n_code_bytes - (block + 1) * kBlockBytes;
      good = run.ends_group && block + 2 == run.n_blocks() && end_bit > kBlockBits &&
             ceil_div(end_bit - kBlockBits, 8) == n_tail_bytes &&
             load_gap(run.gaps, (block + 1) * kWindowsPerBlock) == gap_after_end(end_bit);
    }
    if (good) return {};
    return corrupt(run, block,
                   "its weights end at bit " + std::to_string(end_bit) +
                       " of the block, not where the next block or the stream says");
  }

  // Gap of a window in which no code starts but the last one ends, at `end_bit` (spec section 5.3).
  static uint32_t gap_after_end(uint32_t end_bit) {
    return end_bit % 8 == 0 ? 0 : end_bit % kWindowBits;
  }

  // Eight gaps of a byte each as 40 bits, the first at the top: neighbours join, three times.
  static uint64_t pack_eight_gaps(const uint8_t* gaps) {
    uint64_t x = load_be64(gaps);
    x = (x & 0x001f001f001f001f) | (x & 0x1f001f001f001f00) >> 3;
    x = (x & 0x000003ff000003ff) | (x & 0x03ff000003ff0000) >> 6;
    return (x & 0x00000000000fffff) | (x & 0x000fffff00000000) >> 12;
  }

  // Compares the first code start of every window with its declared gap (spec section 5.3).
  static Result<void> check_gaps(const BlockRun& run, size_t block, const BlockStream& stream) {
    std::array<uint8_t, kWindowsPerBlock> expected;
    expected[0] =
        static_cast<uint8_t>(load_gap(run.gaps, block * kWindowsPerBlock));  // decoding began there
    const uint32_t end_bit = stream.at.bit;
    const uint32_t end_window = std::min(end_bit / kWindowBits, kWindowsPerBlock - 1);
    for (uint32_t window = 1; window <= end_window; ++window) {
      const uint32_t to_boundary = window * kWindowBits - stream.scratch->load_bit[window - 1];
      const uint64_t ends = stream.scratch->load_ends[window - 1] >> to_boundary;
      expected[window] = static_cast<uint8_t>(std::countr_zero(ends) & 31);
    }
    std::fill(expected.begin() + end_window + 1, expected.end(), uint8_t{0});
    // No code starts where the last one ends; a block without any has its tail's end, which
    // check_end has looked at.
    if (stream.n_elements != 0 && end_bit < kBlockBits &&
        end_window * kWindowBits + expected[end_window] == end_bit) {
      expected[end_window] = static_cast<uint8_t>(gap_after_end(end_bit));
    }
    const uint8_t* gaps = run.gaps + block * kGapBytesPerBlock;
    for (uint32_t unit = 0; unit < kWindowsPerBlock / 8; ++unit) {
      const uint64_t bits = pack_eight_gaps(&expected[unit * 8]);
      const uint8_t* five = gaps + unit * 5;
      const uint64_t declared = uint64_t{__builtin_bswap32(load_le32(five))} << 8 | five[4];
      if (bits == declared) continue;
      for (uint32_t window = unit * 8;; ++window) {
        if (load_gap(gaps, window) == expected[window]) continue;
        return corrupt(run, block,
                       "the gap of window " + std::to_string(window) + " is " +
                           std::to_string(load_gap(gaps, window)) +
                           ", the first code there starts at bit " +
                           std::to_string(expected[window]));
      }
    }
    return {};
  }

  MultiSymbolTable table_;
  mutable Pool<Scratch> scratch_;
};

class CpuDecoder final : public Decoder {
 public:
  std::string_view name() const override { return "cpu"; }
  Result<std::unique_ptr<GroupDecoder>> prepare(const LookupTables& tables) const override {
    return std::make_unique<CpuGroupDecoder>(tables);
  }
  size_t run_blocks() const override { return 64; }  // about 800,000 trained weights
  std::shared_ptr<BufferMemory> memory() const override { return heap_memory(); }
};

}  // namespace

std::unique_ptr<Decoder> make_cpu_decoder() {
  return std::make_unique<CpuDecoder>();
}

}  // namespace df11
