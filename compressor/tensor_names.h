// What the dotted names of tensors and modules say (spec/planning.md section 1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace df11 {

inline constexpr std::string_view kWeightSuffix = ".weight";

// "a.0.b" -> {"a", "0", "b"}.
std::vector<std::string_view> components(std::string_view name);
bool is_number(std::string_view component);

// X of "X.weight".
std::string_view module_of(std::string_view tensor_name);
// Last component of a module's name.
std::string_view leaf_of(std::string_view module);
// The repeated block a tensor belongs to ("model.layers.12"), or "" outside of any.
std::string_view block_of(std::string_view tensor_name);

// "a.0" for "a.0.b"; "" when there is no dot.
std::string_view parent_of(std::string_view name);
// "module.member", or "module" when `member` is empty.
std::string joined_name(std::string_view module, std::string_view member);

// The order of members that no published list orders: q, k, v and o projections, then gate, up and
// down projections by module, then all others by name; numbers by value.
bool member_before(std::string_view a, std::string_view b);

}  // namespace df11
