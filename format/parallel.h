// Work on a fixed number of threads: the one place that uses TBB.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "format/error.h"

namespace df11 {

// Shared by whoever may stop a run and whoever does the work.
class CancelToken {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// Runs index spaces on `n_threads` threads (the calling one included). Calls may nest; a thread
// that waits for an inner call works only on that call, so memory in flight stays bounded by the
// number of threads.
class Executor {
 public:
  // n_threads 0: as many as the machine offers this process.
  explicit Executor(int n_threads = 0, const CancelToken* cancel = nullptr);
  ~Executor();

  int n_threads() const;
  // `cancelled` once the token is set. For loops that for_each does not see into.
  Result<void> check_cancelled() const;

  // Calls work(i) for every i in [0, n), in any order. After a failure no new index is started; of
  // the failures that happened, the one with the lowest index is returned. `cancelled` when the
  // token was set.
  Result<void> for_each(size_t n, const std::function<Result<void>(size_t)>& work) const;

  // As above, and then calls finish(i) for i = 0, 1, 2, …, one at a time, in order, each after
  // work(i). At most `max_in_flight` indices lie between the two.
  Result<void> for_each_ordered(size_t n, size_t max_in_flight,
                                const std::function<Result<void>(size_t)>& work,
                                const std::function<Result<void>(size_t)>& finish) const;

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
  const CancelToken* cancel_;
};

// Scratch objects that are expensive to make (large buffers), handed out to whichever task asks.
template <typename T>
class Pool {
 public:
  class Lease {
   public:
    Lease(Pool& pool, std::unique_ptr<T> object) : pool_(&pool), object_(std::move(object)) {}
    Lease(Lease&&) noexcept = default;
    ~Lease() {
      if (object_) pool_->put_back(std::move(object_));
    }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    Pool* pool_;
    std::unique_ptr<T> object_;
  };

  Lease take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return Lease(*this, std::make_unique<T>());
    std::unique_ptr<T> object = std::move(free_.back());
    free_.pop_back();
    return Lease(*this, std::move(object));
  }

 private:
  void put_back(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(object));
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace df11
