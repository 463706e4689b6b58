// Progress of a run, written by the workers and read by whoever displays it.
#pragma once

#include <atomic>
#include <cstdint>

namespace df11 {

struct Progress {
  std::atomic<uint64_t> total_bytes{0};  // 0 until it is known
  std::atomic<uint64_t> done_bytes{0};

  void add(uint64_t n_bytes) { done_bytes.fetch_add(n_bytes, std::memory_order_relaxed); }
};

}  // namespace df11
