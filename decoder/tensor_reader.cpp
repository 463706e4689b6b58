#include "decoder/tensor_reader.h"

#include <algorithm>

namespace df11 {

Result<std::map<std::string, StoredTensor>> stored_tensors(const Artifact& artifact) {
  std::map<std::string, StoredTensor> tensors;
  for (const TensorLocation* tensor : artifact.verbatim())
    tensors[tensor->info.name] = {tensor, nullptr, 0};
  for (const GroupEntry& group : artifact.groups()) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      if (!tensors.try_emplace(group.members[i], StoredTensor{nullptr, &group, i}).second) {
        return fail(Error{ErrorCode::malformed_group,
                          "the artifact holds it twice",
                          artifact.directory().string(),
                          group.members[i],
                          {}});
      }
    }
  }
  return tensors;
}

Result<TensorReader> TensorReader::open(const Artifact& artifact, const StoredTensor& tensor,
                                        const Decoder& decoder) {
  TensorReader reader;
  reader.artifact_ = &artifact;
  reader.verbatim_ = tensor.verbatim;
  if (tensor.verbatim != nullptr) {
    reader.size_bytes_ = tensor.verbatim->info.size_bytes();
    return reader;
  }
  DF11_ASSIGN(reader.group_,
              GroupReader::open_member(artifact, *tensor.group, tensor.member, decoder));
  const Group& group = reader.group_->group();
  reader.first_element_ = group.first_element(tensor.member);
  reader.size_bytes_ = 2 * group.member_elements[tensor.member];
  return reader;
}

size_t TensorReader::n_pieces() const {
  return group_ ? group_->n_runs() : ceil_div(size_bytes_, kChunkBytes);
}

Result<TensorPiece> TensorReader::read(size_t i, PieceBuffers& buffers) const {
  if (verbatim_ != nullptr) {
    const uint64_t offset = i * kChunkBytes;
    const size_t n_bytes = std::min<uint64_t>(kChunkBytes, size_bytes_ - offset);
    DF11_ASSIGN(const ByteSpan bytes,
                artifact_->shards().read(*verbatim_, offset, n_bytes, buffers.verbatim));
    return TensorPiece{offset, bytes};
  }
  DF11_ASSIGN(const std::span<const uint16_t> words, group_->decode_run(i, buffers.run));
  // A run at either end may hold weights of the member's neighbours.
  const uint64_t run_begin = group_->first_element(i);
  const uint64_t begin = std::max(run_begin, first_element_);
  const uint64_t end = std::min(run_begin + words.size(), first_element_ + size_bytes_ / 2);
  const std::span<const uint16_t> own = words.subspan(begin - run_begin, end - begin);
  return TensorPiece{2 * (begin - first_element_),
                     {reinterpret_cast<const uint8_t*>(own.data()), own.size_bytes()}};
}

}  // namespace df11
