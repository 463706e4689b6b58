// Written files, synced once the system has had time to write them: no thread waits for a disk that
// has just begun.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>

#include "format/error.h"
#include "format/file.h"
#include "format/parallel.h"

namespace df11 {

// Thread-safe.
class LateSync {
 public:
  // Keeps at most `max_open` files open.
  explicit LateSync(size_t max_open) : max_open_(max_open) {}

  // Has the system begin to write the file; syncs the one that has waited longest, if there are
  // more than max_open.
  Result<void> add(File file);
  // Syncs all that are left.
  Result<void> finish(const Executor& executor);

 private:
  const size_t max_open_;
  std::mutex mutex_;
  std::deque<File> waiting_;
};

}  // namespace df11
