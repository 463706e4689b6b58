// The order of members that no published list orders (spec/planning.md section 3).
#pragma once

#include <string_view>

namespace df11 {

// q, k, v and o projections, then gate, up and down projections by module, then all others by name;
// numbers by value.
bool member_before(std::string_view a, std::string_view b);

}  // namespace df11
