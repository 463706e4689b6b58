// Syncing written files in a thread that does nothing else: none that has work waits for the disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "format/error.h"
#include "format/file.h"
#include "format/parallel.h"

namespace df11 {

// Thread-safe.
class LateSync {
 public:
  LateSync() = default;
  LateSync(const LateSync&) = delete;
  LateSync& operator=(const LateSync&) = delete;
  ~LateSync();  // leaves unsynced what finish() has not waited for

  // The file is synced soon. Errors: those of a file that was added before.
  Result<void> add(File file);
  // Waits until all are synced. Errors: those of syncing, cancelled.
  Result<void> finish(const Executor& executor);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<File> waiting_;
  bool busy_ = false, stopping_ = false;
  Result<void> result_;  // the first error; nothing is synced after it
  std::thread thread_;   // from the first file on
};

}  // namespace df11
