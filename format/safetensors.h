// The safetensors container: header parsing with every rule checked, and header serialisation that
// is byte-equal to the reference implementation's (spec/safetensors.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/bytes.h"
#include "format/error.h"
#include "format/file.h"

namespace df11 {

// Element types of the reference implementation, in its order: the writer sorts by it.
enum class Dtype : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

std::string_view dtype_name(Dtype dtype);  // as in a header: "BF16"
Result<Dtype> parse_dtype(std::string_view name);
uint64_t dtype_bits(Dtype dtype);

using Shape = std::vector<uint64_t>;

// Number of elements; 1 for rank 0. Nothing on overflow.
std::optional<uint64_t> shape_elements(const Shape& shape);
// Size of a dense tensor. Nothing on overflow or when it is no whole number of bytes.
std::optional<uint64_t> tensor_bytes(Dtype dtype, const Shape& shape);
std::string shape_text(const Shape& shape);  // "[4096, 1024]"

struct TensorInfo {
  std::string name;
  Dtype dtype;
  Shape shape;
  uint64_t begin_bytes = 0;  // within the data section
  uint64_t end_bytes = 0;

  uint64_t size_bytes() const { return end_bytes - begin_bytes; }
  uint64_t n_elements() const { return *shape_elements(shape); }
};

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// A valid header: tensors in data order, contiguous from 0 to data_bytes, names unique.
class SafetensorsHeader {
 public:
  // Parses the JSON part of a header for a data section of `data_bytes`.
  // Errors: malformed_safetensors.
  static Result<SafetensorsHeader> parse(std::string_view json, uint64_t data_bytes);

  // Reads and checks a file's header; the file's length must match it exactly.
  // Errors: malformed_safetensors, I/O errors.
  static Result<SafetensorsHeader> read(const File& file);

  // Lays out `tensors` (begin and end are ignored) in the reference writer's order: dtype
  // descending, then name ascending. `metadata` is written in the given order.
  static SafetensorsHeader lay_out(std::vector<TensorInfo> tensors, SafetensorsMetadata metadata);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  // Offset of the data section in the file: 8 + padded length of the JSON.
  uint64_t data_offset_bytes() const { return data_offset_bytes_; }
  uint64_t data_bytes() const { return tensors_.empty() ? 0 : tensors_.back().end_bytes; }
  uint64_t file_bytes() const { return data_offset_bytes_ + data_bytes(); }

  // All bytes before the data section: length and JSON padded with spaces to a multiple of 8.
  std::string serialize() const;

 private:
  std::string to_json() const;
  std::vector<TensorInfo> tensors_;
  SafetensorsMetadata metadata_;
  uint64_t data_offset_bytes_ = 0;
};

}  // namespace df11
