#include "compressor/late_sync.h"

#include <utility>

namespace df11 {

LateSync::~LateSync() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  stop();
}

void LateSync::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const File file = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Result<void> synced = file.sync();
    lock.lock();
    if (!synced && result_) result_ = std::move(synced);
  }
}

void LateSync::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<void> LateSync::add(File file) {
  {
    const std::lock_guard lock(mutex_);
    if (!result_) return result_;
    waiting_.push_back(std::move(file));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
  return {};
}

Result<void> LateSync::finish() {
  stop();
  return result_;
}

}  // namespace df11
