// The decoder interface: DF11 groups to BF16 words, on whichever device.
//
// A group is decoded in runs of whole blocks. Every block carries all it takes to decode alone
// (spec/df11_format.md section 8), so runs are independent and memory stays bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "format/bytes.h"
#include "format/error.h"
#include "format/lookup_tables.h"

namespace df11 {

// Readable bytes that a run's code must have after its last byte: what follows in the stream, or
// zeros after its end.
inline constexpr size_t kCodeLookaheadBytes = 128;

// Consecutive whole blocks of one group, in memory.
struct BlockRun {
  const uint8_t* code = nullptr;           // n_code_bytes, then kCodeLookaheadBytes more
  uint64_t n_code_bytes = 0;               // 4096 a block; the group's last block may be shorter
  const uint8_t* gaps = nullptr;           // 320 bytes a block
  std::span<const uint32_t> positions;     // one per block and the next one; ascending
  const uint8_t* sign_mantissa = nullptr;  // one byte a weight, from the run's first weight on
  uint64_t first_block = 0;                // index in the group, for messages
  bool ends_group = false;                 // the run holds the group's last block
  uint32_t next_gap = 0;  // gap of the first window after the run, unless it ends the group

  size_t n_blocks() const { return positions.size() - 1; }
  uint64_t n_elements() const { return positions.back() - positions.front(); }
};

// Decodes runs of one group. Thread-safe.
class GroupDecoder {
 public:
  virtual ~GroupDecoder() = default;

  // Writes run.n_elements() BF16 words. Every gap, every position and the end of the stream are
  // checked against the codes: a group that upstream's kernel would decode otherwise does not pass.
  // Every decoder gives the same words and the same verdict.
  // Errors: corrupt_stream, with the block in the message; io_error when a device fails.
  virtual Result<void> decode(const BlockRun& run, uint16_t* words) const = 0;
};

// Where callers' buffers come from; a decoder may want memory that its device reads at full speed.
class BufferMemory {
 public:
  virtual ~BufferMemory() = default;
  virtual Result<void*> allocate(size_t n_bytes) = 0;
  virtual void deallocate(void* data) = 0;
};

// Scratch memory of a decoder's choice that grows and is never cleared.
template <typename T>
class DecoderBuffer {
 public:
  DecoderBuffer() = default;
  DecoderBuffer(DecoderBuffer&& other) noexcept { swap(other); }
  DecoderBuffer& operator=(DecoderBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DecoderBuffer() { release(); }

  // At least `n` elements from `memory`; what was there before may be lost.
  Result<T*> ensure(size_t n, const std::shared_ptr<BufferMemory>& memory) {
    if (n <= capacity_ && memory == memory_) return data_;
    release();
    DF11_ASSIGN(void* const data, memory->allocate(n * sizeof(T)));
    data_ = static_cast<T*>(data);
    capacity_ = n;
    memory_ = memory;
    return data_;
  }
  T* data() const { return data_; }

 private:
  void release() {
    if (data_ != nullptr) memory_->deallocate(data_);
    data_ = nullptr;
    capacity_ = 0;
  }
  void swap(DecoderBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(memory_, other.memory_);
  }
  T* data_ = nullptr;
  size_t capacity_ = 0;
  std::shared_ptr<BufferMemory> memory_;
};

// Thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::string_view name() const = 0;  // "cpu", "cuda (NVIDIA H100 80GB HBM3)"
  // Brings the tables of one group into decode-ready form.
  virtual Result<std::unique_ptr<GroupDecoder>> prepare(const LookupTables& tables) const = 0;
  // Blocks of a run for which this decoder works best; it takes runs of any length.
  virtual size_t run_blocks() const = 0;
  // Memory for run buffers; it works with any other, too.
  virtual std::shared_ptr<BufferMemory> memory() const = 0;
};

enum class DeviceChoice : uint8_t {
  kAuto,  // the CPU: reading and hashing bind (spec/cuda_decoder.md, "Verifying a directory")
  kCpu,
  kCuda,
};

// Errors: unsupported when CUDA was asked for and is not there.
Result<std::unique_ptr<Decoder>> make_decoder(DeviceChoice choice);

// The decoder that needs no GPU. Callers spread runs over threads.
std::unique_ptr<Decoder> make_cpu_decoder();

// The decoder on all CUDA devices that are visible, in turn. Callers spread runs over threads: the
// transfers of one overlap with the decoding of others.
// Errors: unsupported, "built without CUDA" or "no CUDA device".
Result<std::unique_ptr<Decoder>> make_cuda_decoder();

// Ordinary memory.
std::shared_ptr<BufferMemory> heap_memory();

}  // namespace df11
