#include "format/hash_queue.h"

#include <algorithm>
#include <utility>

namespace df11 {

namespace {
// Two chunks, once read, stay in a core's L2 cache while they are hashed.
constexpr size_t kLaneBytes = size_t{128} << 10;
}  // namespace

// A file that is being hashed, or waits for it.
class HashQueue::Lane {
 public:
  explicit Lane(HashRequest request) : request_(std::move(request)) {}

  bool at_end() const { return offset_bytes_ == file().size_bytes(); }
  PublishedHasher& hasher() { return *hasher_; }
  ByteSpan chunk() const { return chunk_.bytes(); }
  bool counts() const { return request_.counts; }

  Result<void> read() {
    if (!hasher_) DF11_TRY(open());
    const size_t n_bytes = std::min<uint64_t>(kLaneBytes, file().size_bytes() - offset_bytes_);
    DF11_TRY(file().read(offset_bytes_, n_bytes, chunk_));
    offset_bytes_ += n_bytes;
    return {};
  }

  Result<void> finish() {
    Result<Sha256> digest = hasher_->finish();
    if (!digest) return fail(std::move(digest).error().in_file(file().path()));
    opened_.reset();
    return request_.done(*digest);
  }

 private:
  Result<void> open() {
    if (request_.file == nullptr) {
      DF11_ASSIGN(opened_, File::open_read(request_.path));
    }
    hasher_.emplace(request_.published, file().size_bytes());
    return {};
  }
  const File& file() const { return request_.file != nullptr ? *request_.file : *opened_; }

  HashRequest request_;
  std::optional<File> opened_;
  std::optional<PublishedHasher> hasher_;  // once it has begun
  uint64_t offset_bytes_ = 0;
  FileBuffer chunk_;
};

HashQueue::HashQueue(const Executor& executor, Progress& progress)
    : executor_(executor), progress_(progress) {}
HashQueue::~HashQueue() = default;

void HashQueue::add(HashRequest request) {
  auto lane = std::make_unique<Lane>(std::move(request));
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(lane));
}

size_t HashQueue::fill(Lanes& lanes, size_t least) {
  const std::lock_guard lock(mutex_);
  size_t n_used = 0;
  for (std::unique_ptr<Lane>& lane : lanes) {
    if (!lane && !waiting_.empty()) {
      lane = std::move(waiting_.front());
      waiting_.pop_front();
    }
    n_used += lane != nullptr;
  }
  if (n_used >= least) return n_used;
  for (std::unique_ptr<Lane>& lane : lanes) {
    if (lane) waiting_.push_front(std::move(lane));
  }
  return 0;
}

Result<void> HashQueue::help() {
  return run_lanes(2);
}

Result<void> HashQueue::work() {
  return run_lanes(1);
}

Result<void> HashQueue::run_lanes(size_t least) {
  Lanes lanes;
  while (fill(lanes, least) != 0) {
    DF11_TRY(executor_.check_cancelled());
    for (const auto& lane : lanes) {
      if (lane) DF11_TRY(lane->read());
    }
    if (lanes[0] && lanes[1]) {
      PublishedHasher::update_pair(lanes[0]->hasher(), lanes[0]->chunk(), lanes[1]->hasher(),
                                   lanes[1]->chunk());
    } else {
      Lane& lane = lanes[0] ? *lanes[0] : *lanes[1];
      lane.hasher().update(lane.chunk());
    }
    for (std::unique_ptr<Lane>& lane : lanes) {
      if (!lane) continue;
      if (lane->counts()) progress_.add(lane->chunk().size());
      if (!lane->at_end()) continue;
      DF11_TRY(lane->finish());
      lane.reset();
    }
  }
  return {};
}

}  // namespace df11
