#include "compressor/shard_job.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

// Signs and mantissas decide no code length, and verbatim tensors may have been hashed in pass 1:
// what the encoder cannot see must not be written under hashes of what was there before.
TEST(ShardJob, NoticesAnyChangeBetweenThePasses) {
  const TemporaryDirectory directory;
  const fs::path source = directory / "source", path = source / "model.safetensors";
  write_tiny_checkpoint(source);
  const Result<Checkpoint> checkpoint = Checkpoint::open(source, {});
  ASSERT_TRUE(succeeded(checkpoint));
  const Result<Plan> plan = make_plan(*checkpoint, {});
  ASSERT_TRUE(succeeded(plan));
  CompressBuffers buffers;
  const Executor executor(1);
  Progress progress;
  std::vector<ShardJob> jobs;
  for (const PlannedShard& shard : plan->shards) {
    jobs.emplace_back(*checkpoint, shard, buffers);
    ASSERT_TRUE(succeeded(jobs.back().count(executor, progress)));
  }
  ASSERT_GT(jobs.size(), 1u);
  fs::create_directory(directory / "before");
  for (ShardJob& job : jobs)
    EXPECT_TRUE(succeeded(job.write(directory / "before", executor, progress)));

  jobs.clear();
  for (const PlannedShard& shard : plan->shards) {
    jobs.emplace_back(*checkpoint, shard, buffers);
    ASSERT_TRUE(succeeded(jobs.back().count(executor, progress)));
  }
  const auto modified = fs::last_write_time(path);
  std::string bytes = read_file(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 0x80);
  write_file(path, bytes);
  fs::last_write_time(path, modified + std::chrono::seconds(1));
  fs::create_directory(directory / "after");
  for (ShardJob& job : jobs) {
    EXPECT_TRUE(failed_with(job.write(directory / "after", executor, progress),
                            ErrorCode::source_changed, "changed"));
  }
}

}  // namespace
}  // namespace df11::test
