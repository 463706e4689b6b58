// The length-limited code (over 16 link rows) is optimal for its limit. The oracle is a dynamic
// program over the levels of the code tree, itself checked by brute force on small alphabets.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "compressor/codebook.h"
#include "support/histograms.h"
#include "support/random.h"
#include "support/reference_encoder.h"

namespace df11::test {
namespace {

constexpr uint64_t kImpossible = std::numeric_limits<uint64_t>::max() / 4;

// Least total length of a prefix code for `weights` with codes of at most `limit` bits.
//
// Descending through the tree: at each level `open` nodes are free and the `placed` heaviest
// weights have leaves. Either a leaf takes a node, or all open nodes split, which costs every
// weight that is not placed yet one bit.
uint64_t limited_total_bits(std::vector<uint64_t> weights, int limit) {
  std::sort(weights.rbegin(), weights.rend());
  const size_t n = weights.size();
  std::vector<uint64_t> unplaced(n + 1, 0);
  for (size_t i = n; i-- > 0;) unplaced[i] = unplaced[i + 1] + weights[i];
  // cost[placed][open] from `level` on; open is never worth more than n.
  std::vector<std::vector<uint64_t>> below(n + 1, std::vector<uint64_t>(n + 1, kImpossible));
  std::fill(below[n].begin(), below[n].end(), 0);
  for (int level = limit; level >= 0; --level) {
    std::vector<std::vector<uint64_t>> cost(n + 1, std::vector<uint64_t>(n + 1, kImpossible));
    for (size_t placed = n + 1; placed-- > 0;) {
      for (size_t open = 0; open <= n; ++open) {
        if (placed == n) {
          cost[placed][open] = 0;
          continue;
        }
        uint64_t best = kImpossible;
        if (open > 0) best = cost[placed + 1][open - 1];
        if (level < limit && open > 0) {
          const uint64_t split = below[placed][std::min(2 * open, n)];
          if (split < kImpossible) best = std::min(best, split + unplaced[placed]);
        }
        cost[placed][open] = best;
      }
    }
    below = std::move(cost);
  }
  return below[0][1];
}

// All length assignments with a Kraft sum of at most 1.
uint64_t brute_force_total_bits(const std::vector<uint64_t>& weights, int limit) {
  uint64_t best = kImpossible;
  const auto search = [&](auto&& self, size_t i, uint64_t kraft_left, uint64_t total) -> void {
    if (i == weights.size()) {
      best = std::min(best, total);
      return;
    }
    for (int length = 1; length <= limit; ++length) {
      const uint64_t used = uint64_t{1} << (limit - length);
      if (used <= kraft_left) self(self, i + 1, kraft_left - used, total + weights[i] * length);
    }
  };
  search(search, 0, uint64_t{1} << limit, 0);
  return best;
}

TEST(LengthLimit, OracleEqualsBruteForceOnSmallAlphabets) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const size_t n = 2 + random.below(5);
    std::vector<uint64_t> weights(n);
    for (uint64_t& weight : weights) weight = 1 + random.below(random.below(2) == 0 ? 4 : 1000);
    for (int limit = 3; limit <= 6; ++limit) {
      ASSERT_EQ(limited_total_bits(weights, limit), brute_force_total_bits(weights, limit));
    }
  }
}

TEST(LengthLimit, OracleRefusesTooManyForTheLimit) {
  EXPECT_EQ(limited_total_bits({1, 1, 1, 1}, 2), 8u);
  EXPECT_EQ(limited_total_bits({1, 1, 1, 1, 1}, 2), kImpossible);
}

TEST(LengthLimit, CodeIsOptimalForItsLongestCode) {
  std::map<int, int> seen_limits;
  for (const NamedHistogram& histogram : named_histograms(160)) {
    const Codebook book = *build_codebook(histogram.counts);
    if (book.rule != CodeRule::kLengthLimited) continue;
    SCOPED_TRACE(histogram.name);
    std::vector<uint64_t> weights = {1};
    for (const uint64_t count : histogram.counts) {
      if (count != 0) weights.push_back(count);
    }
    const int longest =
        std::max<int>(book.luts.longest_code_bits(), book.end_of_stream.length_bits);
    ++seen_limits[longest];
    EXPECT_EQ(book.code_bits(histogram.counts) + book.end_of_stream.length_bits,
              limited_total_bits(weights, longest));
    // The rule is a last resort, and a shorter limit than needed would cost bits for nothing.
    EXPECT_GT(reference_prefixes(reference_code(histogram.counts)).size(), 17u);
    EXPECT_GE(longest, 8);
  }
  EXPECT_GT(seen_limits.size(), 1u) << "more than one limit must come up";
}

}  // namespace
}  // namespace df11::test
