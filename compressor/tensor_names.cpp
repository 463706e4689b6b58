#include "compressor/tensor_names.h"

#include <algorithm>
#include <array>

namespace df11 {

namespace {

constexpr std::array<std::string_view, 7> kOrderedLeaves = {
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
constexpr size_t kFirstOfMlp = 4;

// Component by component: numbers first and by value, which is by length and then as text.
bool natural_before(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> parts_a = components(a), parts_b = components(b);
  return std::lexicographical_compare(parts_a.begin(), parts_a.end(), parts_b.begin(),
                                      parts_b.end(), [](std::string_view x, std::string_view y) {
                                        if (is_number(x) != is_number(y)) return is_number(x);
                                        if (is_number(x) && x.size() != y.size())
                                          return x.size() < y.size();
                                        return x < y;
                                      });
}

}  // namespace

std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == name.npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

bool is_number(std::string_view component) {
  return !component.empty() && std::all_of(component.begin(), component.end(),
                                           [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view module_of(std::string_view tensor_name) {
  return tensor_name.substr(0, tensor_name.size() - kWeightSuffix.size());
}

std::string_view leaf_of(std::string_view module) {
  return module.substr(module.rfind('.') + 1);  // npos + 1 is 0
}

std::string_view block_of(std::string_view tensor_name) {
  const std::vector<std::string_view> parts = components(tensor_name);
  size_t end = parts[0].size(), block_end = 0;
  for (size_t i = 1; i < parts.size(); ++i) {
    end += 1 + parts[i].size();
    if (is_number(parts[i])) {
      block_end = end;  // a list in a list: the innermost is the block
    } else if (block_end != 0) {
      break;
    }
  }
  return tensor_name.substr(0, block_end);
}

std::string_view parent_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

std::string joined_name(std::string_view module, std::string_view member) {
  std::string name(module);
  if (!member.empty()) name.append(".").append(member);
  return name;
}

bool member_before(std::string_view a, std::string_view b) {
  const auto rank = [](std::string_view member) {
    return static_cast<size_t>(
        std::find(kOrderedLeaves.begin(), kOrderedLeaves.end(), leaf_of(member)) -
        kOrderedLeaves.begin());
  };
  const auto part = [&](std::string_view member) {
    return rank(member) < kFirstOfMlp ? 0 : rank(member) < kOrderedLeaves.size() ? 1 : 2;
  };
  if (part(a) != part(b)) return part(a) < part(b);
  if (part(a) == 2) return natural_before(a, b);
  if (parent_of(a) != parent_of(b)) return natural_before(parent_of(a), parent_of(b));
  return rank(a) < rank(b);
}

}  // namespace df11
