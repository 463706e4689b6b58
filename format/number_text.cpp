#include "format/number_text.h"

#include <cstdio>

namespace df11 {

std::string format_fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string format_bytes(double n_bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (n_bytes >= 999.5 && unit < 4) {
    n_bytes /= 1000;
    ++unit;
  }
  const int digits = unit == 0 ? 0 : n_bytes < 9.995 ? 2 : n_bytes < 99.95 ? 1 : 0;
  return format_fixed(n_bytes, digits) + " " + kUnits[unit];
}

std::string format_count(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string format_percent(double part, double whole) {
  return whole <= 0 ? "-" : format_fixed(100 * part / whole, 1) + " %";
}

}  // namespace df11
