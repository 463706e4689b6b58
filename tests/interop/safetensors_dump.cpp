// safetensors_dump DIR: writes files with headers of our making: mixed dtypes, odd names, empty
// tensors, metadata. The data is a running byte counter.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "format/safetensors.h"
#include "support/random.h"

namespace df11::test {
namespace {

using namespace std::string_literals;
namespace fs = std::filesystem;

TensorInfo info(std::string name, Dtype dtype, Shape shape) {
  return {std::move(name), dtype, std::move(shape)};
}

void write(const fs::path& path, std::vector<TensorInfo> tensors, SafetensorsMetadata metadata) {
  const SafetensorsHeader header =
      SafetensorsHeader::lay_out(std::move(tensors), std::move(metadata));
  std::string bytes = header.serialize();
  for (uint64_t i = 0; i < header.data_bytes(); ++i) bytes += static_cast<char>(i);
  std::ofstream(path, std::ios::binary) << bytes;
}

// All dtypes but F6, which the Python package reads and cannot write.
std::vector<Dtype> writable_dtypes() {
  std::vector<Dtype> dtypes;
  for (int i = 0; i <= static_cast<int>(Dtype::kU64); ++i) {
    const Dtype dtype = static_cast<Dtype>(i);
    if (dtype != Dtype::kF6E2M3 && dtype != Dtype::kF6E3M2) dtypes.push_back(dtype);
  }
  return dtypes;
}

// Shapes of 8 elements, so that the small dtypes are whole bytes too.
std::vector<TensorInfo> tensors_of(const std::vector<Dtype>& dtypes) {
  std::vector<TensorInfo> tensors;
  for (const Dtype dtype : dtypes) {
    tensors.push_back(info("t." + std::string(dtype_name(dtype)), dtype, {2, 4}));
    tensors.push_back(info("s." + std::string(dtype_name(dtype)), dtype, {8}));
    tensors.push_back(info("e." + std::string(dtype_name(dtype)), dtype, {0, 4}));
  }
  return tensors;
}

std::vector<TensorInfo> odd_names() {
  std::vector<TensorInfo> tensors;
  for (const std::string& name : {""s,
                                  " "s,
                                  "\""s,
                                  "\\"s,
                                  "a\"b\\c/d"s,
                                  "\b\f\n\r\t"s,
                                  "\x01\x1f\x7f"s,
                                  "nul\0inside"s,
                                  "é"s,
                                  "漢字"s,
                                  "😀"s,
                                  "\xc2\x80"s,
                                  "\xe2\x80\xa8"s,
                                  "\xef\xbf\xbf"s,
                                  "Z"s,
                                  "a"s,
                                  "a.b"s,
                                  "a/b"s,
                                  "{}[],:"s,
                                  "<script>"s,
                                  "'"s,
                                  "dtype"s,
                                  "__metadata"s,
                                  std::string(300, 'n')}) {
    tensors.push_back(
        info(name, tensors.size() % 2 == 0 ? Dtype::kU8 : Dtype::kBF16, {tensors.size()}));
  }
  return tensors;
}

}  // namespace
}  // namespace df11::test

int main(int argc, char** argv) {
  using namespace df11;
  using namespace df11::test;
  if (argc != 2) {
    std::fputs("usage: safetensors_dump DIR\n", stderr);
    return 2;
  }
  const fs::path directory = argv[1];
  fs::create_directories(directory);
  write(directory / "no_tensors.safetensors", {}, {});
  write(directory / "only_metadata.safetensors", {}, {{"format", "pt"}});
  write(directory / "every_dtype.safetensors", tensors_of(writable_dtypes()), {{"format", "pt"}});
  write(directory / "six_bits.safetensors", tensors_of({Dtype::kF6E2M3, Dtype::kF6E3M2}), {});
  write(directory / "odd_names.safetensors", odd_names(), {{"k\"\n\x01é", "v\\\t\x7f漢"}});
  write(directory / "rank_0.safetensors",
        {info("scalar", Dtype::kF32, {}), info("one", Dtype::kF32, {1, 1, 1})}, {});
  // Every length of padding.
  for (size_t i = 0; i < 8; ++i) {
    write(directory / ("padding_" + std::to_string(i) + ".safetensors"),
          {info(std::string(i + 1, 'x'), Dtype::kBF16, {3})}, {});
  }
  Random random(4);
  const std::vector<Dtype> dtypes = writable_dtypes();
  for (int i = 0; i < 30; ++i) {
    std::vector<TensorInfo> tensors;
    for (uint64_t j = 0, n = random.below(40); j < n; ++j) {
      const Shape shape = {random.below(4), 1 + random.below(3), 8 * random.below(3)};
      tensors.push_back(
          info("layer." + std::to_string(random.below(1000)) + "." + std::to_string(j),
               dtypes[random.below(dtypes.size())], shape));
    }
    write(directory / ("random_" + std::to_string(i) + ".safetensors"), tensors, {});
  }
  return 0;
}
