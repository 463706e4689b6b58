// Damage of every kind that passes the checks before an upload: the kernel must not fault, hang or
// write outside its words, and must report what the CPU decoder refuses.
#include <cmath>

#include "device.h"
#include "format/df11_layout.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

using CudaHostile = DeviceTest;

enum class Damage {
  kCodeBits,
  kGapBits,
  kPositions,
  kTables,
  kRandomCode,
  kRandomEverything,
  kEnd
};

void damage(GroupTensors& group, Damage kind, Random& random) {
  const auto flip = [&](std::vector<uint8_t>& bytes, size_t begin, size_t end) {
    bytes[begin + random.below(end - begin)] ^= static_cast<uint8_t>(1u << random.below(8));
  };
  const auto fill = [&](std::vector<uint8_t>& bytes) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  };
  const size_t times = 1 + random.below(20);
  switch (kind) {
    case Damage::kCodeBits:
      for (size_t i = 0; i < times; ++i)
        flip(group.encoded_exponent, 0, group.encoded_exponent.size());
      break;
    case Damage::kGapBits:
      for (size_t i = 0; i < times; ++i) flip(group.gaps, 0, group.gaps.size());
      break;
    case Damage::kPositions: {
      const size_t n = group.output_positions.size() / 4;
      for (size_t i = 0; i < times && n > 2; ++i) {
        uint8_t* const p = &group.output_positions[4 * (1 + random.below(n - 2))];
        store_le32(p, load_le32(p) + static_cast<uint32_t>(random.below(2001)) - 1000);
      }
      break;
    }
    case Damage::kTables:
      for (size_t i = 0; i < times; ++i) {
        group.luts[random.below(group.luts.size() - 256)] = static_cast<uint8_t>(random.next());
        if (random.below(3) == 0) {
          group.luts[group.luts.size() - 256 + random.below(240)] =
              static_cast<uint8_t>(random.below(33));
        }
      }
      break;
    case Damage::kRandomCode: fill(group.encoded_exponent); break;
    case Damage::kRandomEverything:
      fill(group.encoded_exponent);
      fill(group.gaps);
      break;
    case Damage::kEnd: break;
  }
}

// Verdict of the CPU decoder on all blocks but those that end the group.
bool cpu_accepts(const HostGroup& group) {
  const auto decoder = *make_cpu_decoder()->prepare(group.tables());
  const size_t end = first_ending_block(group.run(0, group.n_blocks()));
  std::vector<uint16_t> words(group.n_elements());
  for (size_t block = 0; block < end; ++block) {
    if (!decoder->decode(group.run(block, block + 1), words.data())) return false;
  }
  return true;
}

TEST_F(CudaHostile, NeverFaultsHangsOrWritesOutside) {
  Random random(99);
  std::vector<GroupTensors> victims;
  for (const std::string name :
       {"tiny_40", "one_symbol_full_blocks", "fibonacci_17_bits", "constant_then_normal",
        "last_code_crosses_block_by_8", "several_members"}) {
    for (const NamedInput& input : named_inputs()) {
      if (input.name == name) victims.push_back(*encode_group(input.spans(), Executor(1), 1 << 20));
    }
  }
  std::vector<double> frequencies;
  for (int i = 0; i < 40; ++i) frequencies.push_back(std::exp(-0.35 * i));
  victims.push_back(encode_words(random_words(60000, frequencies, 90, 1)));
  ASSERT_GE(victims.size(), 5u);

  int n_flagged = 0, n_clean = 0, n_refused = 0;
  for (int round = 0; round < 280; ++round) {
    GroupTensors bad = victims[random.below(victims.size())];
    const auto kind = static_cast<Damage>(round % static_cast<int>(Damage::kEnd));
    damage(bad, kind, random);
    const Result<HostGroup> group = host_group(bad);
    if (!group) {
      ++n_refused;  // before anything is uploaded
      continue;
    }
    const bool cpu = cpu_accepts(*group);
    for (const cuda::DecodePlan plan : kAllPlans) {
      const DeviceDecode decoded = decode_on_device(*group, plan);
      ASSERT_TRUE(decoded.canaries_intact) << "round " << round;
      // Blocks that end the group may be flagged or not; the others must be as the CPU says.
      ASSERT_TRUE(cpu || decoded.status != 0) << "round " << round;
      (decoded.status != 0 ? n_flagged : n_clean)++;
    }
  }
  EXPECT_GT(n_flagged, 100);
  RecordProperty("flagged", n_flagged);
  RecordProperty("clean", n_clean);
  RecordProperty("refused", n_refused);
}

// A group whose positions promise fewer weights than its code has: counts beyond the output.
TEST_F(CudaHostile, CountsBeyondTheOutput) {
  std::vector<double> frequencies = {8, 4, 2, 1, 1};
  for (const size_t n : {1000, 40000}) {
    GroupTensors group = encode_words(random_words(n, frequencies, 100, n));
    group.sign_mantissa.resize(n / 2);
    const size_t n_positions = group.output_positions.size() / 4;
    for (size_t i = 1; i < n_positions; ++i) {
      uint8_t* const p = &group.output_positions[4 * i];
      store_le32(p, i + 1 == n_positions ? static_cast<uint32_t>(n / 2)
                                         : std::min(load_le32(p), static_cast<uint32_t>(n / 2)));
    }
    const Result<HostGroup> host = host_group(group);
    if (!host) continue;
    for (const cuda::DecodePlan plan : kAllPlans)
      EXPECT_TRUE(decode_on_device(*host, plan).canaries_intact);
  }
}

}  // namespace
}  // namespace df11::test
