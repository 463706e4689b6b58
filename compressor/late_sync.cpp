#include "compressor/late_sync.h"

#include <optional>
#include <utility>

namespace df11 {

Result<void> LateSync::add(File file) {
  file.start_writing();
  std::optional<File> oldest;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(file));
    if (waiting_.size() <= max_open_) return {};
    oldest = std::move(waiting_.front());
    waiting_.pop_front();
  }
  return oldest->sync();
}

Result<void> LateSync::finish(const Executor& executor) {
  const std::lock_guard lock(mutex_);
  DF11_TRY(executor.for_each(waiting_.size(), [&](size_t i) { return waiting_[i].sync(); }));
  waiting_.clear();
  return {};
}

}  // namespace df11
