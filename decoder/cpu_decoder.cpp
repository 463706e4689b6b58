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

constexpr int kStreams = 4;
constexpr int kLookupsPerLoad = 5;  // 5 * 11 bits of the at least 57 that a load leaves
static_assert(kLookupsPerLoad * MultiSymbolTable::kPeekBits <= 57);
constexpr uint32_t kMaxSymbolsPerLoad = kLookupsPerLoad * MultiSymbolTable::kMaxSymbols;

// A block holds at most one code start a bit.
constexpr uint32_t kMaxBlockElements = kBlockBits;

// The state of one block while it is decoded.
struct BlockStream {
  const uint8_t* code;       // the block's first byte
  uint32_t bit;              // of the next code, from the block's first bit
  uint32_t n_elements;       // to decode
  uint32_t n_decoded;
  uint64_t* starts;          // bit i of word w: a code starts at bit i of window w
  uint8_t* exponents;

  uint32_t n_left() const { return n_elements - n_decoded; }
  uint64_t peek() const { return load_be64(code + bit / 8) << (bit % 8); }
};

struct Scratch {
  // Exponents may be stored up to 8 bytes past those that count; starts up to a load past the block.
  alignas(64) std::array<std::array<uint8_t, kMaxBlockElements + kMaxSymbolsPerLoad + 8>, kStreams> exponents;
  alignas(64) std::array<std::array<uint64_t, kWindowsPerBlock + 2>, kStreams> starts;
};

void mark_starts(BlockStream& stream, uint32_t bit, uint64_t starts) {
  stream.starts[bit / 64] |= starts << (bit % 64);
  stream.starts[bit / 64 + 1] |= starts >> 1 >> (63 - bit % 64);
}

// Decodes one symbol. False: no code starts here, or no code may start here any more.
bool decode_one(const MultiSymbolTable& table, BlockStream& stream) {
  if (stream.bit >= kBlockBits) return false;
  const DecodedSymbol symbol = table.first_symbol(stream.peek());
  if (symbol.length_bits == 0) return false;
  mark_starts(stream, stream.bit, 1);
  stream.exponents[stream.n_decoded++] = symbol.exponent;
  stream.bit += symbol.length_bits;
  return true;
}

// Up to kLookupsPerLoad lookups on one load of the stream. Needs n_left() >= kMaxSymbolsPerLoad and
// bit < kBlockBits. A code longer than the peek ends it early; false when there is no such code.
inline bool decode_load(const MultiSymbolTable& table, BlockStream& stream) {
  uint64_t bits = stream.peek();
  uint64_t starts = 0;
  uint32_t n_bits = 0;
  uint8_t* out = stream.exponents + stream.n_decoded;
  bool long_code = false;
  for (int i = 0; i < kLookupsPerLoad; ++i) {
    const uint64_t entry = table.entry(bits);
    if (MultiSymbolTable::n_symbols(entry) == 0) [[unlikely]] {
      long_code = true;
      break;
    }
    std::memcpy(out, &entry, sizeof entry);
    out += MultiSymbolTable::n_symbols(entry);
    starts |= MultiSymbolTable::starts(entry) << n_bits;
    n_bits += MultiSymbolTable::n_bits(entry);
    bits <<= MultiSymbolTable::n_bits(entry);
  }
  mark_starts(stream, stream.bit, starts);
  stream.bit += n_bits;
  stream.n_decoded = static_cast<uint32_t>(out - stream.exponents);
  return !long_code || decode_one(table, stream);
}

bool can_load(const BlockStream& stream) {
  return stream.n_left() >= kMaxSymbolsPerLoad && stream.bit < kBlockBits;
}

bool finish_block(const MultiSymbolTable& table, BlockStream& stream) {
  while (can_load(stream)) {
    if (!decode_load(table, stream)) return false;
  }
  while (stream.n_left() != 0) {
    if (!decode_one(table, stream)) return false;
  }
  return true;
}

void join(const uint8_t* exponents, const uint8_t* sign_mantissa, size_t n, uint16_t* words) {
  for (size_t i = 0; i < n; ++i) words[i] = bf16_join(exponents[i], sign_mantissa[i]);
}

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
      if (n == kStreams) {
        bool good = true;
        while (good && can_load(streams[0]) && can_load(streams[1]) && can_load(streams[2]) &&
               can_load(streams[3])) {
          good = decode_load(table_, streams[0]) & decode_load(table_, streams[1]) &
                 decode_load(table_, streams[2]) & decode_load(table_, streams[3]);
        }
      }
      for (size_t i = 0; i < n; ++i) {
        const size_t block = begin + i;
        if (!finish_block(table_, streams[i])) {
          return corrupt(run, block, "the code stream has no code at bit " +
                                         std::to_string(streams[i].bit) + " of the block, after " +
                                         std::to_string(streams[i].n_decoded) + " weights");
        }
        DF11_TRY(check_end(run, block, streams[i]));
        DF11_TRY(check_gaps(run, block, streams[i]));
        const uint64_t first = run.positions[block] - run.positions.front();
        join(streams[i].exponents, run.sign_mantissa + first, streams[i].n_elements, words + first);
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
      return corrupt(run, block, "output_positions " + std::to_string(begin) + " and " +
                                     std::to_string(end) + " do not delimit a block");
    }
    scratch.starts[stream].fill(0);
    return BlockStream{run.code + block * kBlockBytes,
                       load_gap(run.gaps, block * kWindowsPerBlock),
                       end - begin,
                       0,
                       scratch.starts[stream].data(),
                       scratch.exponents[stream].data()};
  }

  // Checks that the codes end where the stream, or the next block's first gap, says.
  Result<void> check_end(const BlockRun& run, size_t block, const BlockStream& stream) const {
    const uint64_t n_bytes = std::min<uint64_t>(kBlockBytes, run.n_code_bytes - block * kBlockBytes);
    const uint32_t end_bit = stream.bit;
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
    return corrupt(run, block, "its weights end at bit " + std::to_string(end_bit) +
                                   " of the block, not where the next block or the stream says");
  }

  // Gap of a window in which no code starts but the last one ends, at `end_bit` (spec section 5.3).
  static uint32_t gap_after_end(uint32_t end_bit) {
    return end_bit % 8 == 0 ? 0 : end_bit % kWindowBits;
  }

  // Compares the first code start of every window with its declared gap (spec section 5.3).
  static Result<void> check_gaps(const BlockRun& run, size_t block, const BlockStream& stream) {
    const bool tail_only = stream.n_elements == 0;  // then check_end has looked at window 0
    std::array<uint8_t, kWindowsPerBlock> expected;
    for (uint32_t window = 0; window < kWindowsPerBlock; ++window) {
      expected[window] = static_cast<uint8_t>(std::countr_zero(stream.starts[window]) & 31);
    }
    if (stream.bit < kBlockBits) {
      const uint32_t end_window = stream.bit / kWindowBits;
      for (uint32_t window = end_window; window < kWindowsPerBlock; ++window) {
        if (stream.starts[window] == 0) expected[window] = 0;
      }
      if (tail_only) expected[0] = static_cast<uint8_t>(stream.bit);
      else if (stream.starts[end_window] == 0) {
        expected[end_window] = static_cast<uint8_t>(gap_after_end(stream.bit));
      }
    }
    const uint8_t* gaps = run.gaps + block * kGapBytesPerBlock;
    for (uint32_t unit = 0; unit < kWindowsPerBlock / 8; ++unit) {
      uint64_t bits = 0;
      for (uint32_t i = 0; i < 8; ++i) bits = bits << kGapBits | expected[unit * 8 + i];
      uint64_t declared = 0;
      for (uint32_t i = 0; i < 5; ++i) declared = declared << 8 | gaps[unit * 5 + i];
      if (bits == declared) continue;
      for (uint32_t window = unit * 8;; ++window) {
        if (load_gap(gaps, window) == expected[window]) continue;
        return corrupt(run, block, "the gap of window " + std::to_string(window) + " is " +
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
};

}  // namespace

std::unique_ptr<Decoder> make_cpu_decoder() { return std::make_unique<CpuDecoder>(); }

}  // namespace df11
