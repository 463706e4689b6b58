#include "decoder/group_reader.h"

#include <algorithm>

#include "format/df11_layout.h"

namespace df11 {

Result<GroupReader> GroupReader::load(const Artifact& artifact, const GroupEntry& entry,
                                      const Decoder& decoder) {
  GroupReader reader;
  reader.artifact_ = &artifact;
  DF11_ASSIGN(reader.group_, artifact.load_group(entry));
  DF11_ASSIGN(reader.decoder_, decoder.prepare(reader.group_.tables));
  reader.memory_ = decoder.memory();
  return reader;
}

void GroupReader::lay_out_runs(size_t begin, size_t end, size_t run_blocks) {
  const std::vector<uint32_t>& positions = group_.positions;
  // A last block without weights is checked together with the one before it.
  if (end != 0 && positions[end] == positions.back()) end = group_.n_blocks();
  for (size_t block = begin; block < end; block += run_blocks) {
    if (block != begin && positions[block] == positions.back()) break;
    run_begins_.push_back(block);
  }
  run_begins_.push_back(end);
}

Result<GroupReader> GroupReader::open(const Artifact& artifact, const GroupEntry& entry,
                                      const Decoder& decoder) {
  DF11_ASSIGN(GroupReader reader, load(artifact, entry, decoder));
  reader.lay_out_runs(0, reader.group_.n_blocks(), decoder.run_blocks());
  return reader;
}

Result<GroupReader> GroupReader::open_member(const Artifact& artifact, const GroupEntry& entry,
                                             size_t member, const Decoder& decoder) {
  DF11_ASSIGN(GroupReader reader, load(artifact, entry, decoder));
  const Group& group = reader.group_;
  const uint64_t begin = group.first_element(member), end = begin + group.member_elements[member];
  if (begin == end) {
    reader.run_begins_.push_back(0);
    return reader;
  }
  const auto block_of = [&](auto position) {
    return static_cast<size_t>(position - group.positions.begin());
  };
  const auto first =
      std::prev(std::upper_bound(group.positions.begin(), group.positions.end(), begin));
  const auto last = std::lower_bound(first, group.positions.end(), end);
  reader.lay_out_runs(block_of(first), block_of(last), decoder.run_blocks());
  return reader;
}

Result<std::span<const uint16_t>> GroupReader::decode_run(size_t i, RunBuffers& buffers) const {
  const GroupEntry& entry = *group_.entry;
  const ShardSet& shards = artifact_->shards();
  const size_t begin = run_begins_[i], end = run_begins_[i + 1];
  const uint64_t code_begin = uint64_t{begin} * kBlockBytes;
  const uint64_t code_end = std::min(uint64_t{end} * kBlockBytes, entry.n_code_bytes());

  BlockRun run;
  run.n_code_bytes = code_end - code_begin;
  run.positions = std::span(group_.positions).subspan(begin, end - begin + 1);
  run.first_block = begin;
  run.ends_group = end == group_.n_blocks();

  // The code after the run belongs to the next one, but the last code may reach into it.
  DF11_ASSIGN(uint8_t* const code,
              buffers.code.ensure(run.n_code_bytes + kCodeLookaheadBytes, memory_));
  const uint64_t read_end = std::min(code_end + kCodeLookaheadBytes, entry.n_code_bytes());
  const size_t n_read = read_end - code_begin;
  DF11_TRY(shards.read(*entry.encoded_exponent, code_begin, {code, n_read}));
  std::fill(code + n_read, code + run.n_code_bytes + kCodeLookaheadBytes, uint8_t{0});
  run.code = code;

  const uint64_t gaps_begin = uint64_t{begin} * kGapBytesPerBlock;
  const size_t n_gaps = (end - begin) * kGapBytesPerBlock + (run.ends_group ? 0 : 1);
  DF11_ASSIGN(uint8_t* const gaps, buffers.gaps.ensure(n_gaps, memory_));
  DF11_TRY(shards.read(*entry.gaps, gaps_begin, {gaps, n_gaps}));
  run.gaps = gaps;
  if (!run.ends_group) run.next_gap = load_gap(gaps, (end - begin) * kWindowsPerBlock);

  DF11_ASSIGN(uint8_t* const sign_mantissa,
              buffers.sign_mantissa.ensure(run.n_elements(), memory_));
  DF11_TRY(
      shards.read(*entry.sign_mantissa, run.positions.front(), {sign_mantissa, run.n_elements()}));
  run.sign_mantissa = sign_mantissa;

  DF11_ASSIGN(uint16_t* const words, buffers.words.ensure(run.n_elements(), memory_));
  if (Result<void> decoded = decoder_->decode(run, words); !decoded) {
    return fail(std::move(decoded)
                    .error()
                    .in_tensor(entry.module)
                    .in_file(shards.shards()[entry.encoded_exponent->shard].file.path()));
  }
  return std::span<const uint16_t>(words, run.n_elements());
}

}  // namespace df11
