#include "decoder/host_group.h"

#include <algorithm>

#include "format/df11_layout.h"
#include "format/output_positions.h"

namespace df11 {

namespace {

auto malformed(std::string message) {
  return fail(ErrorCode::malformed_group, std::move(message));
}

std::vector<uint8_t> copy(ByteSpan bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

// Section 3 of the specification.
Result<void> HostGroup::check() const {
  const uint64_t n_code_bytes = code().size();
  if (n_code_bytes == 0 || sign_mantissa_.empty()) return malformed("it holds no weights");
  if (sign_mantissa_.size() > kMaxGroupElements || n_code_bytes > kMaxGroupCodeBytes)
    return malformed("2^31 weights or code bytes, or more");
  if (gaps_.size() != gaps_bytes(n_code_bytes)) return malformed("gaps has another size");
  if (load_gap(gaps_.data(), 0) != 0) {
    return fail(ErrorCode::corrupt_stream, "block 0: the gap of window 0 is " +
                                               std::to_string(load_gap(gaps_.data(), 0)) +
                                               ", the first code there starts at bit 0");
  }
  return {};
}

Result<HostGroup> HostGroup::make(const GroupBytes& tensors) {
  HostGroup group;
  if (tensors.luts.size() % kLutRowBytes != 0) return malformed("luts is not rows of 256 bytes");
  DF11_ASSIGN(group.tables_, LookupTables::parse(tensors.luts, tensors.luts.size() / kLutRowBytes));
  group.code_.reserve(tensors.encoded_exponent.size() + kCodeLookaheadBytes);
  group.code_ = copy(tensors.encoded_exponent);
  group.code_.resize(tensors.encoded_exponent.size() + kCodeLookaheadBytes);
  group.sign_mantissa_ = copy(tensors.sign_mantissa);
  group.gaps_ = copy(tensors.gaps);
  DF11_TRY(group.check());
  DF11_ASSIGN(group.positions_,
              parse_output_positions(tensors.output_positions, tensors.sign_mantissa.size(),
                                     tensors.encoded_exponent.size()));
  return group;
}

Result<HostGroup> HostGroup::load(const Artifact& artifact, const GroupEntry& entry) {
  const ShardSet& shards = artifact.shards();
  DF11_ASSIGN(Group loaded, artifact.load_group(entry));
  HostGroup group;
  group.tables_ = std::move(loaded.tables);
  group.positions_ = std::move(loaded.positions);
  group.code_.resize(entry.n_code_bytes() + kCodeLookaheadBytes);
  DF11_TRY(shards.read(*entry.encoded_exponent, 0,
                       MutableByteSpan(group.code_).first(entry.n_code_bytes())));
  DF11_ASSIGN(group.sign_mantissa_, shards.read_all(*entry.sign_mantissa));
  DF11_ASSIGN(group.gaps_, shards.read_all(*entry.gaps));
  if (Result<void> checked = group.check(); !checked)
    return fail(std::move(checked).error().in_tensor(entry.module));
  return group;
}

BlockRun HostGroup::run(size_t begin, size_t end) const {
  BlockRun run;
  run.code = code_.data() + begin * kBlockBytes;
  run.n_code_bytes = std::min<uint64_t>(end * kBlockBytes, code().size()) - begin * kBlockBytes;
  run.gaps = gaps_.data() + begin * kGapBytesPerBlock;
  run.positions = std::span(positions_).subspan(begin, end - begin + 1);
  run.sign_mantissa = sign_mantissa_.data() + positions_[begin];
  run.first_block = begin;
  run.ends_group = end == n_blocks();
  if (!run.ends_group) run.next_gap = load_gap(gaps_.data(), end * kWindowsPerBlock);
  return run;
}

std::vector<size_t> HostGroup::run_begins(size_t run_blocks) const {
  std::vector<size_t> begins;
  for (size_t block = 0; block < n_blocks(); block += run_blocks) {
    if (block != 0 && positions_[block] == positions_.back()) break;
    begins.push_back(block);
  }
  begins.push_back(n_blocks());
  return begins;
}

Result<void> HostGroup::decode(const Decoder& decoder, const Executor& executor,
                               uint16_t* words) const {
  DF11_ASSIGN(const std::unique_ptr<GroupDecoder> group, decoder.prepare(tables_));
  const std::vector<size_t> begins = run_begins(decoder.run_blocks());
  return executor.for_each(begins.size() - 1, [&](size_t i) {
    return group->decode(run(begins[i], begins[i + 1]), words + positions_[begins[i]]);
  });
}

size_t first_ending_block(const BlockRun& run) {
  if (!run.ends_group) return run.n_blocks();
  const size_t last = run.n_blocks() - 1;
  return last != 0 && run.positions[last] == run.positions.back() ? last - 1 : last;
}

BlockRun run_tail(const BlockRun& run, size_t begin) {
  BlockRun tail = run;
  tail.code += begin * kBlockBytes;
  tail.n_code_bytes -= begin * kBlockBytes;
  tail.gaps += begin * kGapBytesPerBlock;
  tail.positions = run.positions.subspan(begin);
  tail.sign_mantissa += tail.positions.front() - run.positions.front();
  tail.first_block += begin;
  return tail;
}

}  // namespace df11
