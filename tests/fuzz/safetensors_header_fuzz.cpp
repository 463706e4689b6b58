// Input: the size of the data section (8 bytes), then a header's JSON. Whatever is accepted covers
// the data section without holes, and survives writing and reading.
#include <algorithm>
#include <tuple>

#include "format/safetensors.h"
#include "fuzz_input.h"

using namespace df11;
using df11::test::require;

namespace {

// Name, dtype, shape of each tensor, by name.
auto described(const SafetensorsHeader& header) {
  std::vector<std::tuple<std::string, Dtype, Shape>> list;
  for (const TensorInfo& info : header.tensors())
    list.emplace_back(info.name, info.dtype, info.shape);
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  test::FuzzInput input(data, n_bytes);
  const uint64_t data_bytes = input.take(8);
  const Result<SafetensorsHeader> header = SafetensorsHeader::parse(input.text(), data_bytes);
  if (!header) return 0;

  uint64_t end = 0;
  for (const TensorInfo& info : header->tensors()) {
    require(info.begin_bytes == end, "no holes");
    require(tensor_bytes(info.dtype, info.shape) == info.size_bytes(), "sizes are those of shapes");
    end = info.end_bytes;
  }
  require(end == data_bytes && header->data_bytes() == data_bytes, "the data is covered");

  const SafetensorsHeader written =
      SafetensorsHeader::lay_out(header->tensors(), header->metadata());
  const std::string bytes = written.serialize();
  require(bytes.size() == written.data_offset_bytes() && bytes.size() % 8 == 0, "padded size");
  const Result<SafetensorsHeader> again =
      SafetensorsHeader::parse(std::string_view(bytes).substr(8), data_bytes);
  require(again.has_value(), "what is written can be read");
  require(described(*again) == described(*header), "the same tensors");
  require(again->metadata() == header->metadata(), "the same metadata");
  require(again->serialize() == bytes, "the same bytes");
  return 0;
}
