// For the implementations of Executor (format/parallel.h) only.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <optional>

#include "format/parallel.h"

namespace df11 {

// Keeps the failure with the lowest index among those that happened.
class FirstError {
 public:
  explicit FirstError(const CancelToken* cancel) : cancel_(cancel) {}

  bool stop() const {
    return failed_.load(std::memory_order_relaxed) || (cancel_ != nullptr && cancel_->cancelled());
  }
  void record(size_t index, Error error) {
    const std::lock_guard lock(mutex_);
    if (index < index_) {
      index_ = index;
      error_ = std::move(error);
    }
    failed_.store(true, std::memory_order_relaxed);
  }
  Result<void> take() {
    if (error_) return fail(std::move(*error_));
    if (cancel_ != nullptr && cancel_->cancelled()) {
      return fail(ErrorCode::cancelled, "stopped on request");
    }
    return {};
  }

 private:
  const CancelToken* cancel_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  size_t index_ = std::numeric_limits<size_t>::max();
  std::optional<Error> error_;
};

}  // namespace df11
