#include "format/late_sync.h"

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

namespace df11 {

namespace {
// A signal handler may cancel, but not notify: so often finish() looks.
constexpr std::chrono::milliseconds kCancelledEvery{100};
}  // namespace

LateSync::~LateSync() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LateSync::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::optional<File> file = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    Result<void> synced = file->sync();
    file.reset();
    lock.lock();
    busy_ = false;
    if (!synced) {
      result_ = std::move(synced);
      waiting_.clear();
    }
    changed_.notify_all();
  }
}

Result<void> LateSync::add(File file) {
  {
    const std::lock_guard lock(mutex_);
    if (!result_) return result_;
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {  // the system has none to give
        return file.sync();
      }
    }
    waiting_.push_back(std::move(file));
  }
  changed_.notify_all();
  return {};
}

Result<void> LateSync::finish(const Executor& executor) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kCancelledEvery, [this] { return waiting_.empty() && !busy_; }))
    DF11_TRY(executor.check_cancelled());
  return result_;
}

}  // namespace df11
