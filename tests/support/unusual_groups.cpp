#include "support/unusual_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/random.h"
#include "support/reference_encoder.h"

namespace df11::test {

namespace {

using Codes = std::vector<std::string>;

// Splitting a code of 8, 16 or 24 bits takes a link row.
bool takes_a_row(const std::string& code) {
  return !code.empty() && code.size() % 8 == 0;
}

// The leaves of a random tree: of any shape, of one long branch, or of many link rows.
Codes complete_code(Random& random, size_t n_codes) {
  const uint64_t shape = random.below(4);
  Codes codes = {""};
  size_t n_rows = 0;
  for (int tries = 0; codes.size() < n_codes && tries < 4000; ++tries) {
    auto chosen = codes.begin() + static_cast<ptrdiff_t>(random.below(codes.size()));
    if (shape == 1 || (shape == 2 && tries % 2 == 0)) {
      chosen = std::max_element(codes.begin(), codes.end(),
                                [](const auto& a, const auto& b) { return a.size() < b.size(); });
    } else if (shape == 3 && tries % 2 == 0) {
      const auto row = std::find_if(codes.begin(), codes.end(), takes_a_row);
      if (row != codes.end()) chosen = row;
    }
    if (chosen->size() == kMaxCodeLength || (takes_a_row(*chosen) && n_rows == kMaxLinkRows)) {
      continue;
    }
    n_rows += takes_a_row(*chosen);
    const std::string code = *chosen;
    *chosen = code + "0";
    codes.push_back(code + "1");
  }
  return codes;
}

// Of some codes, only a part.
void drop_codes(Random& random, Codes& codes) {
  random.shuffle(codes);
  codes.resize(1 + random.below(codes.size()));
}

// The prefixes that have a row, the empty one first, the others in any order.
Codes rows_of(Random& random, const Codes& codes) {
  std::set<std::string> prefixes;
  for (const std::string& code : codes) {
    for (size_t n = 8; n < code.size(); n += 8) prefixes.insert(code.substr(0, n));
  }
  Codes rows(prefixes.begin(), prefixes.end());
  random.shuffle(rows);
  rows.insert(rows.begin(), "");
  return rows;
}

std::vector<uint8_t> luts_of(Random& random, const ReferenceCode& code, const Codes& rows) {
  const bool random_slots = random.below(2) == 0;
  const size_t n_unused_rows =
      random.below(4) == 0 ? random.below(kMaxLinkRows + 2 - rows.size()) : 0;
  std::vector<uint8_t> luts((rows.size() + n_unused_rows) * kLutRowBytes, 0);
  for (uint8_t& slot : luts) slot = random_slots ? static_cast<uint8_t>(random.next()) : 0;
  std::vector<uint8_t> lengths(kLutRowBytes, 0);
  const auto row_of = [&](const std::string& prefix) {
    return static_cast<size_t>(std::find(rows.begin(), rows.end(), prefix) - rows.begin());
  };
  for (const int symbol : code.order) {
    const std::string& bits = code.bits(symbol);
    lengths[static_cast<size_t>(symbol)] = static_cast<uint8_t>(bits.size());
    for (size_t begin = 0; begin < bits.size(); begin += 8) {
      uint8_t* const row = &luts[row_of(bits.substr(0, begin)) * kLutRowBytes];
      const std::string part = bits.substr(begin, 8);
      const size_t first = std::stoul(part, nullptr, 2) << (8 - part.size());
      if (begin + 8 < bits.size()) {
        row[first] = static_cast<uint8_t>(256 - row_of(bits.substr(0, begin + 8)));
      } else {
        std::fill_n(row + first, size_t{1} << (8 - part.size()), static_cast<uint8_t>(symbol));
      }
    }
  }
  luts.insert(luts.end(), lengths.begin(), lengths.end());
  return luts;
}

// Picks symbols: as often as their codes are short, all equally often, or one nearly always.
class SymbolSource {
 public:
  SymbolSource(Random& random, const ReferenceCode& code) : random_(random) {
    const uint64_t kind = random.below(3);
    for (const int symbol : code.order) {
      const double frequency = kind == 0 ? std::exp2(-static_cast<double>(code.bits(symbol).size()))
                               : kind == 1     ? 1.0
                               : sums_.empty() ? 50.0 * static_cast<double>(code.order.size())
                                               : 1.0;
      sums_.push_back((sums_.empty() ? 0 : sums_.back()) + frequency);
      symbols_.push_back(symbol);
    }
  }
  int next() {
    const double at = random_.uniform() * sums_.back();
    const auto found = std::lower_bound(sums_.begin(), sums_.end(), at);
    return symbols_[std::min(static_cast<size_t>(found - sums_.begin()), symbols_.size() - 1)];
  }

 private:
  Random& random_;
  std::vector<double> sums_;
  std::vector<int> symbols_;
};

uint64_t wanted_bits(Random& random, uint64_t most_bits) {
  switch (most_bits < 4 * kBlockBits ? 3 : random.below(4)) {
    case 0: return 1 + random.below(300);
    case 1: return kBlockBits - 40 + random.below(60);
    case 2: return 2 * kBlockBits - 40 + random.below(60);
    default: return 1 + random.below(most_bits);
  }
}

enum class End { kAnywhere, kOnByte, kInTailBlock };

// Symbols of about `n_bits`, and then more until the end is of the wanted kind, if it can be.
std::vector<int> symbols_of(Random& random, const ReferenceCode& code, uint64_t n_bits, End end) {
  SymbolSource source(random, code);
  std::vector<int> symbols;
  uint64_t at = 0;
  const auto add = [&](int symbol) {
    symbols.push_back(symbol);
    at += code.bits(symbol).size();
  };
  while (at < n_bits) add(source.next());
  for (int tries = 0; end == End::kOnByte && at % 8 != 0 && tries < 100; ++tries)
    add(source.next());
  if (end != End::kInTailBlock) return symbols;
  while (kBlockBits - at % kBlockBits > kMaxCodeLength) add(source.next());
  for (uint64_t block = at / kBlockBits; at / kBlockBits == block;) {
    const auto ends_there_on_a_byte = [&](int symbol) {
      const uint64_t next = at + code.bits(symbol).size();
      return next > (block + 1) * kBlockBits && next % 8 == 0;
    };
    const auto last = std::find_if(code.order.begin(), code.order.end(), ends_there_on_a_byte);
    add(last != code.order.end() ? *last : source.next());
  }
  return symbols;
}

std::vector<std::vector<uint16_t>> cut(Random& random, const std::vector<uint16_t>& words) {
  std::vector<size_t> cuts = {0, words.size()};
  if (random.below(3) == 0) {
    for (uint64_t i = random.below(5); i > 0; --i) cuts.push_back(random.below(words.size() + 1));
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::vector<uint16_t>> members;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    members.emplace_back(words.begin() + static_cast<ptrdiff_t>(cuts[i]),
                         words.begin() + static_cast<ptrdiff_t>(cuts[i + 1]));
  }
  return members;
}

}  // namespace

UnusualGroup unusual_group(uint64_t seed, uint64_t most_bits) {
  Random random(seed);
  UnusualGroup group;
  const uint64_t most_codes = random.below(3) == 0 ? kFirstLink : 40;
  Codes codes = complete_code(random, 2 + random.below(most_codes - 1));
  group.is_complete = random.below(2) == 0;
  if (!group.is_complete) drop_codes(random, codes);

  std::vector<int> exponents(kFirstLink);
  for (size_t i = 0; i < exponents.size(); ++i) exponents[i] = static_cast<int>(i);
  random.shuffle(exponents);
  ReferenceCode code;
  for (size_t i = 0; i < codes.size(); ++i) {
    code.order.push_back(exponents[i]);
    code.codes[exponents[i]] = codes[i];
  }
  const Codes rows = rows_of(random, codes);
  group.n_codes = codes.size();
  group.longest_code_bits = code.longest_bits();
  group.n_link_rows = rows.size() - 1;

  const End end = static_cast<End>(random.below(3));
  for (const int symbol : symbols_of(random, code, wanted_bits(random, most_bits), end)) {
    group.words.push_back(
        bf16_join(static_cast<uint8_t>(symbol), static_cast<uint8_t>(random.next())));
  }
  group.members = cut(random, group.words);
  std::vector<uint8_t> luts = luts_of(random, code, rows);
  for (size_t i = random.below(8); i > 0; --i) {
    code.codes[kReferenceEndOfStream] += random.below(2) == 0 ? '0' : '1';  // padding is anything
  }
  code.codes.try_emplace(kReferenceEndOfStream);
  group.tensors = reference_encode(group.members, code);
  group.tensors.luts = std::move(luts);

  uint64_t n_bits = 0;
  for (const uint16_t word : group.words) n_bits += code.bits(bf16_exponent(word)).size();
  const uint64_t last_code_begin = n_bits - code.bits(bf16_exponent(group.words.back())).size();
  const uint64_t n_blocks = n_code_blocks(group.tensors.encoded_exponent.size());
  group.has_tail_block = last_code_begin / kBlockBits + 1 < n_blocks;
  if (group.has_tail_block && n_bits % 8 == 0 && random.below(2) == 0) {
    group.tensors.output_positions.resize(4 * n_blocks);
    group.last_position_is_missing = true;
  }
  return group;
}

}  // namespace df11::test
