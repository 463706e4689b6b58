// Reads the numbers of spec/df11_format.md and checks them against the code, so that the document
// cannot drift: the limits of section 9 and the worked examples of section 13.
//
// The document holds them in fenced blocks that begin with "```example NAME".
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "compressor/codebook.h"
#include "compressor/group_encoder.h"
#include "format/df11_layout.h"
#include "support/group_decoding.h"
#include "support/reference_decoder.h"
#include "support/reference_encoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

using Lines = std::vector<std::string>;

std::map<std::string, Lines> read_examples() {
  const std::string path = std::string(DF11_SPEC_DIR) + "/df11_format.md";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string fence = "```", begin = "```example ";
  std::map<std::string, Lines> examples;
  Lines* open = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (open != nullptr && line == fence) {
      open = nullptr;
    } else if (open != nullptr) {
      open->push_back(line);
    } else if (line.starts_with(begin)) {
      const auto [example, is_new] = examples.try_emplace(line.substr(begin.size()));
      if (!is_new) throw std::runtime_error("two blocks " + example->first);
      open = &example->second;
    }
  }
  if (open != nullptr) throw std::runtime_error("a block does not end");
  return examples;
}

const Lines& example(const std::string& name) {
  static const std::map<std::string, Lines> examples = read_examples();
  const auto found = examples.find(name);
  if (found == examples.end()) throw std::runtime_error("no block " + name);
  return found->second;
}

std::vector<std::string> fields(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string field; stream >> field;) result.push_back(field);
  return result;
}

std::vector<std::string> all_fields(const std::string& name) {
  std::vector<std::string> result;
  for (const std::string& line : example(name)) {
    for (const std::string& field : fields(line)) result.push_back(field);
  }
  return result;
}

// "00 c0 00 * 318": hex bytes, "xx * n" for n bytes of value xx.
std::vector<uint8_t> bytes_of(const std::string& name) {
  const std::vector<std::string> text = all_fields(name);
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == "*") {
      bytes.resize(bytes.size() - 1 + std::stoul(text.at(i + 1)), bytes.back());
      ++i;
    } else {
      bytes.push_back(static_cast<uint8_t>(std::stoul(text[i], nullptr, 16)));
    }
  }
  return bytes;
}

// Hex words; an empty line ends a member.
std::vector<std::vector<uint16_t>> members_of(const std::string& name) {
  std::vector<std::vector<uint16_t>> members(1);
  for (const std::string& line : example(name)) {
    if (line.empty()) members.emplace_back();
    for (const std::string& word : fields(line)) {
      members.back().push_back(static_cast<uint16_t>(std::stoul(word, nullptr, 16)));
    }
  }
  return members;
}

// "exponent count" a line.
Histogram counts_of(const std::string& name) {
  Histogram counts{};
  for (const std::string& line : example(name)) {
    counts.at(std::stoul(fields(line).at(0))) = std::stoull(fields(line).at(1));
  }
  return counts;
}

// "exponent code" a line, "end" for the end-of-stream symbol.
std::vector<std::pair<int, std::string>> codes_of(const std::string& name) {
  std::vector<std::pair<int, std::string>> codes;
  for (const std::string& line : example(name)) {
    const std::string symbol = fields(line).at(0);
    codes.emplace_back(symbol == "end" ? kReferenceEndOfStream : std::stoi(symbol),
                       fields(line).at(1));
  }
  return codes;
}

// "row first-last value" a line; every slot of every row exactly once, in order.
std::vector<uint8_t> luts_of(const std::string& name) {
  std::vector<uint8_t> luts;
  for (const std::string& line : example(name)) {
    const std::vector<std::string> parts = fields(line);
    const size_t row = std::stoul(parts.at(0)), dash = parts.at(1).find('-');
    const size_t first = std::stoul(parts[1].substr(0, dash), nullptr, 16);
    const size_t last = std::stoul(parts[1].substr(dash + 1), nullptr, 16);
    if (luts.size() != row * 256 + first)
      throw std::runtime_error(name + ": slots missing before " + line);
    luts.resize(row * 256 + last + 1, static_cast<uint8_t>(std::stoul(parts.at(2))));
  }
  return luts;
}

// Codes in tree order, which for a complete prefix code is the order of their text.
std::vector<std::pair<int, std::string>> codes_of(const Codebook& codebook) {
  const ReferenceCode code = code_of(codebook);
  std::vector<std::pair<int, std::string>> codes;
  for (const int symbol : code.order) codes.emplace_back(symbol, code.bits(symbol));
  return codes;
}

std::vector<uint8_t> bytes_of(const LookupTables& luts) {
  return {luts.bytes().begin(), luts.bytes().end()};
}

std::vector<uint16_t> concatenated(const std::vector<std::vector<uint16_t>>& members) {
  std::vector<uint16_t> words;
  for (const auto& member : members) words.insert(words.end(), member.begin(), member.end());
  return words;
}

GroupTensors group_of_document() {
  return {luts_of("luts"),           bytes_of("encoded_exponent"),
          bytes_of("sign_mantissa"), bytes_of("output_positions"),
          bytes_of("gaps"),          bytes_of("split_positions")};
}

TEST(SpecExample, LimitsAreThoseOfTheCode) {
  std::map<std::string, uint64_t> limits;
  for (const std::string& line : example("limits"))
    limits[fields(line).at(0)] = std::stoull(fields(line).at(1));
  const std::map<std::string, uint64_t> expected = {
      {"window_bytes", kWindowBytes},
      {"block_bytes", kBlockBytes},
      {"gap_bits", kGapBits},
      {"gap_bytes_per_block", kGapBytesPerBlock},
      {"longest_code_bits", kMaxCodeLength},
      {"levels", kMaxLevels},
      {"first_link", kFirstLink},
      {"link_rows", kMaxLinkRows},
      {"group_elements", kMaxGroupElements},
      {"group_code_bytes", kMaxGroupCodeBytes},
      {"upstream_block_elements", kMaxUpstreamBlockElements},
  };
  EXPECT_EQ(limits, expected);
}

TEST(SpecExample, CountsCodesAndTables) {
  const Histogram counts = counts_of("counts");
  EXPECT_EQ(exponent_counts(concatenated(members_of("words"))), counts);
  const Result<Codebook> codebook = build_codebook(counts);
  ASSERT_TRUE(succeeded(codebook));
  EXPECT_EQ(codes_of(*codebook), codes_of("codes"));
  EXPECT_EQ(bytes_of(codebook->luts), luts_of("luts"));
}

TEST(SpecExample, StreamBits) {
  std::map<int, std::string> codes;
  for (const auto& [symbol, bits] : codes_of("codes")) codes[symbol] = bits;
  const std::vector<std::string> written = all_fields("stream_bits");
  const std::vector<uint16_t> words = concatenated(members_of("words"));
  ASSERT_GE(written.size(), words.size());
  std::string stream;
  for (size_t i = 0; i < written.size(); ++i) {
    if (i < words.size()) {
      EXPECT_EQ(written[i], codes.at(bf16_exponent(words[i]))) << "weight " << i;
    }
    stream += written[i];
  }
  std::string from_bytes;
  for (const uint8_t byte : bytes_of("encoded_exponent")) {
    for (int bit = 7; bit >= 0; --bit) from_bytes += (byte >> bit & 1) != 0 ? '1' : '0';
  }
  EXPECT_EQ(stream, from_bytes);
}

TEST(SpecExample, IsWhatTheEncoderWrites) {
  const std::vector<std::vector<uint16_t>> members = members_of("words");
  const std::vector<std::span<const uint16_t>> spans(members.begin(), members.end());
  for (const size_t slice_elements : {size_t{1}, size_t{3}, size_t{1000}}) {
    const Result<GroupTensors> encoded = encode_group(spans, Executor(1), slice_elements);
    ASSERT_TRUE(succeeded(encoded));
    EXPECT_EQ(encoded->luts, luts_of("luts"));
    EXPECT_EQ(encoded->encoded_exponent, bytes_of("encoded_exponent"));
    EXPECT_EQ(encoded->sign_mantissa, bytes_of("sign_mantissa"));
    EXPECT_EQ(encoded->gaps, bytes_of("gaps"));
    EXPECT_EQ(encoded->output_positions, bytes_of("output_positions"));
    EXPECT_EQ(encoded->split_positions, bytes_of("split_positions"));
  }
}

TEST(SpecExample, IsWhatTheDecodersRead) {
  const GroupTensors group = group_of_document();
  const std::vector<uint16_t> words = concatenated(members_of("words"));
  const Result<std::vector<uint16_t>> decoded = decode_group(group, 1);
  ASSERT_TRUE(succeeded(decoded));
  EXPECT_EQ(*decoded, words);
  EXPECT_EQ(reference_decode(group), words);
  EXPECT_EQ(reference_decode_by_windows(group), words);
}

TEST(SpecExample, CarriedLinkIsReplaced) {
  const Result<Codebook> codebook = build_codebook(counts_of("link_counts"));
  ASSERT_TRUE(succeeded(codebook));
  EXPECT_EQ(codes_of(*codebook), codes_of("link_codes"));
  EXPECT_EQ(bytes_of(codebook->luts), luts_of("link_luts"));
  const std::vector<uint8_t> carried = luts_of("link_luts_carried");
  EXPECT_EQ(reference_luts(code_of(*codebook), true), carried);
  const Result<LookupTables> upstream = LookupTables::parse(carried, carried.size() / 256);
  ASSERT_TRUE(succeeded(upstream));
  EXPECT_FALSE(upstream->always_progresses());
  EXPECT_EQ(upstream->walk(0xff000000).length_bits, 0);
}

}  // namespace
}  // namespace df11::test
