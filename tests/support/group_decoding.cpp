#include "support/group_decoding.h"

#include <algorithm>
#include <limits>

#include "format/df11_layout.h"

namespace df11::test {

std::vector<uint32_t> positions_of(const GroupTensors& group) {
  std::vector<uint32_t> positions(group.output_positions.size() / 4);
  for (size_t i = 0; i < positions.size(); ++i)
    positions[i] = load_le32(&group.output_positions[4 * i]);
  return positions;
}

Result<std::unique_ptr<GroupDecoder>> prepare_decoder(const GroupTensors& group) {
  DF11_ASSIGN(const LookupTables luts, LookupTables::parse(group.luts, group.luts.size() / 256));
  return make_cpu_decoder()->prepare(luts);
}

Result<std::vector<uint16_t>> decode_group(const GroupTensors& group, size_t blocks_per_run,
                                           uint8_t pad) {
  DF11_ASSIGN(const std::unique_ptr<GroupDecoder> decoder, prepare_decoder(group));
  return decode_group(group, *decoder, blocks_per_run, pad);
}

Result<std::vector<uint16_t>> decode_group(const GroupTensors& group, const GroupDecoder& decoder,
                                           size_t blocks_per_run, uint8_t pad) {
  const std::vector<uint32_t> positions = positions_of(group);
  const size_t n_blocks = positions.size() - 1;
  const std::vector<uint8_t>& stream = group.encoded_exponent;
  // What a caller must have checked before it cuts runs: ascending positions that end at N.
  if (!std::is_sorted(positions.begin(), positions.end()) || positions.front() != 0 ||
      positions.back() != group.sign_mantissa.size() || n_blocks != n_code_blocks(stream.size()) ||
      group.gaps.size() != gaps_bytes(stream.size())) {
    return fail(ErrorCode::malformed_group, "positions");
  }
  std::vector<uint16_t> words;
  blocks_per_run = std::min(blocks_per_run, n_blocks);
  size_t n = 0;
  for (size_t first = 0; first < n_blocks; first += n) {
    n = std::min(blocks_per_run, n_blocks - first);
    if (first + n + 1 == n_blocks && positions[n_blocks - 1] == positions.back()) ++n;
    const size_t begin = first * kBlockBytes,
                 end = std::min(begin + n * kBlockBytes, stream.size());
    std::vector<uint8_t> code(stream.begin() + static_cast<ptrdiff_t>(begin),
                              stream.begin() + static_cast<ptrdiff_t>(std::min(
                                                   end + kCodeLookaheadBytes, stream.size())));
    code.resize(end - begin + kCodeLookaheadBytes, pad);
    const auto part = [](const std::vector<uint8_t>& bytes, size_t from, size_t to) {
      return std::vector<uint8_t>(bytes.begin() + static_cast<ptrdiff_t>(from),
                                  bytes.begin() + static_cast<ptrdiff_t>(to));
    };
    const std::vector<uint8_t> gaps =
        part(group.gaps, first * kGapBytesPerBlock, (first + n) * kGapBytesPerBlock);
    const std::vector<uint32_t> run_positions(
        positions.begin() + static_cast<ptrdiff_t>(first),
        positions.begin() + static_cast<ptrdiff_t>(first + n + 1));
    const std::vector<uint8_t> sign_mantissa =
        part(group.sign_mantissa, run_positions.front(), run_positions.back());
    std::vector<uint16_t> run_words(sign_mantissa.size());

    BlockRun run;
    run.code = code.data();
    run.n_code_bytes = end - begin;
    run.gaps = gaps.data();
    run.positions = run_positions;
    run.sign_mantissa = sign_mantissa.data();
    run.first_block = first;
    run.ends_group = first + n == n_blocks;
    if (!run.ends_group) run.next_gap = load_gap(group.gaps.data(), (first + n) * kWindowsPerBlock);
    DF11_TRY(decoder.decode(run, run_words.data()));
    words.insert(words.end(), run_words.begin(), run_words.end());
  }
  return words;
}

}  // namespace df11::test
