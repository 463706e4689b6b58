#include "compressor/codebook.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <queue>

#include "format/df11_layout.h"
#include "support/histograms.h"
#include "support/reference_encoder.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

constexpr size_t kRandomHistograms = 1200;

// Sum of 2^(32 - length) over all codes, end of stream included: 2^32 for a complete code.
uint64_t kraft_sum(const Codebook& book) {
  uint64_t sum = uint64_t{1} << (32 - book.end_of_stream.length_bits);
  for (const Code& code : book.codes) {
    if (code.length_bits != 0) sum += uint64_t{1} << (32 - code.length_bits);
  }
  return sum;
}

// Textbook Huffman: the sum of the weights of all inner nodes is the least possible total length.
uint64_t textbook_total_bits(const Histogram& counts) {
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> weights;
  weights.push(1);
  for (const uint64_t count : counts) {
    if (count != 0) weights.push(count);
  }
  uint64_t total = 0;
  while (weights.size() > 1) {
    const uint64_t a = weights.top();
    weights.pop();
    const uint64_t b = weights.top();
    weights.pop();
    total += a + b;
    weights.push(a + b);
  }
  return total;
}

void expect_valid(const Codebook& book, const Histogram& counts) {
  EXPECT_GE(book.end_of_stream.length_bits, 1);
  EXPECT_LE(book.luts.n_link_rows(), kMaxLinkRows);
  EXPECT_EQ(kraft_sum(book), uint64_t{1} << 32);
  EXPECT_TRUE(book.luts.always_progresses());
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    const Code code = book.codes[exponent];
    ASSERT_EQ(code.length_bits != 0, counts[exponent] != 0) << exponent;
    ASSERT_EQ(book.luts.length_bits(exponent), code.length_bits) << exponent;
    if (code.length_bits == 0) continue;
    ASSERT_LE(code.length_bits, kMaxCodeLength);
    ASSERT_EQ(uint64_t{code.bits} >> code.length_bits, 0u);
    // Whatever follows the code: zeros, ones, and a mixture.
    const uint32_t at_top = code.bits << (32 - code.length_bits);
    const uint32_t rest = code.length_bits == 32 ? 0 : 0xffffffffu >> code.length_bits;
    for (const uint32_t following : {0u, rest, rest & 0x55555555u, rest & 0xaaaaaaaau}) {
      const DecodedSymbol symbol = book.luts.walk(at_top | following);
      ASSERT_EQ(symbol.exponent, exponent);
      ASSERT_EQ(symbol.length_bits, code.length_bits);
    }
  }
}

TEST(Codebook, IsACompletePrefixCodeThatItsTablesDecode) {
  for (const NamedHistogram& histogram : named_histograms(kRandomHistograms)) {
    SCOPED_TRACE(histogram.name);
    const Result<Codebook> book = build_codebook(histogram.counts);
    ASSERT_TRUE(succeeded(book));
    expect_valid(*book, histogram.counts);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Codebook, IsOptimalUnlessItsRuleSaysOtherwise) {
  size_t n_huffman = 0, n_raised = 0, n_limited = 0;
  for (const NamedHistogram& histogram : named_histograms(kRandomHistograms)) {
    SCOPED_TRACE(histogram.name);
    const Codebook book = *build_codebook(histogram.counts);
    const uint64_t total = book.code_bits(histogram.counts) + book.end_of_stream.length_bits;
    if (book.rule == CodeRule::kHuffman) {
      EXPECT_EQ(total, textbook_total_bits(histogram.counts));
      ++n_huffman;
    } else {
      EXPECT_GE(total, textbook_total_bits(histogram.counts));
      ++(book.rule == CodeRule::kRaisedCounts ? n_raised : n_limited);
    }
  }
  // The histograms have to reach every rule.
  EXPECT_GT(n_huffman, 500u);
  EXPECT_GT(n_raised, 50u);
  EXPECT_GT(n_limited, 50u);
}

TEST(Codebook, EqualsTheNaiveTranscriptionOfUpstreamsRules) {
  for (const NamedHistogram& histogram : named_histograms(kRandomHistograms)) {
    SCOPED_TRACE(histogram.name);
    const Codebook book = *build_codebook(histogram.counts);
    const ReferenceCode reference = reference_code(histogram.counts);
    const bool fits = reference_prefixes(reference).size() <= 1 + kMaxLinkRows;
    ASSERT_EQ(book.rule == CodeRule::kLengthLimited, !fits);
    if (!fits) continue;
    ASSERT_EQ(book.rule == CodeRule::kRaisedCounts,
              reference_huffman(histogram.counts).longest_bits() > 32);
    ASSERT_EQ(code_of(book).codes, reference.codes);
    const std::vector<uint8_t> carried = reference_luts(reference, true);
    const LookupTables tables = *LookupTables::parse(carried, carried.size() / 256);
    const std::vector<uint8_t> luts(book.luts.bytes().begin(), book.luts.bytes().end());
    ASSERT_EQ(luts, tables.always_progresses() ? carried : reference_luts(reference, false));
  }
}

TEST(Codebook, TablesFollowTheCodesUnderEveryRule) {
  for (const NamedHistogram& histogram : named_histograms(kRandomHistograms)) {
    SCOPED_TRACE(histogram.name);
    const Codebook book = *build_codebook(histogram.counts);
    const std::vector<uint8_t> luts(book.luts.bytes().begin(), book.luts.bytes().end());
    const ReferenceCode code = code_of(book);
    ASSERT_TRUE(luts == reference_luts(code, true) || luts == reference_luts(code, false));
  }
}

TEST(Codebook, DependsOnCountsOnly) {
  const Histogram counts = named_histograms(1).back().counts;
  const Codebook a = *build_codebook(counts), b = *build_codebook(counts);
  EXPECT_EQ(code_of(a).codes, code_of(b).codes);
}

TEST(Codebook, RefusesWhatCannotBeCoded) {
  EXPECT_TRUE(failed_with(build_codebook(Histogram{}), ErrorCode::invalid_argument));
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    Histogram counts{};
    counts[100] = 10;
    counts[exponent] += 1;
    if (exponent < 240) {
      EXPECT_TRUE(succeeded(build_codebook(counts))) << exponent;
    } else {
      EXPECT_TRUE(failed_with(build_codebook(counts), ErrorCode::unsupported, "240")) << exponent;
    }
  }
}

TEST(Codebook, KnownSmallCodes) {
  // Two exponents once each and the end of stream, which sorts first: EOS and 10 share a node of 2,
  // which is heavier than 20's 1: 0 is 20, 10 the end of stream, 11 is 10.
  Histogram counts{};
  counts[10] = counts[20] = 1;
  const Codebook book = *build_codebook(counts);
  EXPECT_EQ(code_of(book).bits(20), "0");
  EXPECT_EQ(code_of(book).bits(kReferenceEndOfStream), "10");
  EXPECT_EQ(code_of(book).bits(10), "11");
  EXPECT_EQ(book.code_bits(counts), 3u);
  // A single exponent needs one bit.
  counts[20] = 0;
  const Codebook single = *build_codebook(counts);
  EXPECT_EQ(code_of(single).bits(10), "1");
  EXPECT_EQ(single.luts.walk(0xffffffff).exponent, 10);
}

TEST(Entropy, OfKnownDistributions) {
  Histogram counts{};
  EXPECT_EQ(entropy_bits(counts), 0);
  counts[3] = 17;
  EXPECT_EQ(entropy_bits(counts), 0);
  counts[4] = 17;
  EXPECT_DOUBLE_EQ(entropy_bits(counts), 1);
  counts[5] = 34;
  EXPECT_DOUBLE_EQ(entropy_bits(counts), 1.5);
  // Huffman lies within one bit above entropy (with the end-of-stream symbol, asymptotically).
  for (const NamedHistogram& histogram : named_histograms(200)) {
    const Codebook book = *build_codebook(histogram.counts);
    double total = 0;
    for (const uint64_t count : histogram.counts) total += static_cast<double>(count);
    EXPECT_GE(static_cast<double>(book.code_bits(histogram.counts)) / total + 1e-9,
              entropy_bits(histogram.counts));
  }
}

}  // namespace
}  // namespace df11::test
