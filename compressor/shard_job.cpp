#include "compressor/shard_job.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "format/df11_layout.h"

namespace df11 {

namespace {

constexpr size_t kSliceBytes = kSliceElements * sizeof(uint16_t);

std::span<const uint16_t> as_words(const uint8_t* bytes, size_t n_bytes) {
  return {reinterpret_cast<const uint16_t*>(bytes), n_bytes / sizeof(uint16_t)};
}

std::string_view rule_name(CodeRule rule) {
  switch (rule) {
    case CodeRule::kHuffman: return "huffman";
    case CodeRule::kRaisedCounts: return "huffman_raised_counts";
    case CodeRule::kLengthLimited: return "length_limited";
  }
  return "";
}

// Why a group with this histogram cannot be coded by any codebook; empty when it can.
std::string reason_uncodable(const Histogram& histogram) {
  const uint64_t n = std::accumulate(histogram.begin() + kFirstLink, histogram.end(), uint64_t{0});
  if (n == 0) return "";
  return std::to_string(n) + " weights with exponents of 240 or more (2^113 and up, Inf or NaN)";
}

class FileSink final : public GroupSink {
 public:
  FileSink(const File& file, std::array<uint64_t, 4> stream_offsets)
      : file_(file), stream_offsets_(stream_offsets) {}
  Result<void> write(GroupStream stream, uint64_t offset_bytes, ByteSpan bytes) override {
    return file_.write_exact(bytes, stream_offsets_[static_cast<size_t>(stream)] + offset_bytes);
  }

 private:
  const File& file_;
  std::array<uint64_t, 4> stream_offsets_;  // by GroupStream
};

TensorInfo byte_tensor(const std::string& module, std::string_view name, Shape shape) {
  return {module + "." + std::string(name), Dtype::kU8, std::move(shape), 0, 0};
}

}  // namespace

std::vector<ShardJob::Slice> ShardJob::slices_of(const TensorLocation& tensor) {
  std::vector<Slice> slices;
  const uint64_t n_bytes = tensor.info.size_bytes();
  for (uint64_t offset = 0; offset < n_bytes; offset += kSliceBytes) {
    slices.push_back(
        {&tensor, offset, static_cast<size_t>(std::min<uint64_t>(kSliceBytes, n_bytes - offset))});
  }
  return slices;
}

ManifestTensor ShardJob::manifest_tensor(const TensorLocation& tensor) const {
  ManifestTensor entry;
  entry.name = tensor.info.name;
  entry.dtype = tensor.info.dtype;
  entry.shape = tensor.info.shape;
  entry.source_file = checkpoint_->shards().shards()[tensor.shard].name;
  return entry;
}

void ShardJob::keep_verbatim(const PlannedGroup& group, const std::vector<Xxh128>& hashes,
                             const std::string& reason) {
  for (size_t i = 0; i < group.members.size(); ++i) {
    verbatim_.push_back({group.members[i], tensors_.size(), !hashes.empty()});
    tensors_.push_back(manifest_tensor(*group.members[i]));
    tensors_.back().reason = reason;
    if (!hashes.empty()) tensors_.back().xxh3_128 = hashes[i];
  }
}

Result<void> ShardJob::count_group(const PlannedGroup& group, const Executor& executor,
                                   Progress& progress) {
  if (group.n_elements() > kMaxGroupElements) {
    keep_verbatim(group, {}, "2^31 weights or more");
    return {};
  }
  CodedGroup coded{&group, {}};
  for (const TensorLocation* member : group.members) {
    const std::vector<Slice> slices = slices_of(*member);
    coded.slices.insert(coded.slices.end(), slices.begin(), slices.end());
  }
  const size_t n_slices = coded.slices.size();
  std::vector<SliceCounts> counts(n_slices);
  std::vector<std::optional<Pool<ScratchBuffer<uint8_t>>::Lease>> held(n_slices);
  std::vector<Xxh128> hashes;
  Xxh128Hasher hasher;
  DF11_TRY(executor.for_each_ordered(
      n_slices, static_cast<size_t>(executor.n_threads()) + 1,
      [&](size_t i) -> Result<void> {
        const Slice& slice = coded.slices[i];
        held[i].emplace(buffers_->chunks.take());
        uint8_t* bytes = (*held[i])->ensure(kSliceBytes);
        DF11_TRY(checkpoint_->shards().read(*slice.tensor, slice.offset_bytes,
                                            {bytes, slice.size_bytes}));
        counts[i] = SliceCounts::of(as_words(bytes, slice.size_bytes));
        return {};
      },
      [&](size_t i) -> Result<void> {
        const Slice& slice = coded.slices[i];
        hasher.update({(*held[i])->data(), slice.size_bytes});
        held[i].reset();
        progress.add(slice.size_bytes);
        if (i + 1 == n_slices || coded.slices[i + 1].tensor != slice.tensor) {
          hashes.push_back(hasher.digest());
          hasher = Xxh128Hasher();
        }
        return {};
      }));

  Histogram histogram{};
  for (const SliceCounts& slice : counts) {
    for (size_t i = 0; i < histogram.size(); ++i) histogram[i] += slice.counts[i];
  }
  if (const std::string reason = reason_uncodable(histogram); !reason.empty()) {
    keep_verbatim(group, hashes, reason);
    return {};
  }
  Result<GroupPlan> code = GroupPlan::make(counts);
  if (!code && code.error().code == ErrorCode::limit_exceeded) {
    keep_verbatim(group, hashes, "2^31 code bytes or more");
    return {};
  }
  if (!code) return fail(std::move(code).error().in_tensor(group.module));
  const uint64_t raw_bytes = 2 * code->n_elements();
  const uint64_t stored_bytes = code->tensor_bytes(group.members.size());
  if (stored_bytes >= raw_bytes) {
    keep_verbatim(group, hashes, "coding would not make it smaller");
    return {};
  }
  groups_.push_back({group.module, "", code->n_elements(), code->n_code_bytes(), stored_bytes,
                     entropy_bits(histogram), code->codebook().luts.longest_code_bits(),
                     std::string(rule_name(code->codebook().rule))});
  coded.manifest_index = tensors_.size();
  for (size_t i = 0; i < group.members.size(); ++i) {
    tensors_.push_back(manifest_tensor(*group.members[i]));
    tensors_.back().group = group.module;
    tensors_.back().xxh3_128 = hashes[i];
  }
  coded.code = std::move(*code);
  coded_.push_back(std::move(coded));
  return {};
}

Result<void> ShardJob::count(const Executor& executor, Progress& progress) {
  for (const PlannedGroup& group : plan_->groups) DF11_TRY(count_group(group, executor, progress));
  for (const VerbatimTensor& verbatim : plan_->verbatim) {
    verbatim_.push_back({verbatim.tensor, tensors_.size(), false});
    tensors_.push_back(manifest_tensor(*verbatim.tensor));
    tensors_.back().reason = verbatim.reason;
  }
  return lay_out(file_name_);
}

std::vector<ShardJob> ShardJob::split() && {
  std::vector<ShardJob> parts;
  for (size_t i = 0; i < coded_.size(); ++i) {  // groups_ is in the order of coded_
    ShardJob& part = parts.emplace_back(*checkpoint_, *plan_, *buffers_);
    const auto first = tensors_.begin() + static_cast<ptrdiff_t>(coded_[i].manifest_index);
    const auto n_members = static_cast<ptrdiff_t>(coded_[i].plan->members.size());
    part.tensors_.assign(first, first + n_members);
    part.groups_.push_back(std::move(groups_[i]));
    part.coded_.push_back(std::move(coded_[i]));
    part.coded_.back().manifest_index = 0;
  }
  for (const VerbatimCopy& copy : verbatim_) {
    ShardJob& part = parts.emplace_back(*checkpoint_, *plan_, *buffers_);
    part.tensors_.push_back(std::move(tensors_[copy.manifest_index]));
    part.verbatim_.push_back({copy.tensor, 0, copy.hashed});
  }
  return parts;
}

void ShardJob::absorb(ShardJob&& other) {
  const size_t n_tensors = tensors_.size();
  for (CodedGroup& group : other.coded_) {
    group.manifest_index += n_tensors;
    coded_.push_back(std::move(group));
  }
  for (VerbatimCopy& copy : other.verbatim_) {
    copy.manifest_index += n_tensors;
    verbatim_.push_back(copy);
  }
  std::move(other.tensors_.begin(), other.tensors_.end(), std::back_inserter(tensors_));
  std::move(other.groups_.begin(), other.groups_.end(), std::back_inserter(groups_));
}

std::pair<size_t, uint64_t> ShardJob::source_position() const {
  const TensorLocation& tensor =
      coded_.empty() ? *verbatim_.front().tensor : *coded_.front().plan->members.front();
  return {tensor.shard, tensor.file_offset_bytes};
}

Result<void> ShardJob::lay_out(std::string file_name) {
  file_name_ = std::move(file_name);
  for (ManifestGroup& group : groups_) group.file = file_name_;
  std::vector<TensorInfo> infos;
  for (const VerbatimCopy& copy : verbatim_) infos.push_back(copy.tensor->info);
  for (const CodedGroup& group : coded_) {
    const std::string& module = group.plan->module;
    const uint64_t n_code_bytes = group.code->n_code_bytes();
    infos.push_back(
        byte_tensor(module, kLutsName, {group.code->codebook().luts.n_rows(), kLutRowBytes}));
    infos.push_back(byte_tensor(module, kEncodedExponentName, {n_code_bytes}));
    infos.push_back(byte_tensor(module, kSignMantissaName, {group.code->n_elements()}));
    infos.push_back(byte_tensor(module, kGapsName, {gaps_bytes(n_code_bytes)}));
    infos.push_back(
        byte_tensor(module, kOutputPositionsName, {4 * n_output_positions(n_code_bytes)}));
    infos.push_back({module + "." + std::string(kSplitPositionsName),
                     Dtype::kI64,
                     {group.plan->members.size() - 1},
                     0,
                     0});
  }
  header_ = SafetensorsHeader::lay_out(std::move(infos), {{"format", "pt"}});
  if (header_.data_offset_bytes() - 8 > kMaxSafetensorsHeaderBytes) {
    return fail(Error{ErrorCode::limit_exceeded,
                      "its header would exceed the format's limit",
                      file_name_,
                      {},
                      {}});
  }
  return {};
}

uint64_t ShardJob::work_bytes() const {
  uint64_t bytes = 0;
  for (const PlannedGroup& group : plan_->groups) bytes += 2 * 2 * group.n_elements();
  for (const VerbatimTensor& verbatim : plan_->verbatim)
    bytes += verbatim.tensor->info.size_bytes();
  return bytes;
}

std::set<size_t> ShardJob::source_shards() const {
  std::set<size_t> shards;
  for (const PlannedGroup& group : plan_->groups) {
    for (const TensorLocation* member : group.members) shards.insert(member->shard);
  }
  for (const VerbatimTensor& verbatim : plan_->verbatim) shards.insert(verbatim.tensor->shard);
  return shards;
}

uint64_t ShardJob::offset_of(const std::string& tensor) const {
  const auto& infos = header_.tensors();
  const auto found = std::find_if(infos.begin(), infos.end(),
                                  [&](const auto& info) { return info.name == tensor; });
  return header_.data_offset_bytes() + found->begin_bytes;
}

Result<void> ShardJob::write_group(const CodedGroup& group, const File& file,
                                   const Executor& executor, Progress& progress) {
  const auto offset = [&](std::string_view name) {
    return offset_of(group.plan->module + "." + std::string(name));
  };
  DF11_TRY(file.write_exact(group.code->codebook().luts.bytes(), offset(kLutsName)));
  std::vector<uint64_t> member_elements;
  for (const TensorLocation* member : group.plan->members)
    member_elements.push_back(member->info.n_elements());
  DF11_TRY(file.write_exact(split_positions_bytes(member_elements), offset(kSplitPositionsName)));

  FileSink sink(file, {offset(kEncodedExponentName), offset(kSignMantissaName), offset(kGapsName),
                       offset(kOutputPositionsName)});
  GroupEncoder encoder(*group.code, sink);
  Result<void> encoded = executor.for_each(group.slices.size(), [&](size_t i) -> Result<void> {
    const Slice& slice = group.slices[i];
    const auto chunk = buffers_->chunks.take();
    const auto scratch = buffers_->encoders.take();
    uint8_t* bytes = chunk->ensure(kSliceBytes);
    DF11_TRY(
        checkpoint_->shards().read(*slice.tensor, slice.offset_bytes, {bytes, slice.size_bytes}));
    DF11_TRY(encoder.encode(i, as_words(bytes, slice.size_bytes), *scratch));
    progress.add(slice.size_bytes);
    return {};
  });
  if (!encoded) return fail(std::move(encoded).error().in_tensor(group.plan->module));
  return encoder.finish();
}

Result<void> ShardJob::copy_verbatim(const VerbatimCopy& copy, const File& file,
                                     const Executor& executor, Progress& progress) {
  const uint64_t begin = offset_of(copy.tensor->info.name);
  const std::vector<Slice> slices = slices_of(*copy.tensor);
  std::vector<std::optional<Pool<ScratchBuffer<uint8_t>>::Lease>> held(slices.size());
  Xxh128Hasher hasher;
  DF11_TRY(executor.for_each_ordered(
      slices.size(), static_cast<size_t>(executor.n_threads()) + 1,
      [&](size_t i) -> Result<void> {
        held[i].emplace(buffers_->chunks.take());
        const MutableByteSpan bytes{(*held[i])->ensure(kSliceBytes), slices[i].size_bytes};
        DF11_TRY(checkpoint_->shards().read(*copy.tensor, slices[i].offset_bytes, bytes));
        return file.write_exact(bytes, begin + slices[i].offset_bytes);
      },
      [&](size_t i) -> Result<void> {
        if (!copy.hashed) hasher.update({(*held[i])->data(), slices[i].size_bytes});
        held[i].reset();
        progress.add(slices[i].size_bytes);
        return {};
      }));
  if (!copy.hashed) tensors_[copy.manifest_index].xxh3_128 = hasher.digest();
  return {};
}

Result<Sha256> ShardJob::write(const std::filesystem::path& directory, const Executor& executor,
                               Progress& progress) {
  DF11_ASSIGN(const File file, File::create(directory / file_name_));
  DF11_TRY(file.preallocate(header_.file_bytes()));
  const std::string head = header_.serialize();
  DF11_TRY(file.write_exact({reinterpret_cast<const uint8_t*>(head.data()), head.size()}, 0));
  for (const CodedGroup& group : coded_) DF11_TRY(write_group(group, file, executor, progress));
  for (const VerbatimCopy& copy : verbatim_)
    DF11_TRY(copy_verbatim(copy, file, executor, progress));
  coded_.clear();
  Progress not_shown;  // reading back what was just written is no progress in source bytes
  DF11_ASSIGN(const Sha256 digest, sha256_of_file(file, header_.file_bytes(), executor, not_shown));
  DF11_TRY(file.sync());
  return digest;
}

}  // namespace df11
