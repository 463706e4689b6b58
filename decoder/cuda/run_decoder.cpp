// The Decoder on CUDA devices: runs of blocks travel to a device, are decoded, and come back.
//
// Each call holds a lane: a stream with its device buffers. Callers run on several threads, so the
// copies of one lane overlap with the kernel of another and with what callers do with their words.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "decoder/cuda/cuda_decoder.h"
#include "decoder/cuda/cuda_error.h"
#include "decoder/decoder.h"
#include "format/df11_layout.h"
#include "format/parallel.h"

namespace df11 {

namespace cuda {
namespace {

// About 800,000 trained weights: 1.1 MB to the device, 1.6 MB back. Longer runs were slower: they
// need more pinned memory, which takes time to allocate (spec/cuda_decoder.md).
constexpr size_t kRunBlocks = 64;

class PinnedMemory final : public BufferMemory {
 public:
  Result<void*> allocate(size_t n_bytes) override {
    void* data = nullptr;
    DF11_TRY(check(cudaHostAlloc(&data, std::max<size_t>(n_bytes, 1), cudaHostAllocPortable),
                   "cudaHostAlloc"));
    return data;
  }
  void deallocate(void* data) override { (void)cudaFreeHost(data); }
};

std::shared_ptr<BufferMemory> pinned_memory() {
  static const auto memory = std::make_shared<PinnedMemory>();
  return memory;
}

// Stream, buffers and the end of the work on them.
class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
    if (done_ != nullptr) (void)cudaEventDestroy(done_);
  }

  // Decodes `run` on the current device; the status word of the kernel.
  Result<uint32_t> decode(const TableImage& image, const BlockRun& run, uint16_t* words) {
    Result<uint32_t> status = enqueue_and_wait(image, run, words);
    // What is enqueued uses the caller's buffers.
    if (!status && stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
    return status;
  }

 private:
  Result<void> open() {
    if (done_ != nullptr) return {};
    DF11_TRY(
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"));
    // Waiting must not take a processor from the threads that read and compare.
    return check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming | cudaEventBlockingSync),
                 "creating an event");
  }

  Result<void> to_device(uint8_t* to, const void* from, size_t n) {
    return check(cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, stream_),
                 "copying to the device");
  }

  // The small parts go together: tables, positions from the run's first weight on, status.
  struct SmallParts {
    size_t positions, status, bytes;
    SmallParts(size_t n_image_bytes, size_t n_positions)
        : positions(ceil_div(n_image_bytes, 16) * 16),
          status(positions + ceil_div(4 * n_positions, 16) * 16),
          bytes(status + 16) {}
  };

  Result<uint32_t> enqueue_and_wait(const TableImage& image, const BlockRun& run, uint16_t* words) {
    DF11_TRY(open());
    const size_t n_gap_bytes = run.n_blocks() * kGapBytesPerBlock;
    const SmallParts parts(image.bytes.size(), run.positions.size());
    DF11_TRY(small_.ensure(parts.bytes + kDevicePaddingBytes, stream_));
    DF11_TRY(pinned_.ensure(parts.bytes, pinned_memory()));
    DF11_TRY(code_.ensure(run.n_code_bytes + kDevicePaddingBytes, stream_));
    DF11_TRY(gaps_.ensure(n_gap_bytes + kDevicePaddingBytes, stream_));
    DF11_TRY(sign_mantissa_.ensure(run.n_elements() + kDevicePaddingBytes, stream_));
    DF11_TRY(words_.ensure(2 * run.n_elements() + kDevicePaddingBytes, stream_));

    std::memcpy(pinned_.data(), image.bytes.data(), image.bytes.size());
    rebased_.resize(run.positions.size());
    for (size_t i = 0; i < rebased_.size(); ++i)
      rebased_[i] = run.positions[i] - run.positions.front();
    std::memcpy(pinned_.data() + parts.positions, rebased_.data(), 4 * rebased_.size());
    std::memset(pinned_.data() + parts.status, 0, 16);
    // The gap that follows the run, as the first 5 bits of a byte.
    pinned_.data()[parts.status + 4] = static_cast<uint8_t>(run.next_gap << 3);

    DF11_TRY(to_device(small_.data(), pinned_.data(), parts.bytes));
    static_assert(kDevicePaddingBytes <= kCodeLookaheadBytes);
    DF11_TRY(to_device(code_.data(), run.code, run.n_code_bytes + kDevicePaddingBytes));
    DF11_TRY(to_device(gaps_.data(), run.gaps, n_gap_bytes));
    DF11_TRY(to_device(gaps_.data() + n_gap_bytes, pinned_.data() + parts.status + 4, 1));
    DF11_TRY(to_device(sign_mantissa_.data(), run.sign_mantissa, run.n_elements()));

    LaunchGroup group{};
    group.plan = image.plan;
    group.max_block_elements = max_block_elements(run.positions);
    GroupArguments& arguments = group.arguments;
    arguments.image = small_.data();
    arguments.rows = small_.data() + rows_offset(image.plan);
    arguments.code = code_.data();
    arguments.sign_mantissa = sign_mantissa_.data();
    arguments.gaps = gaps_.data();
    arguments.positions = reinterpret_cast<const uint32_t*>(small_.data() + parts.positions);
    arguments.words = reinterpret_cast<uint16_t*>(words_.data());
    arguments.n_code_bytes = static_cast<uint32_t>(run.n_code_bytes);
    arguments.n_elements = static_cast<uint32_t>(run.n_elements());
    arguments.n_blocks = static_cast<uint32_t>(run.n_blocks());
    arguments.ends_group = run.ends_group;
    uint32_t* const status = reinterpret_cast<uint32_t*>(small_.data() + parts.status);
    DF11_TRY(launch({&group, 1}, status, stream_));

    DF11_TRY(check(cudaMemcpyAsync(words, words_.data(), 2 * run.n_elements(),
                                   cudaMemcpyDeviceToHost, stream_),
                   "copying from the device"));
    DF11_TRY(check(
        cudaMemcpyAsync(pinned_.data() + parts.status, status, 4, cudaMemcpyDeviceToHost, stream_),
        "copying from the device"));
    DF11_TRY(check(cudaEventRecord(done_, stream_), "recording an event"));
    DF11_TRY(check(cudaEventSynchronize(done_), "decoding"));
    return load_le32(pinned_.data() + parts.status);
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
  DeviceBuffer small_, code_, gaps_, sign_mantissa_, words_;
  DecoderBuffer<uint8_t> pinned_;
  std::vector<uint32_t> rebased_;
};

// What all groups decode with.
struct Devices {
  explicit Devices(int n) : lanes(static_cast<size_t>(n)) {}
  std::vector<Pool<Lane>> lanes;  // by device
  std::atomic<uint32_t> next{0};
};

// What the kernel takes for granted. Where it does not hold, the CPU decoder says so.
bool fit_for_kernel(const BlockRun& run) {
  if (run.n_elements() == 0 || (run.first_block == 0 && load_gap(run.gaps, 0) != 0)) return false;
  for (size_t i = 0; i < run.n_blocks(); ++i) {
    if (run.positions[i + 1] < run.positions[i] ||
        run.positions[i + 1] - run.positions[i] > kBlockBits) {
      return false;
    }
  }
  return true;
}

class CudaGroupDecoder final : public GroupDecoder {
 public:
  CudaGroupDecoder(Devices& devices, const LookupTables& tables, std::unique_ptr<GroupDecoder> cpu)
      : devices_(devices),
        images_{build_table_image(tables, DecodePlan::kPeek11),
                build_table_image(tables, DecodePlan::kPeek12),
                build_table_image(tables, DecodePlan::kOneCode)},
        cpu_(std::move(cpu)) {}

  Result<void> decode(const BlockRun& run, uint16_t* words) const override {
    if (!fit_for_kernel(run)) return cpu_->decode(run, words);
    const DecodePlan plan = choose_plan(run.n_code_bytes, run.n_elements());
    const size_t device = devices_.next.fetch_add(1) % devices_.lanes.size();
    const DeviceScope scope(static_cast<int>(device));
    const auto lane = devices_.lanes[device].take();
    DF11_ASSIGN(const uint32_t status,
                lane->decode(images_[static_cast<size_t>(plan)], run, words));
    // The CPU decoder says what is wrong, and where.
    if (status != 0) return cpu_->decode(run, words);
    const size_t ending = first_ending_block(run);
    if (ending == run.n_blocks()) return {};
    return cpu_->decode(run_tail(run, ending),
                        words + (run.positions[ending] - run.positions.front()));
  }

 private:
  Devices& devices_;
  TableImage images_[kDecodePlans];
  std::unique_ptr<GroupDecoder> cpu_;
};

class CudaDecoder final : public Decoder {
 public:
  CudaDecoder(int n_devices, std::string name)
      : devices_(std::make_unique<Devices>(n_devices)), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  Result<std::unique_ptr<GroupDecoder>> prepare(const LookupTables& tables) const override {
    DF11_ASSIGN(std::unique_ptr<GroupDecoder> cpu, cpu_->prepare(tables));
    return std::make_unique<CudaGroupDecoder>(*devices_, tables, std::move(cpu));
  }
  size_t run_blocks() const override { return kRunBlocks; }
  std::shared_ptr<BufferMemory> memory() const override { return pinned_memory(); }

 private:
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Decoder> cpu_ = make_cpu_decoder();
  std::string name_;
};

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Decoder>> make_cuda_decoder() {
  DF11_TRY(cuda::require_device());
  const int n = cuda::n_devices();
  for (int device = 0; device < n; ++device) DF11_TRY(cuda::prepare_device(device));
  DF11_ASSIGN(const std::string model, cuda::device_name(0));
  const std::string count = n == 1 ? "" : std::to_string(n) + " x ";
  return std::make_unique<cuda::CudaDecoder>(n, "cuda (" + count + model + ")");
}

}  // namespace df11
