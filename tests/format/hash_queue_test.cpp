#include "format/hash_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/random.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

// Files of random bytes, and what a queue says of them.
class HashQueueTest : public ::testing::Test {
 protected:
  // A request that records its digest by the file's name.
  HashRequest request(const std::string& name, size_t n_bytes) {
    Random random(n_bytes + 1);
    std::string bytes(n_bytes, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    EXPECT_TRUE(succeeded(write_text_file(directory_.path() / name, bytes)));
    expected_[name] = sha256(as_bytes(bytes));
    HashRequest request;
    request.path = directory_.path() / name;
    request.size_bytes = n_bytes;
    request.done = [this, name](const Sha256& digest) -> Result<void> {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(digests_.emplace(name, digest).second) << name << " is done twice";
      return {};
    };
    return request;
  }
  std::vector<std::string> done() const {
    std::vector<std::string> names;
    for (const auto& [name, digest] : digests_) names.push_back(name);
    return names;
  }

  TemporaryDirectory directory_;
  Executor executor_{4};
  Progress progress_;
  HashQueue queue_{executor_, progress_};
  std::mutex mutex_;
  std::map<std::string, Sha256> expected_, digests_;
};

using Names = std::vector<std::string>;

TEST_F(HashQueueTest, HashesFilesOfAnySize) {
  uint64_t n_bytes = 0;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{131'072},
                            size_t{131'073}, size_t{400'000}, size_t{0}}) {
    queue_.add(request("file" + std::to_string(expected_.size()), size));
    n_bytes += size;
  }
  ASSERT_TRUE(succeeded(queue_.work()));
  EXPECT_EQ(digests_, expected_);
  EXPECT_EQ(progress_.done_bytes, n_bytes);
}

TEST_F(HashQueueTest, HelpLeavesOneAlone) {
  queue_.add(request("long", 1'000'000));
  ASSERT_TRUE(succeeded(queue_.help()));
  EXPECT_EQ(done(), Names());
  queue_.add(request("short", 300'000));
  ASSERT_TRUE(succeeded(queue_.help()));
  EXPECT_EQ(done(), Names({"short"}));
  EXPECT_GE(progress_.done_bytes, 600'000u);  // of the long one, too
  queue_.add(request("shorter", 200'000));
  ASSERT_TRUE(succeeded(queue_.help()));
  EXPECT_EQ(done(), Names({"short", "shorter"}));
  ASSERT_TRUE(succeeded(queue_.work()));
  EXPECT_EQ(digests_, expected_);
  EXPECT_EQ(progress_.done_bytes, 1'500'000u);
}

TEST_F(HashQueueTest, ManyThreadsAddAndHelp) {
  std::vector<HashRequest> requests;
  for (size_t i = 0; i < 60; ++i) requests.push_back(request(std::to_string(i), i * 7919));
  ASSERT_TRUE(succeeded(executor_.for_each(requests.size(), [&](size_t i) {
    queue_.add(std::move(requests[i]));
    return queue_.help();
  })));
  ASSERT_TRUE(succeeded(executor_.for_each(4, [&](size_t) { return queue_.work(); })));
  EXPECT_EQ(digests_, expected_);
}

TEST_F(HashQueueTest, ReportsWhatItCannotHash) {
  queue_.add(request("there", 1000));
  HashRequest missing = request("missing", 1000);
  missing.path = directory_.path() / "elsewhere";
  queue_.add(std::move(missing));
  EXPECT_TRUE(failed_with(queue_.help(), ErrorCode::not_found, "elsewhere"));

  HashRequest damaged = request("damaged", 1000);
  damaged.published = PublishedHash{};
  queue_.add(std::move(damaged));
  EXPECT_TRUE(failed_with(queue_.work(), ErrorCode::damaged, ""));
}

}  // namespace
}  // namespace df11::test
