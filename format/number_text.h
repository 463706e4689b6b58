// Numbers as people read them: in summaries, tables and model cards.
#pragma once

#include <cstdint>
#include <string>

namespace df11 {

std::string format_bytes(double n_bytes);  // "1.23 GB", decimal units
std::string format_count(uint64_t n);      // "1,234,567"
std::string format_fixed(double value, int digits);
std::string format_percent(double part, double whole);  // "68.4 %"

}  // namespace df11
