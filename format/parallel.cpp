#include "format/parallel.h"

#include <algorithm>

#include "format/first_error.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

namespace df11 {

namespace {

// TBB keeps to the number of cores and prints a warning when more threads are asked for.
void allow_more_threads_than_cores() {
  constexpr size_t kMaxThreads = 4096;
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kMaxThreads);
}

}  // namespace

struct Executor::Arena {
  explicit Arena(int n) : arena(n) {
    if (n > tbb::info::default_concurrency()) allow_more_threads_than_cores();
  }
  mutable tbb::task_arena arena;
};

Executor::Executor(int n_threads, const CancelToken* cancel)
    : arena_(std::make_unique<Arena>(n_threads > 0 ? n_threads : tbb::info::default_concurrency())),
      cancel_(cancel) {}

Executor::~Executor() = default;

int Executor::n_threads() const {
  return arena_->arena.max_concurrency();
}

Result<void> Executor::check_cancelled() const {
  if (cancel_ != nullptr && cancel_->cancelled())
    return fail(ErrorCode::cancelled, "stopped on request");
  return {};
}

Result<void> Executor::for_each(size_t n, const std::function<Result<void>(size_t)>& work) const {
  FirstError first(cancel_);
  arena_->arena.execute([&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          tbb::blocked_range<size_t>(0, n, 1),
          [&](const tbb::blocked_range<size_t>& range) {
            for (size_t i = range.begin(); i != range.end(); ++i) {
              if (first.stop()) return;
              if (Result<void> done = work(i); !done) first.record(i, std::move(done).error());
            }
          },
          tbb::simple_partitioner());
    });
  });
  return first.take();
}

Result<void> Executor::for_each_ordered(size_t n, size_t max_in_flight,
                                        const std::function<Result<void>(size_t)>& work,
                                        const std::function<Result<void>(size_t)>& finish) const {
  FirstError first(cancel_);
  size_t next = 0;
  max_in_flight = std::max<size_t>(max_in_flight, 1);
  const auto run = [&](const std::function<Result<void>(size_t)>& step, size_t i) {
    if (first.stop()) return;
    if (Result<void> done = step(i); !done) first.record(i, std::move(done).error());
  };
  arena_->arena.execute([&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_pipeline(
          max_in_flight, tbb::make_filter<void, size_t>(tbb::filter_mode::serial_in_order,
                                                        [&](tbb::flow_control& control) -> size_t {
                                                          if (next == n || first.stop()) {
                                                            control.stop();
                                                            return 0;
                                                          }
                                                          return next++;
                                                        }) &
                             tbb::make_filter<size_t, size_t>(tbb::filter_mode::parallel,
                                                              [&](size_t i) {
                                                                run(work, i);
                                                                return i;
                                                              }) &
                             tbb::make_filter<size_t, void>(tbb::filter_mode::serial_in_order,
                                                            [&](size_t i) { run(finish, i); }));
    });
  });
  return first.take();
}

}  // namespace df11
