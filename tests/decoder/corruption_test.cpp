// Damage of every kind to a group: what the decoder checks must be refused, and nothing may read or
// write outside its buffers (decode_group allocates them exactly; run with a sanitizer).
#include <gtest/gtest.h>

#include "compressor/group_encoder.h"
#include "format/df11_layout.h"
#include "support/group_decoding.h"
#include "support/named_inputs.h"
#include "support/random.h"
#include "support/reference_decoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

const NamedInput& input_named(const std::string& name) {
  for (const NamedInput& input : named_inputs()) {
    if (input.name == name) return input;
  }
  throw std::logic_error("no input " + name);
}

GroupTensors encoded(const NamedInput& input) {
  return *encode_group(input.spans(), Executor(1), size_t{1} << 30);
}

// Small groups of every kind: one block, several, tails, one symbol, long codes.
const std::vector<std::string> kVictims = {"tiny_1",
                                           "tiny_40",
                                           "one_symbol",
                                           "one_symbol_full_blocks",
                                           "ends_on_byte",
                                           "ends_on_window",
                                           "ends_on_block",
                                           "ends_one_bit_into_block",
                                           "last_code_crosses_block_by_3",
                                           "last_code_crosses_block_by_8",
                                           "last_code_crosses_block_by_16",
                                           "last_code_crosses_window_aligned",
                                           "last_code_starts_on_block_aligned",
                                           "fibonacci_17_bits",
                                           "several_members",
                                           "constant_then_normal"};

void store_gap(std::vector<uint8_t>& gaps, uint64_t window, uint32_t gap) {
  for (uint32_t i = 0; i < kGapBits; ++i) {
    const uint64_t bit = window * kGapBits + i;
    const uint8_t mask = static_cast<uint8_t>(0x80 >> bit % 8);
    if ((gap >> (kGapBits - 1 - i) & 1) != 0)
      gaps[bit / 8] |= mask;
    else
      gaps[bit / 8] &= static_cast<uint8_t>(~mask);
  }
}

// Whatever damaged group is accepted decodes to what upstream's kernel would make of it.
void check_as_upstream(const GroupTensors& group, size_t blocks_per_run, uint8_t pad) {
  const Result<std::vector<uint16_t>> decoded = decode_group(group, blocks_per_run, pad);
  if (!decoded) return;
  EXPECT_TRUE(*decoded == reference_decode_by_windows(group));
}

TEST(Corruption, EveryAlteredGapIsRefused) {
  for (const std::string& name : kVictims) {
    const GroupTensors good = encoded(input_named(name));
    const std::unique_ptr<GroupDecoder> decoder = *prepare_decoder(good);
    const uint64_t n_windows = good.gaps.size() * 8 / kGapBits;
    const bool small = n_windows <= 2 * kWindowsPerBlock;
    GroupTensors bad = good;
    for (uint64_t window = 0; window < n_windows; window += small ? 1 : 11) {
      const uint32_t gap = load_gap(good.gaps.data(), window);
      for (const uint32_t flip : {1u, 16u, 31u}) {
        store_gap(bad.gaps, window, gap ^ flip);
        for (const size_t blocks_per_run : {size_t{1}, size_t{100}}) {
          ASSERT_TRUE(failed_with(decode_group(bad, *decoder, blocks_per_run),
                                  ErrorCode::corrupt_stream, "block "))
              << name << ", window " << window << ", gap " << (gap ^ flip);
        }
        if (!small) break;
      }
      store_gap(bad.gaps, window, gap);
    }
    ASSERT_TRUE(succeeded(decode_group(bad, *decoder, 1))) << name;
  }
}

TEST(Corruption, EveryAlteredPositionIsRefused) {
  for (const NamedInput& input : named_inputs()) {
    const GroupTensors good = encoded(input);
    const std::unique_ptr<GroupDecoder> decoder = *prepare_decoder(good);
    const std::vector<uint32_t> positions = positions_of(good);
    for (size_t i = 0; i < positions.size(); ++i) {
      for (const int64_t change : {-100000, -1000, -2, -1, 1, 2, 1000, 100000}) {
        GroupTensors bad = good;
        store_le32(&bad.output_positions[4 * i], static_cast<uint32_t>(positions[i] + change));
        for (const size_t blocks_per_run : {size_t{1}, size_t{1000}}) {
          ASSERT_FALSE(decode_group(bad, *decoder, blocks_per_run))
              << input.name << ", position " << i << " changed by " << change;
        }
      }
    }
  }
}

// A flip may go unnoticed where it means nothing: in the padding, or where it turns a code into the
// end-of-stream code, whose table slots repeat some symbol. What is accepted must then be what
// upstream's kernel would decode.
TEST(Corruption, FlippedCodeBitsAreRefusedOrDecodeAsUpstreamWould) {
  Random random(5);
  for (const std::string& name : kVictims) {
    const NamedInput& input = input_named(name);
    const std::vector<uint16_t> words = input.words();
    const GroupTensors good = encoded(input);
    const std::unique_ptr<GroupDecoder> decoder = *prepare_decoder(good);
    const uint64_t n_bits = good.encoded_exponent.size() * 8;
    const uint64_t n_rounds = std::min<uint64_t>(n_bits, 600);
    uint64_t n_same = 0;
    for (uint64_t round = 0; round < n_rounds; ++round) {
      const uint64_t bit = n_bits <= 600 ? round : random.below(n_bits);
      GroupTensors bad = good;
      bad.encoded_exponent[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
      const Result<std::vector<uint16_t>> decoded = decode_group(bad, *decoder, 100);
      if (!decoded) continue;
      ASSERT_TRUE(*decoded == reference_decode_by_windows(bad)) << name << " bit " << bit;
      if (*decoded == words) ++n_same;
    }
    const bool one_symbol = name == "tiny_1" || name.starts_with("one_symbol");
    EXPECT_LE(n_same, one_symbol ? n_rounds : n_rounds / 10 + 8) << name;
  }
}

TEST(Corruption, TruncatedStreamsAreRefused) {
  Random random(6);
  for (const std::string& name : kVictims) {
    const GroupTensors good = encoded(input_named(name));
    const size_t n_bytes = good.encoded_exponent.size();
    for (int round = 0; round < 60; ++round) {
      const size_t cut = round < 20 ? static_cast<size_t>(round) + 1 : 1 + random.below(n_bytes);
      if (cut >= n_bytes) continue;
      // The stream is shorter, and all that describes it says the same: only the codes disagree.
      GroupTensors bad = good;
      bad.encoded_exponent.resize(n_bytes - cut);
      const uint64_t n_blocks = n_code_blocks(n_bytes - cut);
      bad.gaps.resize(n_blocks * kGapBytesPerBlock);
      bad.output_positions.resize(4 * n_blocks);
      for (int i = 0; i < 4; ++i) {
        bad.output_positions.push_back(static_cast<uint8_t>(bad.sign_mantissa.size() >> (8 * i)));
      }
      for (const size_t blocks_per_run : {size_t{1}, size_t{100}}) {
        ASSERT_FALSE(decode_group(bad, blocks_per_run)) << name << " cut by " << cut;
      }
    }
  }
}

TEST(Corruption, LengthenedStreamsAreRefused) {
  for (const std::string& name : kVictims) {
    const GroupTensors good = encoded(input_named(name));
    for (const size_t extra : {1, 2, 8, 100}) {
      GroupTensors bad = good;
      bad.encoded_exponent.resize(good.encoded_exponent.size() + extra, 0x5a);
      if (n_code_blocks(bad.encoded_exponent.size()) != n_code_blocks(good.encoded_exponent.size()))
        continue;
      ASSERT_FALSE(decode_group(bad, 100)) << name << " longer by " << extra;
    }
  }
}

TEST(Corruption, MoreWeightsThanTheLastBlockHasBytesFor) {
  // A block may declare up to 32768 weights however few bytes it has: the decoder must not go on
  // reading after them. All-ones decode as one-bit codes for ever.
  GroupTensors bad = encoded(input_named("one_symbol"));
  const uint32_t n_elements = 30'000;
  bad.sign_mantissa.resize(n_elements, 0);
  store_le32(&bad.output_positions[4], n_elements);
  EXPECT_TRUE(failed_with(decode_group(bad, 1, 0xff), ErrorCode::corrupt_stream));
  EXPECT_TRUE(failed_with(decode_group(bad, 1, 0x00), ErrorCode::corrupt_stream));
}

TEST(Corruption, AlteredTablesNeverHarm) {
  Random random(8);
  for (const std::string& name : kVictims) {
    const NamedInput& input = input_named(name);
    const GroupTensors good = encoded(input);
    for (int round = 0; round < 150; ++round) {
      GroupTensors bad = good;
      const size_t n_changes = 1 + random.below(4);
      for (size_t i = 0; i < n_changes; ++i) {
        const uint64_t kind = random.below(3);
        bad.luts[random.below(bad.luts.size())] =
            static_cast<uint8_t>(kind == 0   ? random.below(256)
                                 : kind == 1 ? 255
                                             : random.below(33));
      }
      check_as_upstream(bad, 1 + random.below(4), 0);
    }
  }
}

TEST(Corruption, RandomBytesNeverHarm) {
  Random random(9);
  for (int round = 0; round < 300; ++round) {
    GroupTensors group;
    const size_t n_rows = 2 + random.below(6);
    group.luts.resize(n_rows * 256);
    for (size_t i = 0; i < group.luts.size(); ++i) {
      group.luts[i] =
          static_cast<uint8_t>(i < (n_rows - 1) * 256 ? 256 - random.below(256) : random.below(33));
    }
    for (size_t i = 240; i < 256; ++i) group.luts[(n_rows - 1) * 256 + i] = 0;
    group.encoded_exponent.resize(1 + random.below(3 * kBlockBytes));
    for (uint8_t& byte : group.encoded_exponent) byte = static_cast<uint8_t>(random.next());
    const uint64_t n_blocks = n_code_blocks(group.encoded_exponent.size());
    group.gaps.resize(n_blocks * kGapBytesPerBlock);
    for (uint8_t& byte : group.gaps) byte = static_cast<uint8_t>(random.next());
    std::vector<uint32_t> positions = {0};
    for (uint64_t i = 0; i < n_blocks; ++i) {
      positions.push_back(positions.back() + static_cast<uint32_t>(random.below(40'000)));
    }
    group.output_positions.resize(4 * positions.size());
    for (size_t i = 0; i < positions.size(); ++i)
      store_le32(&group.output_positions[4 * i], positions[i]);
    group.sign_mantissa.resize(positions.back());
    check_as_upstream(group, 1 + random.below(4), static_cast<uint8_t>(random.next()));
  }
}

// Decoding goes on beyond a block, and must not count what it finds there: a block that claims the
// next one's first weights is refused even if that one's gap makes room for them.
TEST(Corruption, WeightsOfTheNextBlockAreRefused) {
  const GroupTensors good = encoded(input_named("normal"));
  const LookupTables luts = *LookupTables::parse(good.luts, good.luts.size() / kLutRowBytes);
  const std::vector<uint32_t> positions = positions_of(good);
  ASSERT_GT(positions.size(), 10u);
  for (size_t block = 1; block + 1 < positions.size(); ++block) {
    SCOPED_TRACE(block);
    const uint32_t gap = load_gap(good.gaps.data(), block * kWindowsPerBlock);
    const uint64_t bits = load_be64(&good.encoded_exponent[block * kBlockBytes]) << gap;
    const auto length =
        static_cast<uint32_t>(luts.walk(static_cast<uint32_t>(bits >> 32)).length_bits);
    if (gap + length > 31) continue;
    GroupTensors bad = good;
    store_le32(&bad.output_positions[4 * block], positions[block] + 1);
    store_gap(bad.gaps, block * kWindowsPerBlock, gap + length);
    for (const size_t blocks_per_run : {size_t{1}, size_t{100}}) {
      EXPECT_TRUE(failed_with(
          decode_group(bad, blocks_per_run), ErrorCode::corrupt_stream,
          "block " + std::to_string(block - 1) + ": the code stream has no code at bit"));
    }
  }
}

TEST(Corruption, MessageNamesTheBlock) {
  GroupTensors bad = encoded(input_named("normal"));
  store_gap(bad.gaps, 3 * kWindowsPerBlock + 17,
            load_gap(bad.gaps.data(), 3 * kWindowsPerBlock + 17) ^ 1);
  EXPECT_TRUE(failed_with(decode_group(bad, 2), ErrorCode::corrupt_stream,
                          "block 3: the gap of window 17"));
}

}  // namespace
}  // namespace df11::test
