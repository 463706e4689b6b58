// header_probe FILE: reads records (length as u64, then that many bytes of a safetensors file) from
// FILE and prints one line each: "accepted N_TENSORS" or "refused MESSAGE".
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "format/json.h"
#include "format/safetensors.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

int run(const std::filesystem::path& path) {
  const TemporaryDirectory directory;
  std::ifstream records(path, std::ios::binary);
  uint64_t n_bytes;
  while (records.read(reinterpret_cast<char*>(&n_bytes), sizeof n_bytes)) {
    std::string content(n_bytes, '\0');
    if (!records.read(content.data(), static_cast<std::streamsize>(n_bytes))) return 2;
    std::ofstream(directory / "f", std::ios::binary | std::ios::trunc) << content;
    const Result<File> file = File::open_read(directory / "f");
    if (!file) return 2;
    const Result<SafetensorsHeader> header = SafetensorsHeader::read(*file);
    if (header)
      std::printf("accepted %zu\n", header->tensors().size());
    else
      std::printf("refused %s\n", json_quote(header.error().message).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace df11::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: header_probe FILE\n", stderr);
    return 2;
  }
  return df11::test::run(argv[1]);
}
