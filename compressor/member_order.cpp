#include "compressor/member_order.h"

#include <algorithm>
#include <array>
#include <vector>

#include "format/module_names.h"

namespace df11 {

namespace {

constexpr std::array<std::string_view, 7> kOrderedLeaves = {
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
constexpr size_t kFirstOfMlp = 4;

// Component by component: numbers first and by value, which is by length and then as text.
bool natural_before(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> parts_a = name_components(a), parts_b = name_components(b);
  return std::lexicographical_compare(parts_a.begin(), parts_a.end(), parts_b.begin(),
                                      parts_b.end(), [](std::string_view x, std::string_view y) {
                                        if (is_all_digits(x) != is_all_digits(y))
                                          return is_all_digits(x);
                                        if (is_all_digits(x) && x.size() != y.size())
                                          return x.size() < y.size();
                                        return x < y;
                                      });
}

}  // namespace

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
