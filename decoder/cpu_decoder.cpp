#include "decoder/cpu_decoder.h"

#include <algorithm>
#include <string>

#include "decoder/gap_check.h"
#include "format/df11_layout.h"
#include "format/parallel.h"

namespace df11 {

namespace {

struct Scratch {
  std::array<LookupTape, kStreams> tapes;
  std::array<BlockScratch, kStreams> blocks;
};

// Decodes kStreams neighbouring blocks until all are done, or one has no safe loads left or no
// code. `halves` are their sign and mantissa bytes.
void decode_together(const BlockKernels& kernels, const MultiSymbolTable& table,
                     std::array<BlockStream, kStreams>& streams, const uint8_t* halves,
                     Scratch& scratch) {
  for (LookedUp looked_up = {0, true}; looked_up.good;) {
    uint64_t n_loads = kLoadsPerTape, n_bits_left = 0;
    std::array<uint64_t, kStreams> bits;
    for (size_t i = 0; i < kStreams; ++i) {
      BlockStream& stream = streams[i];
      n_loads = std::min(n_loads, stream.n_safe_loads());
      if (!stream.done()) n_bits_left = std::max(n_bits_left, stream.end_bit - stream.bit);
      stream.keep();
      bits[i] = stream.bit;
    }
    n_loads = std::min(n_loads, ceil_div(n_bits_left, kPeekedBitsPerLoad));
    if (n_loads == 0) return;
    looked_up =
        kernels.look_up_together(table, streams.data(), scratch.tapes.data(), n_loads, halves);
    for (size_t i = 0; i < kStreams; ++i)
      kernels.expand(scratch.tapes[i], looked_up.n_loads * kLookupsPerLoad, bits[i], streams[i]);
  }
}

// Drops what was decoded after the block's weights, and codes that start after the block: there may
// be padding in its last byte (spec/df11_format.md section 5.2).
void drop_surplus(const MultiSymbolTable& table, BlockStream& stream) {
  if (stream.n_decoded <= stream.n_elements && stream.bit <= stream.end_bit) return;
  stream.n_decoded = stream.n_kept;
  stream.bit = stream.kept_bit;
  const uint8_t* const exponents = stream.scratch->exponents.data();
  while (!stream.done()) stream.bit += table.lengths()[exponents[stream.n_decoded++]];
}

// Decodes the rest of a block. False when no code starts at stream.bit.
bool finish_block(const BlockKernels& kernels, const MultiSymbolTable& table, BlockStream& stream,
                  const uint8_t* halves, LookupTape& tape) {
  for (LookedUp looked_up = {0, true}; looked_up.good && !stream.done();) {
    const size_t n_loads = std::min<size_t>(kLoadsPerTape, stream.n_safe_loads());
    if (n_loads == 0) break;
    stream.keep();
    const uint64_t bit = stream.bit;
    looked_up = kernels.look_up_alone(table, &stream, &tape, n_loads, halves);
    kernels.expand(tape, looked_up.n_loads * kLookupsPerLoad, bit, stream);
  }
  drop_surplus(table, stream);
  while (stream.n_decoded < stream.n_elements) {
    if (!decode_one(table, stream)) return false;
  }
  return true;
}

class CpuGroupDecoder final : public GroupDecoder {
 public:
  CpuGroupDecoder(const BlockKernels& kernels, const LookupTables& tables)
      : kernels_(kernels), table_(tables) {}

  Result<void> decode(const BlockRun& run, uint16_t* words) const override {
    const auto scratch = scratch_.take();
    for (size_t begin = 0; begin < run.n_blocks(); begin += kStreams) {
      const size_t n = std::min<size_t>(kStreams, run.n_blocks() - begin);
      std::array<BlockStream, kStreams> streams;
      for (size_t i = 0; i < n; ++i) {
        DF11_ASSIGN(streams[i], open_block(run, begin + i, scratch->blocks[i]));
      }
      // finish_block meets again what stops this early, and reports it for the right block.
      if (n == kStreams)
        decode_together(kernels_, table_, streams, sign_mantissa(run, begin), *scratch);
      for (size_t i = 0; i < n; ++i) {
        const size_t block = begin + i;
        BlockStream& stream = streams[i];
        const uint8_t* const halves = sign_mantissa(run, block);
        if (!finish_block(kernels_, table_, stream, halves, scratch->tapes[i])) {
          return corrupt(run, block,
                         "the code stream has no code at bit " + std::to_string(stream.bit) +
                             " of the block, after " + std::to_string(stream.n_decoded) +
                             " weights");
        }
        DF11_TRY(check_end(run, block, stream));
        kernels_.join(table_, stream, halves, words + (halves - run.sign_mantissa));
        const uint8_t* const gaps = run.gaps + block * kGapBytesPerBlock;
        if (Result<void> good = check_gaps(gaps, stream); !good)
          return corrupt(run, block, std::move(good).error().message);
      }
    }
    return {};
  }

 private:
  static tl::unexpected<Error> corrupt(const BlockRun& run, size_t block, std::string what) {
    return fail(ErrorCode::corrupt_stream,
                "block " + std::to_string(run.first_block + block) + ": " + std::move(what));
  }

  static const uint8_t* sign_mantissa(const BlockRun& run, size_t block) {
    return run.sign_mantissa + (run.positions[block] - run.positions.front());
  }

  static Result<BlockStream> open_block(const BlockRun& run, size_t block, BlockScratch& scratch) {
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
    return BlockStream{.code = run.code + block * kBlockBytes,
                       .first_bit = gap,
                       .end_bit = static_cast<uint32_t>(n_bytes * 8),
                       .n_elements = end - begin,
                       .scratch = &scratch,
                       .bit = gap,
                       .kept_bit = gap};
  }

  // Checks that the codes end where the stream, or the next block's first gap, says.
  Result<void> check_end(const BlockRun& run, size_t block, const BlockStream& stream) const {
    const uint64_t n_bytes =
        std::min<uint64_t>(kBlockBytes, run.n_code_bytes - block * kBlockBytes);
    const uint64_t end_bit = stream.bit;
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

  const BlockKernels& kernels_;
  MultiSymbolTable table_;
  mutable Pool<Scratch> scratch_;
};

class CpuDecoder final : public Decoder {
 public:
  explicit CpuDecoder(const BlockKernels& kernels) : kernels_(kernels) {}

  std::string_view name() const override { return "cpu"; }
  Result<std::unique_ptr<GroupDecoder>> prepare(const LookupTables& tables) const override {
    return std::make_unique<CpuGroupDecoder>(kernels_, tables);
  }
  size_t run_blocks() const override { return 32; }  // about 400,000 trained weights
  std::shared_ptr<BufferMemory> memory() const override { return heap_memory(); }

 private:
  const BlockKernels& kernels_;
};

}  // namespace

std::unique_ptr<Decoder> make_cpu_decoder(const BlockKernels& kernels) {
  return std::make_unique<CpuDecoder>(kernels);
}

std::unique_ptr<Decoder> make_cpu_decoder() {
  return make_cpu_decoder(block_kernels().front());
}

}  // namespace df11
