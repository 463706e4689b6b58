// Input: the slice size (2 bytes), then words with how often each is repeated (3 bytes each); a
// count of 0 ends a member. Encoded, they are what the naive encoder writes, and decode to
// themselves.
#include "compressor/group_encoder.h"
#include "decoder/host_group.h"
#include "format/bf16.h"
#include "format/df11_layout.h"
#include "fuzz_input.h"
#include "support/reference_decoder.h"
#include "support/reference_encoder.h"

using namespace df11;
using df11::test::require;

namespace {
constexpr size_t kMaxElements = 60'000, kMaxSlices = 500;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  test::FuzzInput input(data, n_bytes);
  size_t slice_elements = 1 + input.take(2);
  std::vector<std::vector<uint16_t>> members(1);
  std::vector<uint16_t> words;
  bool has_uncodable = false;
  while (!input.empty() && words.size() < kMaxElements) {
    const uint16_t word = static_cast<uint16_t>(input.take(2));
    const uint64_t count = input.take(1);
    if (count == 0) {
      members.emplace_back();
      continue;
    }
    const size_t n_repeats = count < 128 ? 1 : (count - 127) * (count - 127);
    members.back().insert(members.back().end(), n_repeats, word);
    words.insert(words.end(), n_repeats, word);
    has_uncodable |= bf16_exponent(word) > kMaxCodedExponent;
  }

  slice_elements = std::max(slice_elements, words.size() / kMaxSlices);
  const std::vector<std::span<const uint16_t>> spans(members.begin(), members.end());
  const Result<GroupTensors> tensors = encode_group(spans, Executor(1), slice_elements);
  require(tensors.has_value() == (!words.empty() && !has_uncodable), "what can be coded");
  if (!tensors) return 0;

  const Codebook codebook = *build_codebook(test::exponent_counts(words));
  const GroupTensors plain = test::reference_encode(members, test::code_of(codebook));
  require(tensors->encoded_exponent == plain.encoded_exponent, "encoded_exponent");
  require(tensors->sign_mantissa == plain.sign_mantissa, "sign_mantissa");
  require(tensors->gaps == plain.gaps, "gaps");
  require(tensors->output_positions == plain.output_positions, "output_positions");
  require(tensors->split_positions == plain.split_positions, "split_positions");

  require(test::reference_decode_strictly(*tensors) == words, "the oracle's words");
  const Result<HostGroup> group =
      HostGroup::make({tensors->luts, tensors->encoded_exponent, tensors->sign_mantissa,
                       tensors->gaps, tensors->output_positions});
  require(group.has_value(), "a valid group");
  std::vector<uint16_t> decoded(words.size());
  require(group->decode(*make_cpu_decoder(), Executor(1), decoded.data()).has_value(), "decodes");
  require(decoded == words, "the same words");
  return 0;
}
