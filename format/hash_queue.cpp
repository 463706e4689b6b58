#include "format/hash_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace df11 {

namespace {
// Two chunks, once read, stay in a core's L2 cache while they are hashed.
constexpr size_t kLaneBytes = size_t{128} << 10;
}  // namespace

// One of the two files that a thread is hashing.
class HashQueue::Lane {
 public:
  bool active() const { return hasher_.has_value(); }
  bool at_end() const { return active() && offset_bytes_ == file().size_bytes(); }
  PublishedHasher& hasher() { return *hasher_; }
  ByteSpan chunk() const { return {chunk_.data(), n_chunk_bytes_}; }
  bool counts() const { return request_.counts; }

  Result<void> open(HashRequest request) {
    request_ = std::move(request);
    if (request_.file == nullptr) {
      DF11_ASSIGN(opened_, File::open_read(request_.path));
    }
    offset_bytes_ = 0;
    hasher_.emplace(request_.published, file().size_bytes());
    return {};
  }

  Result<void> read() {
    n_chunk_bytes_ = std::min<uint64_t>(kLaneBytes, file().size_bytes() - offset_bytes_);
    DF11_TRY(file().read_exact({chunk_.ensure(kLaneBytes), n_chunk_bytes_}, offset_bytes_));
    offset_bytes_ += n_chunk_bytes_;
    return {};
  }

  Result<void> finish() {
    Result<Sha256> digest = hasher_->finish();
    if (!digest) return fail(std::move(digest).error().in_file(file().path()));
    hasher_.reset();
    opened_.reset();
    return request_.done(*digest);
  }

 private:
  const File& file() const { return request_.file != nullptr ? *request_.file : *opened_; }

  HashRequest request_;
  std::optional<File> opened_;
  std::optional<PublishedHasher> hasher_;
  uint64_t offset_bytes_ = 0;
  ScratchBuffer<uint8_t> chunk_;
  size_t n_chunk_bytes_ = 0;
};

void HashQueue::add(HashRequest request) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(request));
}

// An idle thread that gets nothing stops working, in the same moment: help() counts on the others.
std::optional<HashRequest> HashQueue::take_next(bool idle) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    if (idle) --n_working_;
    return std::nullopt;
  }
  HashRequest request = std::move(waiting_.front());
  waiting_.pop_front();
  return request;
}

Result<void> HashQueue::help() {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() <= n_working_) return {};
    ++n_working_;
  }
  return run_lanes();
}

Result<void> HashQueue::work() {
  {
    const std::lock_guard lock(mutex_);
    ++n_working_;
  }
  return run_lanes();
}

Result<void> HashQueue::run_lanes() {
  std::array<Lane, 2> lanes;
  for (;;) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (lanes[i].active()) continue;
      const bool idle = i == 1 && !lanes[0].active();  // both are: the other had its turn
      std::optional<HashRequest> request = take_next(idle);
      if (!request && idle) return {};
      if (request) DF11_TRY(lanes[i].open(std::move(*request)));
    }
    DF11_TRY(executor_.check_cancelled());
    for (Lane& lane : lanes) {
      if (lane.active()) DF11_TRY(lane.read());
    }
    if (lanes[0].active() && lanes[1].active()) {
      PublishedHasher::update_pair(lanes[0].hasher(), lanes[0].chunk(), lanes[1].hasher(),
                                   lanes[1].chunk());
    } else {
      Lane& lane = lanes[lanes[0].active() ? 0 : 1];
      lane.hasher().update(lane.chunk());
    }
    for (Lane& lane : lanes) {
      if (lane.active() && lane.counts()) progress_.add(lane.chunk().size());
      if (lane.at_end()) DF11_TRY(lane.finish());
    }
  }
}

}  // namespace df11
