// The device's tables and window decoding, run on the CPU: equal to the CPU decoder.
#include <gtest/gtest.h>

#include "compressor/group_encoder.h"
#include "decoder/known_symbols.h"
#include "simulated_block.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

Result<HostGroup> host_group(const GroupTensors& tensors) {
  return HostGroup::make({tensors.luts, tensors.encoded_exponent, tensors.sign_mantissa,
                          tensors.gaps, tensors.output_positions});
}

GroupTensors encoded(const NamedInput& input) {
  return *encode_group(input.spans(), Executor(1), size_t{1} << 30);
}

TEST(WindowDecoding, EqualsTheInputForEveryPlan) {
  for (const NamedInput& input : named_inputs()) {
    const Result<HostGroup> group = host_group(encoded(input));
    ASSERT_TRUE(succeeded(group)) << input.name;
    const std::vector<uint16_t> words = input.words();
    for (int geometry = 0; geometry < kSimulatedGeometries; ++geometry) {
      const SimulatedDecode decoded = simulate(*group, geometry);
      EXPECT_EQ(decoded.status, 0u) << input.name << ", geometry " << geometry;
      EXPECT_TRUE(decoded.words == words) << input.name << ", geometry " << geometry;
    }
  }
}

// A group with few words of few exponents: the end-of-stream leaf is then as long as the rarest
// codes, in row 0, all zeros, or inside a link row, and slots around it repeat other symbols.
NamedInput small_random_input(uint64_t seed) {
  Random random(seed);
  const size_t n_exponents = 1 + random.below(seed % 3 == 0 ? 3 : 28);
  std::vector<uint64_t> counts(n_exponents);
  const uint64_t shape = random.below(4);
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = shape == 0   ? 1
                : shape == 1 ? uint64_t{1} << std::min<size_t>(i, 12)
                : shape == 2 ? 1 + random.below(40)
                             : fibonacci_counts(i + 1).back();
    counts[i] = std::min<uint64_t>(counts[i], 6000);
  }
  random.shuffle(counts);
  return {"random_" + std::to_string(seed),
          {words_with_counts(counts, static_cast<uint32_t>(random.below(200)), seed)}};
}

struct LeafKinds {
  int all_zero = 0, in_link_row = 0;
};
LeafKinds& leaf_kinds() {
  static LeafKinds kinds;
  return kinds;
}
void note_leaf(const std::vector<uint16_t>& words) {
  Histogram counts{};
  for (const uint16_t word : words) ++counts[bf16_exponent(word)];
  const Codebook book = *build_codebook(counts);
  leaf_kinds().all_zero += book.end_of_stream.bits == 0;
  leaf_kinds().in_link_row += book.end_of_stream.length_bits > 8;
}

TEST(WindowDecoding, EqualsTheInputForThousandsOfSmallGroups) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const NamedInput input = small_random_input(seed);
    note_leaf(input.members[0]);
    const GroupTensors tensors = encoded(input);
    const Result<HostGroup> group = host_group(tensors);
    ASSERT_TRUE(succeeded(group)) << input.name;
    const int geometry = static_cast<int>(seed % kSimulatedGeometries);
    const SimulatedDecode decoded = simulate(*group, geometry);
    ASSERT_EQ(decoded.status, 0u) << input.name << ", geometry " << geometry;
    ASSERT_TRUE(decoded.words == input.members[0]) << input.name << ", geometry " << geometry;
    const Result<std::vector<uint16_t>> by_cpu = decode_group(tensors, 1);
    ASSERT_TRUE(succeeded(by_cpu)) << input.name;
    ASSERT_TRUE(*by_cpu == input.members[0]) << input.name;
  }
  EXPECT_GT(leaf_kinds().all_zero, 100);
  EXPECT_GT(leaf_kinds().in_link_row, 100);
}

// Whatever a peek entry says follows from every continuation of its bits.
TEST(DecodeTables, EntriesHoldWhateverFollows) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const GroupTensors tensors = encoded(small_random_input(seed));
    const LookupTables luts = *LookupTables::parse(tensors.luts, tensors.luts.size() / 256);
    for (const cuda::DecodePlan plan : {cuda::DecodePlan::kPeek11, cuda::DecodePlan::kPeek12}) {
      const cuda::TableImage image = cuda::build_table_image(luts, plan);
      const int n_bits = cuda::peek_bits(plan);
      const auto* entries = reinterpret_cast<const cuda::PeekEntry*>(image.bytes.data());
      Random random(seed);
      for (uint32_t peek = 0; peek < 1u << n_bits; ++peek) {
        const cuda::PeekEntry entry = entries[peek];
        if ((entry.counts & cuda::kLongCode) != 0) continue;
        const uint64_t rest = random.next() >> n_bits;
        uint64_t bits = uint64_t{peek} << (64 - n_bits) | rest;
        for (uint32_t i = 0; i < (entry.counts >> 8 & 0xff); ++i) {
          const DecodedSymbol symbol = luts.walk(static_cast<uint32_t>(bits >> 32));
          ASSERT_EQ(cuda::rotated_exponent(symbol.exponent), entry.exponents >> (8 * i) & 0xff)
              << "seed " << seed << ", peek " << peek;
          bits <<= symbol.length_bits;
        }
      }
    }
  }
}

TEST(DecodeTables, RowsWalkAsTheSpecificationSays) {
  Random random(3);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::vector<uint8_t> luts = encoded(small_random_input(seed)).luts;
    if (seed % 2 == 0) {  // hostile: links and lengths at random
      for (int i = 0; i < 40; ++i) {
        const uint64_t at = random.below(luts.size() - 256);
        luts[at] = static_cast<uint8_t>(random.next());
        luts[luts.size() - 256 + random.below(240)] = static_cast<uint8_t>(random.below(33));
      }
    }
    const Result<LookupTables> tables = LookupTables::parse(luts, luts.size() / 256);
    if (!tables) continue;
    const cuda::TableImage image = cuda::build_table_image(*tables, cuda::DecodePlan::kOneCode);
    const auto* rows = reinterpret_cast<const cuda::CodeEntry*>(image.bytes.data());
    for (int i = 0; i < 20000; ++i) {
      const uint32_t bits = static_cast<uint32_t>(random.next()) | (i % 3 == 0 ? 0xff000000 : 0);
      const DecodedSymbol symbol = tables->walk(bits);
      const uint32_t found = cuda::walk_rows(rows, bits);
      ASSERT_EQ(found & 63, symbol.length_bits);
      ASSERT_EQ(found >> 8, found == 0 ? 0 : cuda::rotated_exponent(symbol.exponent));
    }
  }
}

// Where gaps, positions or code are damaged and the CPU decoder refuses, so does the kernel, but
// for the blocks that end the group; and what the kernel accepts is what the CPU decoder decodes.
TEST(WindowDecoding, DamageIsReported) {
  Random random(17);
  int n_refused = 0;
  for (const NamedInput& input : named_inputs()) {
    const GroupTensors good = encoded(input);
    if (good.encoded_exponent.size() < 3 * kBlockBytes) continue;
    for (int round = 0; round < 6; ++round) {
      GroupTensors bad = good;
      const size_t n_blocks = n_code_blocks(good.encoded_exponent.size());
      const size_t block = random.below(n_blocks - 2);  // not one that ends the group
      if (round % 3 == 0)
        bad.gaps[block * kGapBytesPerBlock + random.below(319)] ^=
            static_cast<uint8_t>(1 << random.below(8));
      if (round % 3 == 1)
        bad.encoded_exponent[block * kBlockBytes + random.below(4000)] ^=
            static_cast<uint8_t>(1 << random.below(8));
      if (round % 3 == 2 && block != 0)
        store_le32(&bad.output_positions[4 * block],
                   load_le32(&bad.output_positions[4 * block]) + 1);
      const Result<HostGroup> group = host_group(bad);
      if (!group) continue;
      const Result<std::vector<uint16_t>> by_cpu = decode_group(bad, 1);
      n_refused += !by_cpu;
      for (int geometry = 0; geometry < kSimulatedGeometries; ++geometry) {
        const SimulatedDecode decoded = simulate(*group, geometry);
        ASSERT_EQ(decoded.status == 0, by_cpu.has_value())
            << input.name << ", round " << round << ", geometry " << geometry
            << (by_cpu ? "" : ": " + by_cpu.error().describe());
        ASSERT_TRUE(!by_cpu || decoded.words == *by_cpu) << input.name;
      }
    }
  }
  EXPECT_GT(n_refused, 50);
}

TEST(DeviceBits, AreWhatTheInstructionsDo) {
  EXPECT_EQ(cuda::shift_left_in(0x80000001, 0x00000001, 4), 0x18u);
  EXPECT_EQ(cuda::shift_left_in(0x80000001, 0x00000001, 32), 1u);
  EXPECT_EQ(cuda::first_bits<11>(0xffe00000), 2047u);
  EXPECT_EQ(cuda::permute_bytes(0x33221100, 0x77665544, 0x5140), 0x55114400u);
  EXPECT_EQ(cuda::select_bits(0xaaaa, 0x5555, 0xff00), 0xaa55u);
  EXPECT_EQ(cuda::add_eight_times_byte_1(0xff0003ff, 5), 29u);
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (uint32_t sm = 0; sm < 256; ++sm) {
      const uint16_t word = bf16_join(static_cast<uint8_t>(exponent), static_cast<uint8_t>(sm));
      const uint32_t rotated = cuda::rotated_exponent(exponent);
      ASSERT_EQ(cuda::join_one(rotated, sm), word);
      const auto four = cuda::join_four(rotated * 0x01010101u, sm * 0x01010101u, cuda::kJoinMask);
      ASSERT_EQ(four.first, word * 0x10001u);
      ASSERT_EQ(four.second, word * 0x10001u);
    }
  }
}

}  // namespace
}  // namespace df11::test
