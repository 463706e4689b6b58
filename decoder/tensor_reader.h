// The tensors of the source as an artifact holds them, verbatim or in groups, read piece by piece.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "decoder/decoder.h"
#include "decoder/group_reader.h"
#include "format/artifact.h"
#include "format/bytes.h"

namespace df11 {

// Where one tensor of the source is: stored as it is, or member `member` of `group`.
struct StoredTensor {
  const TensorLocation* verbatim = nullptr;
  const GroupEntry* group = nullptr;
  size_t member = 0;

  // No more than so many bytes, by the headers alone: a group's are those of all its members.
  uint64_t max_bytes() const {
    return verbatim != nullptr ? verbatim->info.size_bytes() : 2 * group->n_elements();
  }
};

// By name. `artifact` must outlive the result. malformed_group when it holds a tensor twice.
Result<std::map<std::string, StoredTensor>> stored_tensors(const Artifact& artifact);

// Buffers of one piece; reuse them.
struct PieceBuffers {
  RunBuffers run;
  FileBuffer verbatim;
};

struct TensorPiece {
  uint64_t offset_bytes;  // within the tensor
  ByteSpan bytes;
};

class TensorReader {
 public:
  // `artifact` must outlive the reader. Errors: malformed_group, I/O errors.
  static Result<TensorReader> open(const Artifact& artifact, const StoredTensor& tensor,
                                   const Decoder& decoder);

  uint64_t size_bytes() const { return size_bytes_; }
  // Pieces follow each other and make up the tensor.
  size_t n_pieces() const;
  // Reads, and if need be decodes, piece `i`; its bytes are in `buffers`.
  // Errors: corrupt_stream with group and file, I/O errors. Thread-safe.
  Result<TensorPiece> read(size_t i, PieceBuffers& buffers) const;

 private:
  const Artifact* artifact_ = nullptr;
  const TensorLocation* verbatim_ = nullptr;
  std::optional<GroupReader> group_;
  uint64_t first_element_ = 0;  // in the group
  uint64_t size_bytes_ = 0;
};

}  // namespace df11
