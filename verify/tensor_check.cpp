#include "verify/tensor_check.h"

#include <algorithm>
#include <optional>
#include <set>

namespace df11 {

namespace {

// The element of `width` bytes at `bytes`, little-endian, as hex.
std::string hex_word(const uint8_t* bytes, size_t width) {
  std::string text = "0x";
  for (size_t i = width; i-- > 0;) text += hex_encode({bytes + i, 1});
  return text;
}

// The first difference of two different pieces of a tensor that begin at `offset_bytes`, a multiple
// of the element's size.
Difference find_difference(Dtype dtype, uint64_t offset_bytes, ByteSpan artifact, ByteSpan source) {
  const size_t at = static_cast<size_t>(
      std::mismatch(artifact.begin(), artifact.end(), source.begin()).first - artifact.begin());
  const bool whole_bytes = dtype_bits(dtype) % 8 == 0;
  const size_t width = whole_bytes ? dtype_bits(dtype) / 8 : 1;
  const size_t begin = at / width * width;
  Difference difference;
  difference.offset_bytes = offset_bytes + begin;
  if (whole_bytes) difference.element = difference.offset_bytes / width;
  difference.artifact_word = hex_word(artifact.data() + begin, width);
  difference.source_word = hex_word(source.data() + begin, width);
  return difference;
}

std::string describe(const Difference& at) {
  return "first difference at " +
         (at.element ? "element " + std::to_string(*at.element)
                     : "byte " + std::to_string(at.offset_bytes)) +
         ": " + at.artifact_word + " in the artifact, " + at.source_word + " in the source";
}

}  // namespace

Result<void> TensorChecker::absorb(Error error) {
  if (!is_damage(error.code)) return fail(std::move(error));
  findings_.add("group_corrupt", error);
  return {};
}

const ExpectedTensor* TensorChecker::expected(const std::string& name) const {
  const auto found = expected_.find(name);
  return found == expected_.end() ? nullptr : &found->second;
}

void TensorChecker::check_tensor_set(bool anything_expected) {
  const auto file_of = [&](const TensorLocation& tensor) {
    return artifact_.shards().shards()[tensor.shard].name;
  };
  std::set<std::string> present;
  const auto see = [&](const std::string& name, const std::string& file) {
    if (!present.insert(name).second) {
      findings_.add({"tensor_duplicate", file, name, "stored twice in the artifact"});
    }
    const ExpectedTensor* tensor = expected(name);
    if (tensor == nullptr && anything_expected)
      findings_.add({"tensor_extra", file, name, "not in the source"});
    return tensor;
  };
  for (const TensorLocation* tensor : artifact_.verbatim()) {
    const std::string file = file_of(*tensor);
    const ExpectedTensor* wanted = see(tensor->info.name, file);
    if (wanted == nullptr) continue;
    if (wanted->dtype != tensor->info.dtype || wanted->shape != tensor->info.shape) {
      findings_.add({"tensor_differs", file, tensor->info.name,
                     std::string(dtype_name(tensor->info.dtype)) + " " +
                         shape_text(tensor->info.shape) + " in the artifact, " +
                         std::string(dtype_name(wanted->dtype)) + " " + shape_text(wanted->shape) +
                         " in the source"});
    }
  }
  for (const GroupEntry& group : artifact_.groups()) {
    for (const std::string& member : group.members) {
      const std::string file = file_of(*group.encoded_exponent);
      const ExpectedTensor* wanted = see(member, file);
      if (wanted != nullptr && wanted->dtype != Dtype::kBF16) {
        findings_.add({"tensor_differs", file, member,
                       "coded as BF16 in the artifact, " + std::string(dtype_name(wanted->dtype)) +
                           " in the source"});
      }
    }
  }
  for (const auto& [name, tensor] : expected_) {
    if (!present.contains(name)) findings_.add({"tensor_missing", "", name, "not in the artifact"});
  }
}

std::vector<TensorChecker::Piece> TensorChecker::pieces_of_run(
    const Group& group, uint64_t first_element, std::span<const uint16_t> words) const {
  std::vector<Piece> pieces;
  uint64_t member_begin = 0;
  const uint64_t end_element = first_element + words.size();
  for (size_t i = 0; i < group.member_elements.size(); ++i) {
    const uint64_t member_end = member_begin + group.member_elements[i];
    const uint64_t begin = std::max(member_begin, first_element),
                   end = std::min(member_end, end_element);
    if (begin < end) {
      const auto part = words.subspan(begin - first_element, end - begin);
      pieces.push_back({&group.entry->members[i],
                        expected(group.entry->members[i]),
                        2 * (begin - member_begin),
                        {reinterpret_cast<const uint8_t*>(part.data()), part.size_bytes()}});
    }
    member_begin = member_end;
  }
  return pieces;
}

Result<void> TensorChecker::compare_with_source(Piece& piece, Buffers& buffers) {
  if (source_ == nullptr || piece.expected == nullptr) return {};
  // As much at a time as stays in a core's cache until it is compared.
  constexpr size_t kCompareBytes = size_t{128} << 10;
  for (size_t begin = 0; begin < piece.bytes.size() && !piece.difference; begin += kCompareBytes) {
    const ByteSpan stored =
        piece.bytes.subspan(begin, std::min(kCompareBytes, piece.bytes.size() - begin));
    DF11_ASSIGN(const ByteSpan bytes,
                source_->read(*piece.expected->source, piece.offset_bytes + begin, stored.size(),
                              buffers.source_bytes));
    if (std::memcmp(bytes.data(), stored.data(), bytes.size()) != 0) {
      piece.difference =
          find_difference(piece.expected->dtype, piece.offset_bytes + begin, stored, bytes);
    }
  }
  return {};
}

void TensorChecker::finish_tensor(OrderedCheck& check, const std::string& file) {
  if (check.expected != nullptr && check.expected->xxh3_128 && !check.reported) {
    const Xxh128 digest = check.hasher.digest();
    if (digest != *check.expected->xxh3_128) {
      findings_.add({"tensor_differs", file, *check.tensor,
                     "XXH3-128 is " + digest.hex() + ", the manifest has " +
                         check.expected->xxh3_128->hex()});
    }
  }
  check = OrderedCheck();
}

void TensorChecker::take_in_order(OrderedCheck& check, const Piece& piece,
                                  const std::string& file) {
  if (check.tensor != piece.tensor) {
    if (check.tensor != nullptr) finish_tensor(check, file);
    check.tensor = piece.tensor;
    check.expected = piece.expected;
  }
  if (piece.difference && !check.reported) {
    check.reported = true;
    findings_.add(
        {"tensor_differs", file, *piece.tensor, describe(*piece.difference), piece.difference});
  }
  if (piece.expected != nullptr && piece.expected->xxh3_128) check.hasher.update(piece.bytes);
}

bool TensorChecker::members_fit(const Group& group, const std::string& file) {
  for (size_t i = 0; i < group.entry->members.size(); ++i) {
    const std::string& member = group.entry->members[i];
    const ExpectedTensor* wanted = expected(member);
    if (wanted == nullptr) continue;
    const uint64_t n_elements = *shape_elements(wanted->shape);
    if (n_elements != group.member_elements[i] || wanted->dtype != Dtype::kBF16) {
      findings_.add({"tensor_differs", file, member,
                     std::to_string(group.member_elements[i]) + " weights in the artifact, " +
                         std::to_string(n_elements) + " in the source"});
      return false;
    }
  }
  return true;
}

Result<void> TensorChecker::check_group_structure(const GroupEntry& entry) {
  Result<Group> group = artifact_.load_group(entry);
  if (!group) return absorb(std::move(group).error());
  members_fit(*group, artifact_.shards().shards()[entry.encoded_exponent->shard].name);
  return {};
}

Result<void> TensorChecker::check_group(const GroupEntry& entry) {
  const std::string& file = artifact_.shards().shards()[entry.encoded_exponent->shard].name;
  Result<GroupReader> reader = GroupReader::open(artifact_, entry, decoder_);
  if (!reader) return absorb(std::move(reader).error());
  const Group& group = reader->group();
  if (!members_fit(group, file)) return {};

  std::vector<std::optional<Pool<Buffers>::Lease>> held(reader->n_runs());
  std::vector<std::vector<Piece>> pieces(reader->n_runs());
  OrderedCheck check;
  const auto decode = [&](size_t i) -> Result<void> {
    held[i].emplace(buffers_.take());
    DF11_ASSIGN(const std::span<const uint16_t> words, reader->decode_run(i, (*held[i])->run));
    pieces[i] = pieces_of_run(group, reader->first_element(i), words);
    for (Piece& piece : pieces[i]) DF11_TRY(compare_with_source(piece, **held[i]));
    return {};
  };
  const auto finish_run = [&](size_t i) -> Result<void> {
    for (const Piece& piece : pieces[i]) take_in_order(check, piece, file);
    pieces[i].clear();
    held[i].reset();
    progress_.add(2 * (reader->first_element(i + 1) - reader->first_element(i)));
    return {};
  };
  Result<void> done = executor_.for_each_ordered(
      reader->n_runs(), static_cast<size_t>(executor_.n_threads()) + 1, decode, finish_run);
  if (!done) return absorb(std::move(done).error());
  finish_tensor(check, file);
  ++n_groups_;
  n_tensors_ += entry.members.size();
  weight_bytes_ += 2 * entry.n_elements();
  return {};
}

Result<void> TensorChecker::check_verbatim(const TensorLocation& tensor) {
  const std::string& file = artifact_.shards().shards()[tensor.shard].name;
  const ExpectedTensor* wanted = expected(tensor.info.name);
  const uint64_t n_bytes = tensor.info.size_bytes();
  if (wanted == nullptr || tensor_bytes(wanted->dtype, wanted->shape) != n_bytes)
    return {};  // a finding already
  const auto buffers = buffers_.take();
  OrderedCheck check{&tensor.info.name, wanted};
  const auto check_chunk = [&](ByteSpan chunk, uint64_t offset) -> Result<void> {
    DF11_TRY(executor_.check_cancelled());
    Piece piece{&tensor.info.name, wanted, offset, chunk};
    DF11_TRY(compare_with_source(piece, *buffers));
    take_in_order(check, piece, file);
    progress_.add(chunk.size());
    return {};
  };
  DF11_TRY(artifact_.shards().shards()[tensor.shard].file.for_each_chunk(tensor.file_offset_bytes,
                                                                         n_bytes, check_chunk));
  finish_tensor(check, file);
  ++n_tensors_;
  weight_bytes_ += n_bytes;
  return {};
}

}  // namespace df11
