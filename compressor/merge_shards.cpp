#include "compressor/merge_shards.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace df11 {

namespace {

// As `transformers` writes it.
const SafetensorsMetadata kMetadata = {{"format", "pt"}};

// At most what a part adds to the bytes before a file's data: what it needs as a file of its own,
// and the digits by which its offsets grow in a longer one.
uint64_t header_bound_bytes(const SafetensorsHeader& header) {
  constexpr uint64_t kOffsetDigits = 2 * 20;
  return header.data_offset_bytes() + kOffsetDigits * header.tensors().size();
}

std::string numbered(std::string_view stem, size_t i, size_t n) {
  if (n == 1) return std::string(stem) + std::string(kSafetensorsSuffix);
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", i + 1, n);
  return std::string(stem) + numbers + std::string(kSafetensorsSuffix);
}

}  // namespace

Result<std::vector<ShardJob>> merge_shards(std::vector<ShardJob> counted, uint64_t max_bytes,
                                           std::string_view stem) {
  std::vector<ShardJob> parts;
  for (ShardJob& job : counted) {
    for (ShardJob& part : std::move(job).split()) parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const ShardJob& a, const ShardJob& b) {
    return a.source_position() < b.source_position();
  });
  std::vector<ShardJob> files;
  uint64_t file_bytes = 0, header_bytes = 0;  // of the last one, at most
  for (ShardJob& part : parts) {
    DF11_TRY(part.lay_out("", kMetadata));
    const uint64_t part_header_bytes = header_bound_bytes(part.header());
    const uint64_t part_bytes = part_header_bytes + part.header().data_bytes();
    if (!files.empty() && file_bytes + part_bytes <= max_bytes &&
        header_bytes + part_header_bytes <= kMaxSafetensorsHeaderBytes) {
      files.back().absorb(std::move(part));
      file_bytes += part_bytes;
      header_bytes += part_header_bytes;
    } else {
      files.push_back(std::move(part));
      file_bytes = part_bytes;
      header_bytes = part_header_bytes;
    }
  }
  for (size_t i = 0; i < files.size(); ++i) {
    DF11_TRY(files[i].lay_out(numbered(stem, i, files.size()), kMetadata));
  }
  return files;
}

}  // namespace df11
