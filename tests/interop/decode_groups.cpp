// decode_groups DIR: decodes DIR/NAME/upstream/TENSOR.bin of every NAME with the CPU decoder and
// compares with DIR/NAME/words_I.bin. Prints "NAME equal|different|refused: …" for each.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "format/df11_layout.h"
#include "support/group_decoding.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string verdict(const fs::path& directory) {
  GroupTensors group;
  group.luts = read(directory / "upstream/luts.bin");
  group.encoded_exponent = read(directory / "upstream/encoded_exponent.bin");
  group.sign_mantissa = read(directory / "upstream/sign_mantissa.bin");
  group.output_positions = read(directory / "upstream/output_positions.bin");
  group.gaps = read(directory / "upstream/gaps.bin");
  // Upstream leaves out the position of a block that holds only the tail of a last code that ends
  // on a whole byte; whoever reads a group adds it.
  if (group.output_positions.size() / 4 == n_code_blocks(group.encoded_exponent.size())) {
    for (int i = 0; i < 4; ++i) {
      group.output_positions.push_back(static_cast<uint8_t>(group.sign_mantissa.size() >> (8 * i)));
    }
  }
  std::vector<uint8_t> words;
  for (size_t i = 0; fs::exists(directory / ("words_" + std::to_string(i) + ".bin")); ++i) {
    const std::vector<uint8_t> member = read(directory / ("words_" + std::to_string(i) + ".bin"));
    words.insert(words.end(), member.begin(), member.end());
  }
  for (const size_t blocks_per_run : {size_t{1}, size_t{3}, size_t{1} << 30}) {
    const Result<std::vector<uint16_t>> decoded = decode_group(group, blocks_per_run);
    if (!decoded) return "refused: " + decoded.error().describe();
    if (2 * decoded->size() != words.size() ||
        std::memcmp(decoded->data(), words.data(), words.size()) != 0) {
      return "different";
    }
  }
  return "equal";
}

}  // namespace
}  // namespace df11::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: decode_groups DIR\n", stderr);
    return 2;
  }
  std::set<std::filesystem::path> directories;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    directories.insert(entry.path());
  for (const auto& directory : directories) {
    if (!std::filesystem::exists(directory / "upstream/luts.bin")) continue;
    std::printf("%s %s\n", directory.filename().c_str(), df11::test::verdict(directory).c_str());
  }
  return 0;
}
