// The vector units that the hot loops of compression can use. The best is chosen by itself; tests
// and measurements try each.
#pragma once

#include <string>
#include <vector>

namespace df11 {

// What this machine supports, best first; the last is plain scalar code, which runs anywhere.
std::vector<std::string> simd_targets();

// Uses the one of this name from now on; the best again when `name` is empty. Not while others
// count or encode.
void use_simd_target(const std::string& name);

}  // namespace df11
