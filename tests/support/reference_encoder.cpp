#include "support/reference_encoder.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

#include "format/bf16.h"
#include "format/df11_layout.h"

namespace df11::test {

namespace {

uint8_t byte_of(std::string bits) {
  bits.resize(8, '0');
  return static_cast<uint8_t>(std::stoul(bits, nullptr, 2));
}

std::vector<uint8_t> pack(const std::string& bits) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < bits.size(); i += 8) bytes.push_back(byte_of(bits.substr(i, 8)));
  return bytes;
}

}  // namespace

size_t ReferenceCode::longest_bits() const {
  size_t longest = 0;
  for (const auto& [symbol, bits] : codes) longest = std::max(longest, bits.size());
  return longest;
}

Histogram exponent_counts(std::span<const uint16_t> words) {
  Histogram counts{};
  for (const uint16_t word : words) ++counts[bf16_exponent(word)];
  return counts;
}

ReferenceCode reference_huffman(const Histogram& counts) {
  // A tree is its leaves in order, each with the path taken so far. The set plays the heap: by
  // weight, then by the tree's first symbol, of which -1 (end of stream) is the smallest.
  using Leaves = std::vector<std::pair<int, std::string>>;
  std::set<std::tuple<uint64_t, int, Leaves>> trees;
  trees.insert({1, kReferenceEndOfStream, {{kReferenceEndOfStream, ""}}});
  for (int symbol = 0; symbol < 256; ++symbol) {
    if (counts[symbol] != 0) trees.insert({counts[symbol], symbol, {{symbol, ""}}});
  }
  while (trees.size() > 1) {
    const auto [zero_weight, zero_first, zero] = trees.extract(trees.begin()).value();
    const auto [one_weight, one_first, one] = trees.extract(trees.begin()).value();
    Leaves joined;
    for (const auto& [symbol, path] : zero) joined.push_back({symbol, "0" + path});
    for (const auto& [symbol, path] : one) joined.push_back({symbol, "1" + path});
    trees.insert({zero_weight + one_weight, zero_first, joined});
  }
  ReferenceCode code;
  for (const auto& [symbol, path] : std::get<Leaves>(*trees.begin())) {
    code.order.push_back(symbol);
    code.codes[symbol] = path;
  }
  return code;
}

ReferenceCode reference_code(const Histogram& counts) {
  std::vector<std::pair<uint64_t, int>> ascending;
  for (int symbol = 0; symbol < 256; ++symbol) {
    if (counts[symbol] != 0) ascending.push_back({counts[symbol], symbol});
  }
  std::sort(ascending.begin(), ascending.end());
  ReferenceCode code = reference_huffman(counts);
  for (size_t k = 2; code.longest_bits() > 32; ++k) {
    Histogram raised = counts;
    for (size_t i = 0; i < k; ++i) raised[ascending[i].second] = 1;
    code = reference_huffman(raised);
  }
  return code;
}

ReferenceCode code_of(const Codebook& codebook) {
  std::map<std::string, int> by_text;
  const auto add = [&](int symbol, Code code) {
    std::string text;
    for (int i = code.length_bits - 1; i >= 0; --i) text += (code.bits >> i & 1) != 0 ? '1' : '0';
    if (!text.empty()) by_text[text] = symbol;
  };
  for (int symbol = 0; symbol < 256; ++symbol) add(symbol, codebook.codes[symbol]);
  add(kReferenceEndOfStream, codebook.end_of_stream);
  ReferenceCode code;
  for (const auto& [text, symbol] : by_text) {
    code.order.push_back(symbol);
    code.codes[symbol] = text;
  }
  return code;
}

std::vector<std::string> reference_prefixes(const ReferenceCode& code) {
  std::vector<std::string> prefixes = {""};
  for (const int symbol : code.order) {
    if (symbol == kReferenceEndOfStream) continue;
    const std::string& bits = code.bits(symbol);
    const std::string prefix = bits.substr(0, (bits.size() - 1) / 8 * 8);
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) {
      prefixes.push_back(prefix);
    }
  }
  std::stable_sort(prefixes.begin(), prefixes.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return prefixes;
}

std::vector<uint8_t> reference_luts(const ReferenceCode& code, bool carry_links) {
  const std::vector<std::string> prefixes = reference_prefixes(code);
  const auto row_of = [&](const std::string& prefix) {
    const auto it = std::find(prefixes.begin(), prefixes.end(), prefix);
    if (it == prefixes.end()) throw std::logic_error("no row for " + prefix);
    return static_cast<int>(it - prefixes.begin());
  };
  std::vector<int> slots(prefixes.size() * 256, -1);
  for (size_t row = 0; row < prefixes.size(); ++row) {
    for (const int symbol : code.order) {
      const std::string& bits = code.bits(symbol);
      if (symbol == kReferenceEndOfStream || !bits.starts_with(prefixes[row])) continue;
      const size_t skip = prefixes[row].size();
      if (bits.size() <= skip) continue;
      const bool ends_here = bits.size() <= skip + 8;
      slots[row * 256 + byte_of(bits.substr(skip, 8))] =
          ends_here ? symbol : 256 - row_of(bits.substr(0, skip + 8));
    }
  }
  const auto carried = [&](int slot) { return slot >= 0 && (carry_links || slot < 240); };
  int current = *std::find_if(slots.begin(), slots.end(), carried);
  std::vector<uint8_t> bytes;
  for (const int slot : slots) {
    if (carried(slot)) current = slot;
    bytes.push_back(static_cast<uint8_t>(slot >= 0 ? slot : current));
  }
  for (int symbol = 0; symbol < 256; ++symbol) {
    const auto it = code.codes.find(symbol);
    bytes.push_back(it == code.codes.end() ? 0 : static_cast<uint8_t>(it->second.size()));
  }
  return bytes;
}

GroupTensors reference_encode(const std::vector<std::vector<uint16_t>>& members,
                              const ReferenceCode& code) {
  GroupTensors tensors;
  std::string stream;
  std::vector<uint64_t> gaps, positions;
  uint64_t n_elements = 0;
  // Where a code begins in a window or block that has none yet, it is that window's first.
  const auto note_start = [&] {
    if (stream.size() / kWindowBits == gaps.size()) gaps.push_back(stream.size() % kWindowBits);
    if (stream.size() / kBlockBits == positions.size()) positions.push_back(n_elements);
  };
  std::vector<uint64_t> ends;
  for (const std::vector<uint16_t>& member : members) {
    for (const uint16_t word : member) {
      note_start();
      stream += code.bits(bf16_exponent(word));
      tensors.sign_mantissa.push_back(bf16_sign_mantissa(word));
      ++n_elements;
    }
    ends.push_back(n_elements);
  }
  if (stream.size() % 8 != 0) {
    // The end-of-stream code counts as one that starts here, and is cut off at the byte.
    note_start();
    std::string padded = stream + code.bits(kReferenceEndOfStream) + "0000000";
    padded.resize((stream.size() + 7) / 8 * 8);
    stream = padded;
  }
  tensors.encoded_exponent = pack(stream);

  const uint64_t n_blocks = n_code_blocks(tensors.encoded_exponent.size());
  gaps.resize(n_blocks * kWindowsPerBlock, 0);
  std::string gap_bits;
  for (const uint64_t gap : gaps) {
    for (int i = 4; i >= 0; --i) gap_bits += (gap >> i & 1) != 0 ? '1' : '0';
  }
  tensors.gaps = pack(gap_bits);

  // Upstream leaves out the position of a block that holds only the tail of the last code when that
  // ends on a whole byte; the layout asks for it.
  positions.resize(n_blocks, n_elements);
  positions.push_back(n_elements);
  for (const uint64_t position : positions) {
    for (int i = 0; i < 4; ++i) {
      tensors.output_positions.push_back(static_cast<uint8_t>(position >> (8 * i)));
    }
  }
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    for (int j = 0; j < 8; ++j) {
      tensors.split_positions.push_back(static_cast<uint8_t>(ends[i] >> (8 * j)));
    }
  }
  return tensors;
}

}  // namespace df11::test
