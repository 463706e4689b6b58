#include "format/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <set>
#include <thread>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

tl::unexpected<Error> failure(size_t i) {
  return fail(ErrorCode::invalid_argument, "index " + std::to_string(i) + ".");
}

TEST(Executor, VisitsEveryIndexOnce) {
  for (const int n_threads : {1, 2, 4, 9}) {
    const Executor executor(n_threads);
    EXPECT_EQ(executor.n_threads(), n_threads);
    for (const size_t n : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> visits(n);
      EXPECT_TRUE(succeeded(executor.for_each(n, [&](size_t i) -> Result<void> {
        ++visits[i];
        return {};
      })));
      for (const auto& count : visits) EXPECT_EQ(count, 1);
    }
  }
  EXPECT_GE(Executor().n_threads(), 1);
}

TEST(Executor, ReturnsTheFailureWithTheLowestIndexOfThoseThatHappened) {
  const Executor executor(4);
  for (int round = 0; round < 50; ++round) {
    std::mutex mutex;
    std::set<size_t> failed;
    const Result<void> done = executor.for_each(64, [&](size_t i) -> Result<void> {
      if (i % 7 != 3) return {};
      {
        const std::lock_guard lock(mutex);
        failed.insert(i);
      }
      std::this_thread::yield();
      return failure(i);
    });
    ASSERT_FALSE(failed.empty());
    EXPECT_TRUE(failed_with(done, ErrorCode::invalid_argument,
                            "index " + std::to_string(*failed.begin()) + "."));
  }
}

TEST(Executor, StartsNothingNewAfterAFailure) {
  // On one thread "after" is certain; on several, some may have been starting just then.
  const Executor executor(1);
  bool failed = false;
  size_t n_after = 0;
  const Result<void> done = executor.for_each(1000, [&](size_t i) -> Result<void> {
    if (failed) ++n_after;
    if (i != 10) return {};
    failed = true;
    return failure(i);
  });
  EXPECT_TRUE(failed_with(done, ErrorCode::invalid_argument, "index 10."));
  EXPECT_EQ(n_after, 0u);
}

TEST(Executor, StopsWhenCancelled) {
  CancelToken token;
  const Executor executor(2, &token);
  std::atomic<int> n_started = 0;
  const Result<void> done = executor.for_each(100'000, [&](size_t) -> Result<void> {
    if (++n_started == 5) token.cancel();
    return {};
  });
  EXPECT_TRUE(failed_with(done, ErrorCode::cancelled));
  EXPECT_LT(n_started, 100'000);
  n_started = 0;
  EXPECT_TRUE(failed_with(executor.for_each(10,
                                            [&](size_t) -> Result<void> {
                                              ++n_started;
                                              return {};
                                            }),
                          ErrorCode::cancelled));
  EXPECT_EQ(n_started, 0);
  EXPECT_TRUE(failed_with(executor.for_each_ordered(
                              10, 2, [](size_t) -> Result<void> { return {}; },
                              [](size_t) -> Result<void> { return {}; }),
                          ErrorCode::cancelled));
}

TEST(Executor, AFailureIsReportedEvenIfCancelledToo) {
  CancelToken token;
  const Result<void> done = Executor(1, &token).for_each(3, [&](size_t i) -> Result<void> {
    token.cancel();
    return failure(i);
  });
  EXPECT_TRUE(failed_with(done, ErrorCode::invalid_argument));
}

TEST(Executor, OrderedFinishComesInOrderOneAtATime) {
  for (const int n_threads : {1, 4}) {
    const Executor executor(n_threads);
    constexpr size_t kInFlight = 3;
    std::vector<std::atomic<bool>> worked(500);
    std::atomic<int> in_flight = 0, most_in_flight = 0, finishing = 0;
    size_t next = 0;
    const Result<void> done = executor.for_each_ordered(
        worked.size(), kInFlight,
        [&](size_t i) -> Result<void> {
          const int now = ++in_flight;
          int most = most_in_flight;
          while (most < now && !most_in_flight.compare_exchange_weak(most, now)) {
          }
          worked[i] = true;
          return {};
        },
        [&](size_t i) -> Result<void> {
          EXPECT_EQ(++finishing, 1);
          EXPECT_EQ(i, next++);
          EXPECT_TRUE(worked[i]);
          --in_flight;
          --finishing;
          return {};
        });
    EXPECT_TRUE(succeeded(done));
    EXPECT_EQ(next, worked.size());
    EXPECT_LE(most_in_flight, static_cast<int>(kInFlight));
  }
}

TEST(Executor, OrderedFailuresStopWorkAndFinish) {
  const Executor executor(4);
  const auto nothing = [](size_t) -> Result<void> { return {}; };
  const auto fail_at_20 = [](size_t i) -> Result<void> {
    return i == 20 ? failure(i) : Result<void>{};
  };
  size_t n_finished = 0;
  EXPECT_TRUE(failed_with(
      executor.for_each_ordered(1000, 4, fail_at_20,
                                [&](size_t i) -> Result<void> {
                                  EXPECT_LT(i, 20u)
                                      << "finished after its work, or that before it, failed";
                                  ++n_finished;
                                  return {};
                                }),
      ErrorCode::invalid_argument, "index 20."));
  EXPECT_LE(n_finished, 20u);
  n_finished = 0;
  EXPECT_TRUE(failed_with(executor.for_each_ordered(1000, 4, nothing,
                                                    [&](size_t i) -> Result<void> {
                                                      ++n_finished;
                                                      return fail_at_20(i);
                                                    }),
                          ErrorCode::invalid_argument, "index 20."));
  EXPECT_EQ(n_finished, 21u);
  EXPECT_TRUE(succeeded(executor.for_each_ordered(0, 4, fail_at_20, fail_at_20)));
}

TEST(Executor, CallsNest) {
  const Executor executor(3);
  std::atomic<int> sum = 0;
  EXPECT_TRUE(succeeded(executor.for_each(20, [&](size_t) {
    return executor.for_each(20, [&](size_t) {
      return executor.for_each_ordered(
          5, 2, [&](size_t) -> Result<void> { return {}; },
          [&](size_t i) -> Result<void> {
            sum += static_cast<int>(i);
            return {};
          });
    });
  })));
  EXPECT_EQ(sum, 20 * 20 * 10);
  // An inner failure comes out.
  EXPECT_TRUE(failed_with(executor.for_each(4,
                                            [&](size_t) {
                                              return executor.for_each(
                                                  4, [&](size_t i) -> Result<void> {
                                                    return i == 2 ? failure(i) : Result<void>{};
                                                  });
                                            }),
                          ErrorCode::invalid_argument, "index 2."));
}

TEST(Executor, AThreadThatWaitsTakesNoOuterWork) {
  // Outer bodies open at once never outnumber the threads: memory in flight stays bounded.
  constexpr int kThreads = 2;
  const Executor executor(kThreads);
  std::atomic<int> open = 0, most = 0;
  EXPECT_TRUE(succeeded(executor.for_each(100, [&](size_t) {
    const int now = ++open;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    const Result<void> done = executor.for_each(50, [](size_t) -> Result<void> { return {}; });
    --open;
    return done;
  })));
  EXPECT_LE(most, kThreads);
}

TEST(Pool, ReusesObjectsAndMakesOneForEachLease) {
  Pool<std::vector<int>> pool;
  std::vector<int>* first;
  {
    const auto a = pool.take();
    const auto b = pool.take();
    EXPECT_NE(&*a, &*b);
    a->push_back(1);
    first = &*a;
  }
  const auto c = pool.take();
  const auto d = pool.take();
  EXPECT_TRUE(&*c == first || &*d == first);
  EXPECT_EQ(c->size() + d->size(), 1u);
}

}  // namespace
}  // namespace df11::test
