#include "compressor/shard_job.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "format/df11_layout.h"
#include "format/version.h"

namespace df11 {

namespace {

constexpr size_t kSliceBytes = kSliceElements * sizeof(uint16_t);

// `bytes` lie at an even address.
std::span<const uint16_t> as_words(ByteSpan bytes) {
  return {reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / sizeof(uint16_t)};
}

std::string_view rule_name(CodeRule rule) {
  switch (rule) {
    case CodeRule::kHuffman: return "huffman";
    case CodeRule::kRaisedCounts: return "huffman_raised_counts";
    case CodeRule::kLengthLimited: return "length_limited";
  }
  return "";
}

Histogram sum_of(const std::vector<SliceCounts>& slices) {
  Histogram histogram{};
  for (const SliceCounts& slice : slices) {
    for (size_t i = 0; i < histogram.size(); ++i) histogram[i] += slice.counts[i];
  }
  return histogram;
}

// Why weights with this histogram cannot be coded by any codebook; empty when they can.
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

Result<ByteSpan> ShardJob::read(const Slice& slice, FileBuffer& buffer) const {
  return checkpoint_->shards().read(*slice.tensor, slice.offset_bytes, slice.size_bytes, buffer);
}

ManifestTensor ShardJob::manifest_tensor(const TensorLocation& tensor) const {
  ManifestTensor entry;
  entry.name = tensor.info.name;
  entry.dtype = tensor.info.dtype;
  entry.shape = tensor.info.shape;
  entry.source_file = checkpoint_->shards().shards()[tensor.shard].name;
  return entry;
}

void ShardJob::keep_verbatim(const TensorLocation& tensor, const std::optional<Xxh128>& hash,
                             const std::string& reason) {
  verbatim_.push_back({&tensor, tensors_.size(), hash.has_value()});
  tensors_.push_back(manifest_tensor(tensor));
  tensors_.back().reason = reason;
  if (hash) tensors_.back().xxh3_128 = *hash;
}

Result<std::vector<ShardJob::CountedMember>> ShardJob::count_members(const PlannedGroup& group,
                                                                     const Executor& executor,
                                                                     Progress& progress) {
  struct Read {
    size_t member, slice;
    std::optional<Pool<FileBuffer>::Lease> held;
  };
  std::vector<CountedMember> members;
  std::vector<Read> reads;
  for (const TensorLocation* tensor : group.members) {
    CountedMember member{tensor, slices_of(*tensor), {}, {}};
    member.counts.resize(member.slices.size());
    for (size_t i = 0; i < member.slices.size(); ++i)
      reads.push_back({members.size(), i, std::nullopt});
    members.push_back(std::move(member));
  }
  Xxh128Hasher hasher;
  DF11_TRY(executor.for_each_ordered(
      reads.size(), static_cast<size_t>(executor.n_threads()) + 1,
      [&](size_t i) -> Result<void> {
        CountedMember& member = members[reads[i].member];
        const Slice& slice = member.slices[reads[i].slice];
        reads[i].held.emplace(buffers_->chunks.take());
        DF11_ASSIGN(const ByteSpan bytes, read(slice, **reads[i].held));
        member.counts[reads[i].slice] = SliceCounts::of(as_words(bytes));
        return {};
      },
      [&](size_t i) -> Result<void> {
        CountedMember& member = members[reads[i].member];
        const ByteSpan bytes = (*reads[i].held)->bytes();
        hasher.update(bytes);
        progress.add(bytes.size());
        reads[i].held.reset();
        if (reads[i].slice + 1 == member.slices.size()) {
          member.hash = hasher.digest();
          hasher = Xxh128Hasher();
        }
        return {};
      }));
  return members;
}

Result<void> ShardJob::count_group(const PlannedGroup& group, const Executor& executor,
                                   Progress& progress) {
  if (group.n_elements() > kMaxGroupElements) {
    for (const TensorLocation* member : group.members)
      keep_verbatim(*member, std::nullopt, "2^31 weights or more");
    return {};
  }
  DF11_ASSIGN(std::vector<CountedMember> members, count_members(group, executor, progress));
  // Members that no codebook can code stay out; the others are still a group.
  std::erase_if(members, [&](const CountedMember& member) {
    const std::string reason = reason_uncodable(sum_of(member.counts));
    if (!reason.empty()) keep_verbatim(*member.tensor, member.hash, reason);
    return !reason.empty();
  });
  if (members.empty()) return {};

  const auto keep_all_verbatim = [&](const std::string& reason) -> Result<void> {
    for (const CountedMember& member : members) keep_verbatim(*member.tensor, member.hash, reason);
    return {};
  };
  CodedGroup coded{{group.module, {}}, {}};
  std::vector<SliceCounts> counts;
  for (const CountedMember& member : members) {
    coded.plan.members.push_back(member.tensor);
    coded.slices.insert(coded.slices.end(), member.slices.begin(), member.slices.end());
    counts.insert(counts.end(), member.counts.begin(), member.counts.end());
  }
  Result<GroupPlan> code = GroupPlan::make(counts);
  if (!code && code.error().code == ErrorCode::limit_exceeded)
    return keep_all_verbatim("2^31 code bytes or more");
  if (!code) return fail(std::move(code).error().in_tensor(group.module));
  const uint64_t raw_bytes = 2 * code->n_elements();
  const uint64_t stored_bytes = code->tensor_bytes(members.size());
  if (stored_bytes >= raw_bytes) return keep_all_verbatim("coding would not make it smaller");
  groups_.push_back({group.module, "", code->n_elements(), code->n_code_bytes(), stored_bytes,
                     entropy_bits(code->histogram()), code->codebook().luts.longest_code_bits(),
                     std::string(rule_name(code->codebook().rule))});
  coded_modules_.push_back({group.module, coded.plan.member_paths()});
  coded.manifest_index = tensors_.size();
  for (const CountedMember& member : members) {
    tensors_.push_back(manifest_tensor(*member.tensor));
    tensors_.back().group = group.module;
    tensors_.back().xxh3_128 = member.hash;
  }
  coded.code = std::move(*code);
  coded_.push_back(std::move(coded));
  return {};
}

Result<void> ShardJob::count(const Executor& executor, Progress& progress) {
  for (const PlannedGroup& group : plan_->groups) DF11_TRY(count_group(group, executor, progress));
  for (const VerbatimTensor& verbatim : plan_->verbatim) {
    keep_verbatim(*verbatim.tensor, std::nullopt, verbatim.reason);
  }
  return lay_out(file_name_, plan_->metadata);
}

std::vector<ShardJob> ShardJob::split() && {
  std::vector<ShardJob> parts;
  for (size_t i = 0; i < coded_.size(); ++i) {
    ShardJob& part = parts.emplace_back(*checkpoint_, *plan_, *buffers_);
    const auto first = tensors_.begin() + static_cast<ptrdiff_t>(coded_[i].manifest_index);
    const auto n_members = static_cast<ptrdiff_t>(coded_[i].plan.members.size());
    part.tensors_.assign(first, first + n_members);
    part.groups_.push_back(std::move(groups_[i]));
    part.coded_modules_.push_back(std::move(coded_modules_[i]));
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
  const auto append = [](auto& to, auto& from) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  };
  append(tensors_, other.tensors_);
  append(groups_, other.groups_);
  append(coded_modules_, other.coded_modules_);
}

std::pair<size_t, uint64_t> ShardJob::source_position() const {
  const TensorLocation& tensor =
      coded_.empty() ? *verbatim_.front().tensor : *coded_.front().plan.members.front();
  return {tensor.shard, tensor.file_offset_bytes};
}

Result<void> ShardJob::lay_out(std::string file_name, const SafetensorsMetadata& metadata) {
  file_name_ = std::move(file_name);
  for (ManifestGroup& group : groups_) group.file = file_name_;
  std::vector<TensorInfo> infos;
  for (const VerbatimCopy& copy : verbatim_) infos.push_back(copy.tensor->info);
  for (const CodedGroup& group : coded_) {
    const std::string& module = group.plan.module;
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
                     {group.plan.members.size() - 1},
                     0,
                     0});
  }
  header_ = SafetensorsHeader::lay_out(std::move(infos), metadata);
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
    return offset_of(group.plan.module + "." + std::string(name));
  };
  DF11_TRY(file.write_exact(group.code->codebook().luts.bytes(), offset(kLutsName)));
  std::vector<uint64_t> member_elements;
  for (const TensorLocation* member : group.plan.members)
    member_elements.push_back(member->info.n_elements());
  DF11_TRY(file.write_exact(split_positions_bytes(member_elements), offset(kSplitPositionsName)));

  FileSink sink(file, {offset(kEncodedExponentName), offset(kSignMantissaName), offset(kGapsName),
                       offset(kOutputPositionsName)});
  GroupEncoder encoder(*group.code, sink);
  Result<void> encoded = executor.for_each(group.slices.size(), [&](size_t i) -> Result<void> {
    const Slice& slice = group.slices[i];
    const auto chunk = buffers_->chunks.take();
    const auto scratch = buffers_->encoders.take();
    DF11_ASSIGN(const ByteSpan bytes, read(slice, *chunk));
    DF11_TRY(encoder.encode(i, as_words(bytes), *scratch));
    progress.add(slice.size_bytes);
    return {};
  });
  if (!encoded) return fail(std::move(encoded).error().in_tensor(group.plan.module));
  return encoder.finish();
}

Result<void> ShardJob::read_verbatim(VerbatimCopy& copy, const File* file, const Executor& executor,
                                     Progress& progress) {
  const uint64_t begin = offset_of(copy.tensor->info.name);
  const std::vector<Slice> slices = slices_of(*copy.tensor);
  std::vector<std::optional<Pool<FileBuffer>::Lease>> held(slices.size());
  Xxh128Hasher hasher;
  DF11_TRY(executor.for_each_ordered(
      slices.size(), static_cast<size_t>(executor.n_threads()) + 1,
      [&](size_t i) -> Result<void> {
        held[i].emplace(buffers_->chunks.take());
        DF11_ASSIGN(const ByteSpan bytes, read(slices[i], **held[i]));
        if (file == nullptr) return {};
        return file->write_exact(bytes, begin + slices[i].offset_bytes);
      },
      [&](size_t i) -> Result<void> {
        if (!copy.hashed) hasher.update((*held[i])->bytes());
        held[i].reset();
        progress.add(slices[i].size_bytes);
        return {};
      }));
  if (!copy.hashed) tensors_[copy.manifest_index].xxh3_128 = hasher.digest();
  copy.hashed = true;
  return {};
}

Result<void> ShardJob::hash_verbatim(const Executor& executor, Progress& progress) {
  for (VerbatimCopy& copy : verbatim_) {
    if (!copy.hashed) DF11_TRY(read_verbatim(copy, nullptr, executor, progress));
  }
  return {};
}

void ShardJob::skip_pass_2(Progress& progress) {
  for (const ManifestGroup& group : groups_) progress.add(2 * group.n_elements);
  coded_.clear();
}

Sha256 ShardJob::made_from() const {
  Sha256Hasher hasher;
  const auto add = [&](std::string_view text) {
    const uint64_t n_bytes = text.size();
    hasher.update({reinterpret_cast<const uint8_t*>(&n_bytes), sizeof n_bytes});
    hasher.update(as_bytes(text));
  };
  add(kVersion);
  add(header_.serialize());
  for (const ManifestTensor& tensor : tensors_) {
    add(tensor.name);
    add(tensor.xxh3_128.hex());
  }
  return hasher.digest();
}

// Of the shards that hold what is still to be written, or has just been.
Result<void> ShardJob::check_unchanged() const {
  std::set<size_t> shards;
  for (const CodedGroup& group : coded_) {
    for (const TensorLocation* member : group.plan.members) shards.insert(member->shard);
  }
  for (const VerbatimCopy& copy : verbatim_) shards.insert(copy.tensor->shard);
  for (const size_t shard : shards)
    DF11_TRY(checkpoint_->shards().shards()[shard].file.check_unchanged());
  return {};
}

Result<File> ShardJob::write(const std::filesystem::path& directory, const Executor& executor,
                             Progress& progress) {
  DF11_ASSIGN(File file, File::create(directory / file_name_));
  DF11_TRY(file.preallocate(header_.file_bytes()));
  const std::string head = header_.serialize();
  DF11_TRY(file.write_exact(as_bytes(head), 0));
  for (const CodedGroup& group : coded_) DF11_TRY(write_group(group, file, executor, progress));
  for (VerbatimCopy& copy : verbatim_) DF11_TRY(read_verbatim(copy, &file, executor, progress));
  DF11_TRY(check_unchanged());
  coded_.clear();
  return file;
}

}  // namespace df11
