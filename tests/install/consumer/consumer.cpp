// Encodes a tensor in memory, decodes it, and compares: what a program with its own weights does.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "compressor/group_encoder.h"
#include "decoder/decoder.h"
#include "format/df11_layout.h"
#include "format/version.h"
#include "verify/verify.h"

namespace {

df11::Result<std::vector<uint16_t>> round_trip(const std::vector<uint16_t>& words) {
  const df11::Executor executor(2);
  const std::span<const uint16_t> members[] = {words};
  DF11_ASSIGN(df11::GroupTensors group, df11::encode_group(members, executor, 1 << 14));
  const size_t n_code_bytes = group.encoded_exponent.size();
  group.encoded_exponent.resize(n_code_bytes + df11::kCodeLookaheadBytes);

  DF11_ASSIGN(const df11::LookupTables tables,
              df11::LookupTables::parse(group.luts, group.luts.size() / df11::kLutRowBytes));
  DF11_ASSIGN(const auto decoder, df11::make_cpu_decoder()->prepare(tables));
  std::vector<uint32_t> positions(group.output_positions.size() / 4);
  std::memcpy(positions.data(), group.output_positions.data(), group.output_positions.size());
  df11::BlockRun run;
  run.code = group.encoded_exponent.data();
  run.n_code_bytes = n_code_bytes;
  run.gaps = group.gaps.data();
  run.positions = positions;
  run.sign_mantissa = group.sign_mantissa.data();
  run.ends_group = true;
  std::vector<uint16_t> decoded(words.size());
  DF11_TRY(decoder->decode(run, decoded.data()));
  return decoded;
}

}  // namespace

int main(int argc, char**) {
  const uint8_t narrowed = argc;  // an error if the project's own -Wconversion reached us

  std::vector<uint16_t> words(100'000);
  uint32_t state = 1 + narrowed;
  for (uint16_t& word : words) {
    state = state * 1664525 + 1013904223;
    word = static_cast<uint16_t>(0x3c00 + (state >> 22));
  }
  const df11::Result<std::vector<uint16_t>> decoded = round_trip(words);
  if (!decoded) {
    std::fprintf(stderr, "%s\n", decoded.error().describe().c_str());
    return 1;
  }
  if (*decoded != words) {
    std::fprintf(stderr, "decoded weights differ\n");
    return 1;
  }
  // The directory level links and runs, too.
  const df11::Executor executor(1);
  df11::Progress progress;
  const auto report =
      df11::verify("no such directory", {}, *df11::make_cpu_decoder(), executor, progress);
  if (report || report.error().code != df11::ErrorCode::not_found) return 1;
  std::printf("df11 %s\n", std::string(df11::kVersion).c_str());
  return 0;
}
