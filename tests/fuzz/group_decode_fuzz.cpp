// Every group is decoded as the oracle decodes it, or refused as the oracle refuses it: by the CPU
// decoder, and by the device's decoding, run on the CPU, together with the CPU decoder's part.
//
// Input: a mode (1 byte). Either an unusual group's seed (3 bytes) and changes of its tensors (5
// bytes each); or the number of rows (1 byte), their tables, how many weights at most (2 bytes),
// and a stream, to which all else is made to fit.
#include <optional>
#include <stdexcept>

#include "decoder/host_group.h"
#include "decoder/simulated_block.h"
#include "format/df11_layout.h"
#include "fuzz_input.h"
#include "support/reference_decoder.h"
#include "support/unusual_groups.h"

using namespace df11;
using df11::test::FuzzInput;
using df11::test::require;

namespace {

void change(std::vector<uint8_t>& bytes, uint64_t kind, uint64_t at, uint8_t value) {
  if (bytes.empty()) return;
  uint8_t& byte = bytes[at % bytes.size()];
  switch (kind % 6) {
    case 0: byte ^= static_cast<uint8_t>(1 << value % 8); break;
    case 1: byte = value; break;
    case 2: byte = static_cast<uint8_t>(byte + value); break;
    case 3: std::swap(byte, bytes[(at + value) % bytes.size()]); break;
    case 4: bytes.resize(bytes.size() - std::min<size_t>(bytes.size() - 1, value)); break;
    default: bytes.insert(bytes.end(), value, static_cast<uint8_t>(at)); break;
  }
}

GroupTensors changed_group(FuzzInput& input) {
  // Mostly small ones, which are quick; some of more blocks than are decoded together.
  const uint64_t seed = input.take(3), size = seed % 8;
  const uint64_t most_bits = size == 0 ? 12 * kBlockBits : size == 4 ? 2 * kBlockBits : 3000;
  GroupTensors group = test::unusual_group(seed, most_bits).tensors;
  const std::array<std::vector<uint8_t>*, 5> tensors = {&group.luts, &group.encoded_exponent,
                                                        &group.sign_mantissa, &group.gaps,
                                                        &group.output_positions};
  while (!input.empty()) {
    const uint64_t what = input.take(1), at = input.take(3);
    change(*tensors[what % 5], what / 5, at, static_cast<uint8_t>(input.take(1)));
  }
  return group;
}

// Walks a stream as far as its tables lead, and adds what a valid group needs.
GroupTensors fitted_group(FuzzInput& input) {
  GroupTensors group;
  const size_t n_rows = 2 + input.take(1) % 17;
  const ByteSpan luts = input.take_bytes(n_rows * kLutRowBytes);
  group.luts.assign(luts.begin(), luts.end());
  group.luts.resize(n_rows * kLutRowBytes);
  const uint64_t most_weights = 1 + input.take(2);
  group.encoded_exponent.assign(input.rest().begin(), input.rest().end());
  const uint64_t n_bytes = group.encoded_exponent.size(), n_blocks = n_code_blocks(n_bytes);
  const Result<LookupTables> tables = LookupTables::parse(group.luts, n_rows);
  if (!tables) return group;

  std::vector<uint8_t> stream = group.encoded_exponent;
  stream.resize(n_bytes + 8);
  std::vector<uint8_t> gaps(n_blocks * kWindowsPerBlock, 32);
  std::vector<uint32_t> positions;
  uint64_t at = 0, n = 0;
  for (; n < most_weights && at < 8 * n_bytes; ++n) {
    const uint64_t bits = load_be64(&stream[at / 8]) << at % 8;
    const DecodedSymbol symbol = tables->walk(static_cast<uint32_t>(bits >> 32));
    if (symbol.length_bits == 0) break;
    if (gaps[at / kWindowBits] == 32) gaps[at / kWindowBits] = at % kWindowBits;
    while (positions.size() <= at / kBlockBits) positions.push_back(static_cast<uint32_t>(n));
    at += symbol.length_bits;
  }
  // The last code may reach beyond the bytes at hand.
  group.encoded_exponent.resize(ceil_div(at, 8));
  const uint64_t n_used_blocks = n_code_blocks(group.encoded_exponent.size());
  gaps.resize(n_used_blocks * kWindowsPerBlock, 32);
  if (at % 8 != 0 && gaps[at / kWindowBits] == 32) gaps[at / kWindowBits] = at % kWindowBits;
  positions.resize(n_used_blocks + 1, static_cast<uint32_t>(n));
  group.gaps.resize(n_used_blocks * kGapBytesPerBlock);
  for (uint64_t i = 0; i < gaps.size() * kGapBits; ++i) {
    const uint8_t gap = gaps[i / kGapBits] == 32 ? 0 : gaps[i / kGapBits];
    const uint32_t bit = gap >> (kGapBits - 1 - i % kGapBits) & 1;
    group.gaps[i / 8] |= static_cast<uint8_t>(bit << (7 - i % 8));
  }
  group.output_positions.resize(4 * positions.size());
  for (size_t i = 0; i < positions.size(); ++i)
    store_le32(&group.output_positions[4 * i], positions[i]);
  group.sign_mantissa.resize(n, 0x91);
  return group;
}

std::optional<std::vector<uint16_t>> decoded_by_oracle(const GroupTensors& group) {
  try {
    return test::reference_decode_strictly(group);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

// The part of a group that only the CPU decoder checks, as make_cuda_decoder's decoder does it.
bool ending_is_good(const HostGroup& group, std::vector<uint16_t>& words) {
  const BlockRun run = group.run(0, group.n_blocks());
  const size_t ending = first_ending_block(run);
  const auto decoder = make_cpu_decoder()->prepare(group.tables());
  return (*decoder)
      ->decode(run_tail(run, ending), words.data() + run.positions[ending])
      .has_value();
}

void check(const GroupTensors& tensors, int geometry) {
  const std::optional<std::vector<uint16_t>> expected = decoded_by_oracle(tensors);
  const Result<HostGroup> group =
      HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa, tensors.gaps,
                       tensors.output_positions});
  if (!group) {
    require(!expected, "a valid group is not refused");
    return;
  }
  std::vector<uint16_t> words(group->n_elements());
  const Result<void> decoded = group->decode(*make_cpu_decoder(), Executor(1), words.data());
  require(decoded.has_value() == expected.has_value(), "the CPU decoder's verdict");
  require(!expected || words == *expected, "the CPU decoder's words");

  test::SimulatedDecode simulated = test::simulate(*group, geometry);
  const bool good = simulated.status == 0 && ending_is_good(*group, simulated.words);
  // What the kernel refuses the CPU decoder decides.
  require(!good || expected.has_value(), "the device's verdict on damage");
  require(!expected || simulated.status == 0, "the device's verdict on a valid group");
  require(!good || simulated.words == *expected, "the device's words");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  FuzzInput input(data, n_bytes);
  const uint64_t mode = input.take(1);
  check(mode % 2 == 0 ? changed_group(input) : fitted_group(input),
        static_cast<int>(mode / 2 % test::kSimulatedGeometries));
  return 0;
}
