#include "compressor/codebook.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

namespace df11 {

namespace {

// Symbols in code-tree order (0-branch first), as the construction leaves them: exponents 0..255
// and the end-of-stream symbol, which sorts before all of them.
constexpr int kEndOfStream = -1;

struct CodedSymbol {
  int symbol;
  Code code;
};
using CodeTree = std::vector<CodedSymbol>;

// Spec section 11.1: a heap ordered by frequency, then by a node's first symbol; the smaller node
// becomes the 0-branch. First symbols are distinct, so the order is total and no heap detail shows.
// Depths can exceed 32 here; `length_bits` tells, `bits` is then meaningless.
CodeTree huffman_tree(const Histogram& histogram) {
  struct Node {
    uint64_t frequency;
    int first_symbol;
    int left, right;  // indices, -1 for a leaf
  };
  std::vector<Node> nodes;
  const auto later = [&](int a, int b) {
    return std::pair(nodes[a].frequency, nodes[a].first_symbol) >
           std::pair(nodes[b].frequency, nodes[b].first_symbol);
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> heap(later);
  const auto add = [&](Node node) {
    nodes.push_back(node);
    heap.push(static_cast<int>(nodes.size()) - 1);
  };
  nodes.reserve(2 * 257);
  add({1, kEndOfStream, -1, -1});
  for (int symbol = 0; symbol < 256; ++symbol) {
    if (histogram[symbol] != 0) add({histogram[symbol], symbol, -1, -1});
  }
  while (heap.size() > 1) {
    const int left = heap.top();
    heap.pop();
    const int right = heap.top();
    heap.pop();
    add({nodes[left].frequency + nodes[right].frequency, nodes[left].first_symbol, left, right});
  }

  CodeTree tree;
  struct Visit {
    int node;
    Code code;
  };
  std::vector<Visit> stack = {{heap.top(), {}}};
  while (!stack.empty()) {
    const auto [index, code] = stack.back();
    stack.pop_back();
    const Node& node = nodes[index];
    if (node.left < 0) {
      tree.push_back({node.first_symbol, code});
      continue;
    }
    const uint8_t length = static_cast<uint8_t>(code.length_bits + 1);
    stack.push_back({node.right, {code.bits << 1 | 1, length}});
    stack.push_back({node.left, {code.bits << 1, length}});
  }
  return tree;
}

int longest(const CodeTree& tree) {
  int bits = 0;
  for (const CodedSymbol& coded : tree) bits = std::max<int>(bits, coded.code.length_bits);
  return bits;
}

// Spec section 11.2: while a code is longer than 32 bits, set the k smallest counts to 1, for k =
// 2, 3, …; of equal counts at the boundary the lower exponents (upstream leaves those to NumPy's
// argpartition).
CodeTree huffman_tree_within_32_bits(const Histogram& histogram, CodeRule& rule) {
  CodeTree tree = huffman_tree(histogram);
  if (longest(tree) <= kMaxCodeLength) return tree;
  rule = CodeRule::kRaisedCounts;
  std::vector<int> by_count;
  for (int symbol = 0; symbol < 256; ++symbol) {
    if (histogram[symbol] != 0) by_count.push_back(symbol);
  }
  std::stable_sort(by_count.begin(), by_count.end(),
                   [&](int a, int b) { return histogram[a] < histogram[b]; });
  Histogram flattened = histogram;
  flattened[by_count[0]] = 1;
  for (size_t k = 1; longest(tree) > kMaxCodeLength; ++k) {
    flattened[by_count[k]] = 1;
    tree = huffman_tree(flattened);
  }
  return tree;
}

// Optimal code lengths of at most `limit` bits (package-merge; Larmore and Hirschberg 1990), then
// canonical codes in order of length and symbol. The end-of-stream symbol counts 1.
CodeTree length_limited_tree(const Histogram& histogram, int limit) {
  struct Package {
    uint64_t weight;
    std::vector<int> leaves;  // indices into `tree`
  };
  CodeTree tree = {{kEndOfStream, {}}};
  std::vector<uint64_t> weights = {1};
  for (int symbol = 0; symbol < 256; ++symbol) {
    if (histogram[symbol] == 0) continue;
    tree.push_back({symbol, {}});
    weights.push_back(histogram[symbol]);
  }
  std::vector<Package> leaves;
  for (size_t i = 0; i < tree.size(); ++i) leaves.push_back({weights[i], {static_cast<int>(i)}});
  const auto lighter = [](const Package& a, const Package& b) { return a.weight < b.weight; };
  std::stable_sort(leaves.begin(), leaves.end(), lighter);

  std::vector<Package> row = leaves;
  for (int level = 1; level < limit; ++level) {
    std::vector<Package> packages;
    for (size_t i = 0; i + 1 < row.size(); i += 2) {
      Package merged = row[i];
      merged.weight += row[i + 1].weight;
      merged.leaves.insert(merged.leaves.end(), row[i + 1].leaves.begin(), row[i + 1].leaves.end());
      packages.push_back(std::move(merged));
    }
    row.clear();
    std::merge(leaves.begin(), leaves.end(), packages.begin(), packages.end(),
               std::back_inserter(row), lighter);
  }
  for (size_t i = 0; i < 2 * tree.size() - 2; ++i) {
    for (const int leaf : row[i].leaves) ++tree[leaf].code.length_bits;
  }

  std::stable_sort(tree.begin(), tree.end(), [](const CodedSymbol& a, const CodedSymbol& b) {
    return std::pair(a.code.length_bits, a.symbol) < std::pair(b.code.length_bits, b.symbol);
  });
  uint64_t next = 0;
  for (size_t i = 0; i < tree.size(); ++i) {
    Code& code = tree[i].code;
    if (i != 0) next = (next + 1) << (code.length_bits - tree[i - 1].code.length_bits);
    code.bits = static_cast<uint32_t>(next);
  }
  return tree;
}

uint32_t leading_bits(Code code, int n_bits) {
  return code.bits >> (code.length_bits - n_bits);
}

// The prefixes of whole bytes under which codes go on, shortest first, then in tree order; the
// empty one is row 0 (spec section 11.3). Only the deepest prefix of each code is looked at: a
// shorter one always belongs to some other code too.
struct Prefix {
  uint32_t bits;
  int length_bits;
  friend bool operator==(const Prefix&, const Prefix&) = default;
};

std::vector<Prefix> lut_prefixes(const CodeTree& tree) {
  std::vector<Prefix> prefixes = {{0, 0}};
  for (const CodedSymbol& coded : tree) {
    if (coded.symbol == kEndOfStream) continue;
    const int length = (coded.code.length_bits - 1) / 8 * 8;
    const Prefix prefix = {length == 0 ? 0 : leading_bits(coded.code, length), length};
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) {
      prefixes.push_back(prefix);
    }
  }
  std::stable_sort(prefixes.begin(), prefixes.end(),
                   [](const Prefix& a, const Prefix& b) { return a.length_bits < b.length_bits; });
  return prefixes;
}

using LutRow = std::array<std::optional<uint8_t>, kLutRowBytes>;

// The entries of one row that codes define: a code that ends in this row at its first slot, a
// longer one as a link.
LutRow defined_entries(const CodeTree& tree, const std::vector<Prefix>& prefixes,
                       Prefix row_prefix) {
  LutRow row;
  for (const auto& [symbol, code] : tree) {
    if (symbol == kEndOfStream || code.length_bits <= row_prefix.length_bits) continue;
    if (row_prefix.length_bits > 0 &&
        leading_bits(code, row_prefix.length_bits) != row_prefix.bits) {
      continue;
    }
    const int rest_bits = code.length_bits - row_prefix.length_bits;
    if (rest_bits <= 8) {
      row[code.bits << (8 - rest_bits) & 0xff] = static_cast<uint8_t>(symbol);
    } else {
      const int link_bits = row_prefix.length_bits + 8;
      const Prefix target = {leading_bits(code, link_bits), link_bits};
      const auto index = std::find(prefixes.begin(), prefixes.end(), target) - prefixes.begin();
      row[target.bits & 0xff] = static_cast<uint8_t>(256 - index);
    }
  }
  return row;
}

// Spec section 11.3: a slot without an entry repeats the one before it, across the start of a row
// too. That fills a code's slots, and gives every slot that no code reaches something. Upstream
// fails when the very first slot is empty (one symbol, say); we start with the first entry there
// is.
//
// With `carry_links` false only symbols are repeated, so that no unreached slot starts a chain of
// links.
std::vector<uint8_t> fill_rows(const std::vector<LutRow>& rows, bool carry_links) {
  const auto carried = [&](std::optional<uint8_t> entry) {
    return entry && (carry_links || *entry < kFirstLink);
  };
  uint8_t current = 0;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto first = std::find_if(row->begin(), row->end(), carried);
    if (first != row->end()) current = **first;
  }
  std::vector<uint8_t> bytes;
  for (const LutRow& row : rows) {
    for (const std::optional<uint8_t>& entry : row) {
      if (carried(entry)) current = *entry;
      bytes.push_back(entry.value_or(current));
    }
  }
  return bytes;
}

// Spec sections 11.3 and 11.5: upstream's filling, unless it would let upstream's kernel spin.
LookupTables make_luts(const CodeTree& tree, const std::vector<Prefix>& prefixes) {
  std::vector<LutRow> rows;
  rows.reserve(prefixes.size());
  for (const Prefix& prefix : prefixes) rows.push_back(defined_entries(tree, prefixes, prefix));
  const auto fill = [&](bool carry_links) {
    std::vector<uint8_t> bytes = fill_rows(rows, carry_links);
    const size_t lengths = bytes.size();
    bytes.resize(lengths + kLutRowBytes, 0);
    for (const auto& [symbol, code] : tree) {
      if (symbol != kEndOfStream) bytes[lengths + symbol] = code.length_bits;
    }
    return *LookupTables::parse(bytes, rows.size() + 1);
  };
  LookupTables luts = fill(true);
  return luts.always_progresses() ? luts : fill(false);
}

}  // namespace

uint64_t Codebook::code_bits(const Histogram& histogram) const {
  uint64_t bits = 0;
  for (size_t i = 0; i < codes.size(); ++i) bits += histogram[i] * codes[i].length_bits;
  return bits;
}

double entropy_bits(const Histogram& histogram) {
  const double total =
      static_cast<double>(std::accumulate(histogram.begin(), histogram.end(), uint64_t{0}));
  double bits = 0;
  for (const uint64_t count : histogram) {
    if (count != 0)
      bits -= static_cast<double>(count) / total * std::log2(static_cast<double>(count) / total);
  }
  return bits;
}

Result<Codebook> build_codebook(const Histogram& histogram) {
  const auto occurs = [](uint64_t count) { return count != 0; };
  if (std::none_of(histogram.begin(), histogram.end(), occurs)) {
    return fail(ErrorCode::invalid_argument, "no weights to build a code for");
  }
  if (std::any_of(histogram.begin() + kFirstLink, histogram.end(), occurs)) {
    return fail(ErrorCode::unsupported, "exponents of 240 and more cannot be coded");
  }

  Codebook book;
  CodeTree tree = huffman_tree_within_32_bits(histogram, book.rule);
  std::vector<Prefix> prefixes = lut_prefixes(tree);
  // Spec section 11.4. A limit of 8 bits needs no link row, so the loop ends.
  for (int limit = std::min(longest(tree), kMaxCodeLength) - 1; prefixes.size() > 1 + kMaxLinkRows;
       --limit) {
    book.rule = CodeRule::kLengthLimited;
    tree = length_limited_tree(histogram, limit);
    prefixes = lut_prefixes(tree);
  }

  book.luts = make_luts(tree, prefixes);
  for (const auto& [symbol, code] : tree) {
    (symbol == kEndOfStream ? book.end_of_stream : book.codes[symbol]) = code;
  }
  return book;
}

}  // namespace df11
