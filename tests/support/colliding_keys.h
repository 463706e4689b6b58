// Object keys that all have one hash in std::hash of libstdc++ (MurmurHash64A with a fixed seed):
// what a parser must survive that keeps keys in a hash table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/random.h"

namespace df11::test {

// 2^n_pairs strings of 16 * n_pairs printable characters.
//
// The hash takes 8 bytes x at a time: state = (state ^ mix(x)) * kMultiplier, with an invertible
// mix. After another first half, there is a second half that leads to the same state.
inline std::vector<std::string> colliding_keys(int n_pairs) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMultiplier * inverse;
  const auto shift_mix = [](uint64_t v) { return v ^ v >> 47; };
  const auto mix = [&](uint64_t v) { return shift_mix(v * kMultiplier) * kMultiplier; };
  const auto unmix = [&](uint64_t v) { return shift_mix(v * inverse) * inverse; };
  const auto text = [](uint64_t v) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &v, 8);
    return bytes;
  };
  const auto printable = [](char c) { return c > ' ' && c < 127 && c != '"' && c != '\\'; };

  Random random(1);
  const auto random_half = [&] {
    std::string half(8, 'a');
    for (char& c : half) c = static_cast<char>('a' + random.below(26));
    uint64_t value;
    std::memcpy(&value, half.data(), 8);
    return value;
  };
  uint64_t state = 0xc70f6907 ^ static_cast<uint64_t>(16 * n_pairs) * kMultiplier;
  std::vector<std::string> keys = {""};
  for (int pair = 0; pair < n_pairs; ++pair) {
    const uint64_t first = random_half(), second = random_half();
    const uint64_t between = (state ^ mix(first)) * kMultiplier;
    std::string other;
    do {
      const uint64_t other_first = random_half();
      const uint64_t other_between = (state ^ mix(other_first)) * kMultiplier;
      other = text(other_first) + text(unmix(between ^ other_between ^ mix(second)));
    } while (!std::all_of(other.begin(), other.end(), printable));
    state = (between ^ mix(second)) * kMultiplier;
    const size_t n = keys.size();
    for (size_t i = 0; i < n; ++i) {
      keys.push_back(keys[i] + other);
      keys[i] += text(first) + text(second);
    }
  }
  return keys;
}

}  // namespace df11::test
