// codec_dump groups|slow DIR   writes every named input and our six tensors of it:
//                              DIR/NAME/words_I.bin, DIR/NAME/df11/TENSOR.bin, DIR/NAME/rule
// codec_dump codebooks DIR     writes DIR/NAME/{counts.bin,luts.bin,rule} for many exponent counts
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compressor/group_encoder.h"
#include "support/histograms.h"
#include "support/named_inputs.h"
#include "support/reference_encoder.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const void* data, size_t n_bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(n_bytes));
}
void write(const fs::path& path, ByteSpan bytes) {
  write(path, bytes.data(), bytes.size());
}

void write_rule(const fs::path& path, CodeRule rule) {
  const std::string name = rule == CodeRule::kHuffman        ? "huffman"
                           : rule == CodeRule::kRaisedCounts ? "raised_counts"
                                                             : "length_limited";
  write(path, name.data(), name.size());
}

void dump_group(const NamedInput& input, const fs::path& directory) {
  for (size_t i = 0; i < input.members.size(); ++i) {
    write(directory / ("words_" + std::to_string(i) + ".bin"), input.members[i].data(),
          2 * input.members[i].size());
  }
  const GroupTensors group = *encode_group(input.spans(), Executor(), 100'003);
  write(directory / "df11/luts.bin", group.luts);
  write(directory / "df11/encoded_exponent.bin", group.encoded_exponent);
  write(directory / "df11/sign_mantissa.bin", group.sign_mantissa);
  write(directory / "df11/output_positions.bin", group.output_positions);
  write(directory / "df11/gaps.bin", group.gaps);
  write(directory / "df11/split_positions.bin", group.split_positions);
  write_rule(directory / "rule", build_codebook(exponent_counts(input.words()))->rule);
}

int run(const std::string& what, const fs::path& directory) {
  if (what == "groups") {
    for (const NamedInput& input : named_inputs()) dump_group(input, directory / input.name);
  } else if (what == "slow") {
    for (const NamedInput& input : slow_inputs()) dump_group(input, directory / input.name);
  } else if (what == "codebooks") {
    for (const NamedHistogram& histogram : named_histograms(1200)) {
      const Codebook book = *build_codebook(histogram.counts);
      write(directory / histogram.name / "counts.bin", histogram.counts.data(),
            sizeof histogram.counts);
      write(directory / histogram.name / "luts.bin", book.luts.bytes());
      write_rule(directory / histogram.name / "rule", book.rule);
    }
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace df11::test

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: codec_dump groups|slow|codebooks DIR\n", stderr);
    return 2;
  }
  return df11::test::run(argv[1], argv[2]);
}
