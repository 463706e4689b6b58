#include "compressor/group_encoder.h"

#include <algorithm>

namespace df11 {

SliceCounts SliceCounts::of(std::span<const uint16_t> words) {
  Histogram histogram{};
  count_exponents(words, histogram);
  SliceCounts slice;
  slice.n_elements = static_cast<uint32_t>(words.size());
  std::copy(histogram.begin(), histogram.end(), slice.counts.begin());
  return slice;
}

Result<GroupPlan> GroupPlan::make(std::span<const SliceCounts> slices) {
  GroupPlan plan;
  for (const SliceCounts& slice : slices) {
    for (size_t i = 0; i < slice.counts.size(); ++i) plan.histogram_[i] += slice.counts[i];
  }
  DF11_ASSIGN(plan.codebook_, build_codebook(plan.histogram_));

  SlicePosition next;
  plan.positions_.push_back(next);
  for (const SliceCounts& slice : slices) {
    for (size_t i = 0; i < slice.counts.size(); ++i) {
      next.first_bit += uint64_t{slice.counts[i]} * plan.codebook_.codes[i].length_bits;
    }
    next.first_element += slice.n_elements;
    plan.positions_.push_back(next);
  }
  if (plan.n_elements() > kMaxGroupElements || plan.n_code_bytes() > kMaxGroupCodeBytes) {
    return fail(ErrorCode::limit_exceeded,
                "a group of " + std::to_string(plan.n_elements()) + " weights and " +
                    std::to_string(plan.n_code_bytes()) +
                    " code bytes: upstream's kernel counts both in int32");
  }
  return plan;
}

uint64_t GroupPlan::tensor_bytes(size_t n_members) const {
  return codebook_.luts.bytes().size() + n_code_bytes() + n_elements() +
         gaps_bytes(n_code_bytes()) + 4 * n_output_positions(n_code_bytes()) + 8 * (n_members - 1);
}

GroupEncoder::GroupEncoder(const GroupPlan& plan, GroupSink& sink)
    : plan_(plan), sink_(sink), table_(plan.codebook()) {}

Result<void> GroupEncoder::write_sharing_ends(GroupStream stream, SharedUnits& shared,
                                              uint64_t offset_bytes, ByteSpan bytes,
                                              size_t unit_bytes, bool first_shared,
                                              bool last_shared) {
  const auto share = [&](uint64_t unit_offset_bytes, ByteSpan unit) {
    const std::lock_guard lock(mutex_);
    std::vector<uint8_t>& combined = shared[unit_offset_bytes];
    combined.resize(unit_bytes, 0);
    for (size_t i = 0; i < unit_bytes; ++i) combined[i] |= unit[i];
  };
  if (first_shared && !bytes.empty()) {
    share(offset_bytes, bytes.first(unit_bytes));
    bytes = bytes.subspan(unit_bytes);
    offset_bytes += unit_bytes;
  }
  if (last_shared && !bytes.empty()) {
    share(offset_bytes + bytes.size() - unit_bytes, bytes.last(unit_bytes));
    bytes = bytes.first(bytes.size() - unit_bytes);
  }
  return bytes.empty() ? Result<void>{} : sink_.write(stream, offset_bytes, bytes);
}

Result<void> GroupEncoder::encode(size_t i, std::span<const uint16_t> words, Scratch& scratch) {
  const SlicePosition& begin = plan_.slice(i);
  const SlicePosition& end = plan_.slice(i + 1);
  // An empty slice owns nothing, not even the end of the stream.
  if (begin.first_element == end.first_element && words.empty()) return {};
  const bool last = end.first_element == plan_.n_elements();
  EncodedSlice& slice = scratch.slice;
  uint8_t* sign_mantissa = scratch.sign_mantissa.ensure(words.size());
  encode_slice(words, table_, begin, sign_mantissa, slice);
  if (words.size() != end.first_element - begin.first_element || slice.end_bit != end.first_bit) {
    return fail(ErrorCode::source_changed, "the weights changed while they were being read");
  }
  if (last) close_stream(table_, plan_.n_elements(), slice);

  DF11_TRY(
      sink_.write(GroupStream::kSignMantissa, begin.first_element, {sign_mantissa, words.size()}));
  DF11_TRY(write_sharing_ends(GroupStream::kEncodedExponent, shared_code_, begin.first_bit / 8,
                              slice.code, 1, begin.first_bit % 8 != 0,
                              !last && end.first_bit % 8 != 0));
  DF11_TRY(write_sharing_ends(GroupStream::kGaps, shared_gaps_, slice.first_window / 8 * 5,
                              {slice.gaps.data(), slice.n_gap_bytes}, 5,
                              slice.first_window % 8 != 0, !last && slice.end_window % 8 != 0));
  if (slice.positions.empty()) return {};
  return sink_.write(
      GroupStream::kOutputPositions, 4 * slice.first_block,
      {reinterpret_cast<const uint8_t*>(slice.positions.data()), 4 * slice.positions.size()});
}

Result<void> GroupEncoder::finish() {
  for (const auto& [offset_bytes, unit] : shared_code_) {
    DF11_TRY(sink_.write(GroupStream::kEncodedExponent, offset_bytes, unit));
  }
  for (const auto& [offset_bytes, unit] : shared_gaps_) {
    DF11_TRY(sink_.write(GroupStream::kGaps, offset_bytes, unit));
  }
  return {};
}

std::vector<uint8_t> split_positions_bytes(std::span<const uint64_t> member_elements) {
  std::vector<uint8_t> bytes(8 * (member_elements.size() - 1));
  uint64_t cumulative = 0;
  for (size_t i = 0; i + 1 < member_elements.size(); ++i) {
    cumulative += member_elements[i];
    store_le64(&bytes[8 * i], cumulative);
  }
  return bytes;
}

Result<GroupTensors> encode_group(std::span<const std::span<const uint16_t>> members,
                                  const Executor& executor, size_t slice_elements) {
  std::vector<std::span<const uint16_t>> slices;
  std::vector<uint64_t> member_elements;
  for (const std::span<const uint16_t> member : members) {
    member_elements.push_back(member.size());
    for (size_t begin = 0; begin < member.size(); begin += slice_elements) {
      slices.push_back(member.subspan(begin, std::min(slice_elements, member.size() - begin)));
    }
  }
  std::vector<SliceCounts> counts(slices.size());
  DF11_TRY(executor.for_each(slices.size(), [&](size_t i) -> Result<void> {
    counts[i] = SliceCounts::of(slices[i]);
    return {};
  }));
  DF11_ASSIGN(const GroupPlan plan, GroupPlan::make(counts));

  GroupTensors tensors;
  tensors.luts.assign(plan.codebook().luts.bytes().begin(), plan.codebook().luts.bytes().end());
  tensors.encoded_exponent.resize(plan.n_code_bytes());
  tensors.sign_mantissa.resize(plan.n_elements());
  tensors.gaps.resize(gaps_bytes(plan.n_code_bytes()));
  tensors.output_positions.resize(4 * n_output_positions(plan.n_code_bytes()));
  tensors.split_positions = split_positions_bytes(member_elements);

  class MemorySink final : public GroupSink {
   public:
    explicit MemorySink(GroupTensors& tensors) : tensors_(tensors) {}
    Result<void> write(GroupStream stream, uint64_t offset_bytes, ByteSpan bytes) override {
      std::copy(bytes.begin(), bytes.end(),
                of(stream).begin() + static_cast<ptrdiff_t>(offset_bytes));
      return {};
    }

   private:
    std::vector<uint8_t>& of(GroupStream stream) {
      switch (stream) {
        case GroupStream::kEncodedExponent: return tensors_.encoded_exponent;
        case GroupStream::kSignMantissa: return tensors_.sign_mantissa;
        case GroupStream::kGaps: return tensors_.gaps;
        case GroupStream::kOutputPositions: break;
      }
      return tensors_.output_positions;
    }
    GroupTensors& tensors_;
  };
  MemorySink sink(tensors);
  GroupEncoder encoder(plan, sink);
  Pool<GroupEncoder::Scratch> scratch;
  DF11_TRY(executor.for_each(
      slices.size(), [&](size_t i) { return encoder.encode(i, slices[i], *scratch.take()); }));
  DF11_TRY(encoder.finish());
  return tensors;
}

}  // namespace df11
