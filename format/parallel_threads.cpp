// Executor with plain threads, for builds under the thread sanitizer: Debian's libtbb is not
// instrumented, and the sanitizer would take its order for none. Slow, and otherwise the same.
#include <condition_variable>
#include <thread>

#include "format/first_error.h"
#include "format/parallel.h"

namespace df11 {

struct Executor::Arena {
  int n_threads;
};

Executor::Executor(int n_threads, const CancelToken* cancel)
    : arena_(std::make_unique<Arena>(Arena{
          n_threads > 0 ? n_threads : static_cast<int>(std::thread::hardware_concurrency())})),
      cancel_(cancel) {}

Executor::~Executor() = default;

int Executor::n_threads() const {
  return arena_->n_threads;
}

Result<void> Executor::check_cancelled() const {
  if (cancel_ != nullptr && cancel_->cancelled()) {
    return fail(ErrorCode::cancelled, "stopped on request");
  }
  return {};
}

Result<void> Executor::for_each(size_t n, const std::function<Result<void>(size_t)>& work) const {
  FirstError first(cancel_);
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < n && !first.stop(); i = next++) {
      if (Result<void> done = work(i); !done) first.record(i, std::move(done).error());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(n, static_cast<size_t>(arena_->n_threads)); ++i) {
      threads.emplace_back(run);
    }
    run();
  }
  return first.take();
}

Result<void> Executor::for_each_ordered(size_t n, size_t max_in_flight,
                                        const std::function<Result<void>(size_t)>& work,
                                        const std::function<Result<void>(size_t)>& finish) const {
  std::mutex mutex;
  std::condition_variable finished_one;
  size_t n_finished = 0;
  FirstError first(cancel_);
  // Indices start in order, so the lowest one in flight never waits for a place.
  const Result<void> done = for_each(n, [&](size_t i) -> Result<void> {
    {
      std::unique_lock lock(mutex);
      finished_one.wait(lock, [&] { return i < n_finished + std::max<size_t>(max_in_flight, 1); });
    }
    if (!first.stop()) {
      if (Result<void> step = work(i); !step) first.record(i, std::move(step).error());
    }
    std::unique_lock lock(mutex);
    finished_one.wait(lock, [&] { return i == n_finished; });
    if (!first.stop()) {
      if (Result<void> step = finish(i); !step) first.record(i, std::move(step).error());
    }
    ++n_finished;
    finished_one.notify_all();
    return {};
  });
  if (Result<void> result = first.take(); !result) return result;
  return done;
}

}  // namespace df11
