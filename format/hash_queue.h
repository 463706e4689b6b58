// SHA-256 of many large files: each thread that works on them hashes two at a time, which takes
// little longer than one (Sha256Hasher::update_pair).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "format/error.h"
#include "format/file.h"
#include "format/hash.h"
#include "format/hub_record.h"
#include "format/parallel.h"
#include "format/progress.h"

namespace df11 {

struct HashRequest {
  std::filesystem::path path;
  const File* file = nullptr;                   // the file at `path`, where it is open already
  uint64_t size_bytes = 0;                      // for the order of requests only
  std::optional<PublishedHash> published = {};  // to be compared with
  bool counts = true;                           // its bytes are progress
  std::function<Result<void>(const Sha256&)>
      done;  // by the thread that finishes it, unless work fails before
};

// Thread-safe.
class HashQueue {
 public:
  HashQueue(const Executor& executor, Progress& progress);
  ~HashQueue();

  void add(HashRequest request);

  // Hashes until no request is waiting and those it took are done.
  // Errors: damaged (published hash), I/O errors, cancelled, those of `done`. No request is worked
  // on any more by a thread that met one.
  Result<void> work();

  // Hashes as long as there are two at a time, since one alone takes as long; what is left waits
  // for others to come, or for work(). Errors: those of work().
  Result<void> help();

 private:
  class Lane;
  using Lanes = std::array<std::unique_ptr<Lane>, 2>;
  // Fills empty lanes with what waits. If less than `least` are then in use, those wait again.
  size_t fill(Lanes& lanes, size_t least);
  Result<void> run_lanes(size_t least);

  const Executor& executor_;
  Progress& progress_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Lane>> waiting_;  // those that have begun first
};

}  // namespace df11
