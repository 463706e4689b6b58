// What the fuzz targets share. A target is LLVMFuzzerTestOneInput: linked with libFuzzer (preset
// fuzz), or with replay_main.cpp, which runs it over files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "format/bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes);

namespace df11::test {

// A property that must hold for every input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "property violated: %s\n", what);
  std::abort();
}

// Takes numbers off the front of an input; zeros after its end.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t n_bytes) : rest_(data, n_bytes) {}

  bool empty() const { return rest_.empty(); }
  uint64_t take(size_t n_bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes && !rest_.empty(); ++i) {
      value |= uint64_t{rest_.front()} << (8 * i);
      rest_ = rest_.subspan(1);
    }
    return value;
  }
  // At most `n_bytes`.
  ByteSpan take_bytes(size_t n_bytes) {
    const ByteSpan taken = rest_.first(std::min(n_bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  ByteSpan rest() const { return rest_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(rest_.data()), rest_.size()};
  }

 private:
  ByteSpan rest_;
};

}  // namespace df11::test
