#include "format/safetensors.h"

#include <algorithm>
#include <array>
#include <set>

#include "format/json.h"

namespace df11 {

namespace {

struct DtypeFacts {
  std::string_view name;
  uint64_t bits;
};

// Indexed by Dtype.
constexpr std::array<DtypeFacts, 22> kDtypes = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

// A tensor of higher rank is refused: no framework makes one, and a hostile header could otherwise
// spend memory on it.
constexpr size_t kMaxRank = 64;

auto malformed(std::string message) {
  return fail(ErrorCode::malformed_safetensors, std::move(message));
}

// The grammar of a header as a state machine over nlohmann's events:
//   { "__metadata__": {string: string, …}, name: {"dtype": …, "shape": […], "data_offsets": [b, e]}
//   }
class HeaderSax final : public JsonSax {
 public:
  std::vector<TensorInfo> tensors;
  SafetensorsMetadata metadata;
  std::string problem;

  bool start_object(size_t) override {
    switch (state_) {
      case State::kStart: state_ = State::kTop; return true;
      case State::kTopValue:
        state_ = current_key_ == kSafetensorsMetadataKey ? State::kMetadata : State::kTensor;
        if (state_ == State::kTensor) {
          tensors.push_back({current_key_, Dtype::kU8, {}, 0, 0});
          seen_ = 0;
        }
        return true;
      default: return refuse("an object where none belongs");
    }
  }

  bool end_object() override {
    switch (state_) {
      case State::kMetadata: state_ = State::kTop; return true;
      case State::kTensor:
        if (seen_ != (kSeenDtype | kSeenShape | kSeenOffsets)) {
          return refuse("dtype, shape or data_offsets is missing");
        }
        state_ = State::kTop;
        return true;
      case State::kTop: state_ = State::kEnd; return true;
      default: return refuse("unexpected end of an object");
    }
  }

  bool key(string_t& name) override {
    switch (state_) {
      case State::kTop:
        if (!names_.insert(name).second) return refuse("duplicate key \"" + name + "\"");
        current_key_ = name;
        state_ = State::kTopValue;
        return true;
      case State::kMetadata:
        if (!metadata_keys_.insert(name).second) return refuse("duplicate key \"" + name + "\"");
        metadata.emplace_back(name, "");
        state_ = State::kMetadataValue;
        return true;
      case State::kTensor:
        if (name == "dtype") return field(State::kDtype, kSeenDtype);
        if (name == "shape") return field(State::kShapeValue, kSeenShape);
        if (name == "data_offsets") return field(State::kOffsetsValue, kSeenOffsets);
        return refuse("unknown key \"" + name + "\"");
      default: return refuse("unexpected key");
    }
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadataValue) {
      metadata.back().second = value;
      state_ = State::kMetadata;
      return true;
    }
    if (state_ == State::kDtype) {
      const Result<Dtype> dtype = parse_dtype(value);
      if (!dtype) return refuse("unknown dtype \"" + value + "\"");
      tensors.back().dtype = *dtype;
      state_ = State::kTensor;
      return true;
    }
    return refuse("a string where none belongs");
  }

  bool start_array(size_t) override {
    if (state_ == State::kShapeValue)
      state_ = State::kShape;
    else if (state_ == State::kOffsetsValue)
      state_ = State::kOffsets;
    else
      return refuse("an array where none belongs");
    n_offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (state_ == State::kOffsets && n_offsets_ != 2) return refuse("data_offsets are not two");
    state_ = State::kTensor;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::kShape) {
      if (tensors.back().shape.size() == kMaxRank) return refuse("rank over 64");
      tensors.back().shape.push_back(value);
      return true;
    }
    if (state_ == State::kOffsets && n_offsets_ < 2) {
      (n_offsets_++ == 0 ? tensors.back().begin_bytes : tensors.back().end_bytes) = value;
      return true;
    }
    return refuse("a number where none belongs");
  }

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("not an integer"); }
  bool binary(binary_t&) override { return refuse("a binary value"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    problem = "the header is not valid JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  enum class State {
    kStart,
    kTop,
    kTopValue,
    kMetadata,
    kMetadataValue,
    kTensor,
    kDtype,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kEnd,
  };
  static constexpr unsigned kSeenDtype = 1, kSeenShape = 2, kSeenOffsets = 4;

  bool field(State next, unsigned bit) {
    if ((seen_ & bit) != 0) return refuse("duplicate key");
    seen_ |= bit;
    state_ = next;
    return true;
  }

  bool refuse(const std::string& why) {
    problem = "header: ";
    if (!current_key_.empty()) problem += json_quote(current_key_) + ": ";
    problem += why;
    return false;
  }

  State state_ = State::kStart;
  std::string current_key_;
  unsigned seen_ = 0;
  int n_offsets_ = 0;
  // Ordered: names can be made to collide in any hash that is known.
  std::set<std::string> names_, metadata_keys_;
};

Result<void> check_layout(const std::vector<TensorInfo>& tensors, uint64_t data_bytes) {
  uint64_t expected_begin = 0;
  for (const TensorInfo& tensor : tensors) {
    const auto refuse = [&](std::string why) {
      return fail(Error{ErrorCode::malformed_safetensors, std::move(why), {}, tensor.name, {}});
    };
    const std::optional<uint64_t> size = tensor_bytes(tensor.dtype, tensor.shape);
    if (!size) return refuse("shape and dtype give no size that can be addressed in bytes");
    if (tensor.begin_bytes != expected_begin || tensor.end_bytes < tensor.begin_bytes) {
      return refuse("data_offsets leave a hole or overlap: begin is " +
                    std::to_string(tensor.begin_bytes) + ", expected " +
                    std::to_string(expected_begin));
    }
    if (tensor.size_bytes() != *size) {
      return refuse("data_offsets span " + std::to_string(tensor.size_bytes()) +
                    " bytes, shape and dtype need " + std::to_string(*size));
    }
    expected_begin = tensor.end_bytes;
  }
  if (expected_begin != data_bytes) {
    return malformed("the tensors end at byte " + std::to_string(expected_begin) +
                     " of the data, the file's data has " + std::to_string(data_bytes) + " bytes");
  }
  return {};
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}
uint64_t dtype_bits(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].bits;
}

Result<Dtype> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].name == name) return static_cast<Dtype>(i);
  }
  return malformed("unknown dtype \"" + std::string(name) + "\"");
}

std::optional<uint64_t> shape_elements(const Shape& shape) {
  // The reference multiplies in order and refuses an overflow even if a later 0 would hide it.
  uint64_t n_elements = 1;
  for (const uint64_t extent : shape) {
    const std::optional<uint64_t> product = checked_mul(n_elements, extent);
    if (!product) return std::nullopt;
    n_elements = *product;
  }
  return n_elements;
}

std::optional<uint64_t> tensor_bytes(Dtype dtype, const Shape& shape) {
  const std::optional<uint64_t> n_elements = shape_elements(shape);
  if (!n_elements) return std::nullopt;
  const std::optional<uint64_t> n_bits = checked_mul(*n_elements, dtype_bits(dtype));
  if (!n_bits || *n_bits % 8 != 0) return std::nullopt;
  return *n_bits / 8;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<SafetensorsHeader> SafetensorsHeader::parse(std::string_view json, uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') return malformed("the header does not begin with '{'");
  HeaderSax sax;
  if (!parse_json_sax(json, sax)) {
    return malformed(sax.problem.empty() ? "the header is not valid JSON" : sax.problem);
  }

  SafetensorsHeader header;
  header.tensors_ = std::move(sax.tensors);
  header.metadata_ = std::move(sax.metadata);
  // By both offsets, so that empty tensors come before the one that begins at the same byte.
  std::stable_sort(
      header.tensors_.begin(), header.tensors_.end(), [](const auto& a, const auto& b) {
        return std::pair(a.begin_bytes, a.end_bytes) < std::pair(b.begin_bytes, b.end_bytes);
      });
  DF11_TRY(check_layout(header.tensors_, data_bytes));
  header.data_offset_bytes_ = 8 + json.size();
  return header;
}

Result<SafetensorsHeader> SafetensorsHeader::read(const File& file) {
  const auto in_file = [&](Error error) { return fail(std::move(error).in_file(file.path())); };
  const auto refuse = [&](std::string message) {
    return in_file(Error{ErrorCode::malformed_safetensors, std::move(message), {}, {}, {}});
  };
  if (file.size_bytes() < 8) return refuse("not a safetensors file: shorter than 8 bytes");
  uint8_t length[8];
  DF11_TRY(file.read_exact(length, 0));
  const uint64_t json_bytes = load_le64(length);
  if (json_bytes > kMaxSafetensorsHeaderBytes) {
    return refuse("not a safetensors file: it declares a header of " + std::to_string(json_bytes) +
                  " bytes, the limit is " + std::to_string(kMaxSafetensorsHeaderBytes));
  }
  if (json_bytes > file.size_bytes() - 8) {
    return refuse("truncated: the header of " + std::to_string(json_bytes) +
                  " bytes does not fit in the file");
  }
  std::string json(json_bytes, '\0');
  DF11_TRY(file.read_exact({reinterpret_cast<uint8_t*>(json.data()), json.size()}, 8));
  Result<SafetensorsHeader> header = parse(json, file.size_bytes() - 8 - json_bytes);
  if (!header) return in_file(std::move(header).error());
  return header;
}

SafetensorsHeader SafetensorsHeader::lay_out(std::vector<TensorInfo> tensors,
                                             SafetensorsMetadata metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  uint64_t offset_bytes = 0;
  for (TensorInfo& tensor : tensors) {
    tensor.begin_bytes = offset_bytes;
    offset_bytes += *tensor_bytes(tensor.dtype, tensor.shape);
    tensor.end_bytes = offset_bytes;
  }
  SafetensorsHeader header;
  header.tensors_ = std::move(tensors);
  header.metadata_ = std::move(metadata);
  header.data_offset_bytes_ = 8 + ceil_div(header.to_json().size(), 8) * 8;
  return header;
}

std::string SafetensorsHeader::to_json() const {
  std::string json = "{";
  const auto separate = [&] {
    if (json.size() > 1) json += ',';
  };
  if (!metadata_.empty()) {
    json += json_quote(kSafetensorsMetadataKey) + ":{";
    for (size_t i = 0; i < metadata_.size(); ++i) {
      if (i != 0) json += ',';
      json += json_quote(metadata_[i].first) + ":" + json_quote(metadata_[i].second);
    }
    json += '}';
  }
  for (const TensorInfo& tensor : tensors_) {
    separate();
    json += json_quote(tensor.name) + ":{\"dtype\":\"" + std::string(dtype_name(tensor.dtype)) +
            "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i != 0) json += ',';
      json += std::to_string(tensor.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(tensor.begin_bytes) + "," +
            std::to_string(tensor.end_bytes) + "]}";
  }
  return json + "}";
}

std::string SafetensorsHeader::serialize() const {
  std::string json = to_json();
  json.resize(data_offset_bytes_ - 8, ' ');
  std::string bytes(8, '\0');
  store_le64(reinterpret_cast<uint8_t*>(bytes.data()), json.size());
  return bytes + json;
}

}  // namespace df11
