#include "format/shard_set.h"

#include "format/directory.h"
#include "format/json.h"

namespace df11 {

namespace {
// Headers take about ten times their size in memory; those of the largest models are 30 MB
// together.
constexpr uint64_t kMaxHeadersBytes = uint64_t{256} << 20;
}  // namespace

Result<ShardSet> ShardSet::open(const std::filesystem::path& directory,
                                const std::vector<std::string>& names) {
  ShardSet set;
  uint64_t headers_bytes = 0;
  for (const std::string& name : names) {
    DF11_ASSIGN(File file, File::open_read(directory / name));
    DF11_ASSIGN(SafetensorsHeader header, SafetensorsHeader::read(file));
    headers_bytes += header.data_offset_bytes();
    if (headers_bytes > kMaxHeadersBytes) {
      return fail(Error{ErrorCode::limit_exceeded,
                        "the headers of all shards take more than 256 MiB",
                        file.path(),
                        {},
                        {}});
    }
    for (const TensorInfo& info : header.tensors()) {
      const auto [existing, is_new] = set.tensors_.try_emplace(
          info.name,
          TensorLocation{set.shards_.size(), info, header.data_offset_bytes() + info.begin_bytes});
      if (!is_new) {
        return fail(Error{ErrorCode::malformed_safetensors,
                          "also in " + set.shards_[existing->second.shard].name,
                          file.path(),
                          info.name,
                          {}});
      }
    }
    set.shards_.push_back({name, std::move(file), std::move(header)});
  }
  return set;
}

const TensorLocation* ShardSet::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Result<void> ShardSet::read(const TensorLocation& tensor, uint64_t offset_bytes,
                            MutableByteSpan buffer) const {
  return shards_[tensor.shard].file.read_exact(buffer, tensor.file_offset_bytes + offset_bytes);
}

Result<ByteSpan> ShardSet::read(const TensorLocation& tensor, uint64_t offset_bytes, size_t n_bytes,
                                FileBuffer& buffer) const {
  return shards_[tensor.shard].file.read(tensor.file_offset_bytes + offset_bytes, n_bytes, buffer);
}

Result<std::vector<uint8_t>> ShardSet::read_all(const TensorLocation& tensor) const {
  std::vector<uint8_t> bytes(tensor.info.size_bytes());
  DF11_TRY(read(tensor, 0, bytes));
  return bytes;
}

namespace {
auto bad_index(std::string message) {
  return fail(ErrorCode::malformed_index, std::move(message));
}
}  // namespace

Result<ShardIndex> ShardIndex::parse(std::string_view json) {
  DF11_ASSIGN(const Json root, parse_json(json));
  const Json* weight_map = json_find(root, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object())
    return bad_index("no \"weight_map\" object");
  ShardIndex index;
  for (const auto& [tensor, file] : weight_map->get_ref<const Json::object_t&>()) {
    if (!file.is_string()) return bad_index("the file of tensor '" + tensor + "' is not a string");
    const std::string& name = file.get_ref<const std::string&>();
    if (!is_safe_relative_path(name) || name.find('/') != name.npos) {
      return bad_index("the file name \"" + name + "\" of tensor '" + tensor +
                       "' leaves the directory");
    }
    if (!name.ends_with(kSafetensorsSuffix)) {
      return bad_index("the file \"" + name + "\" of tensor '" + tensor +
                       "' is no .safetensors file");
    }
    index.weight_map.emplace(tensor, name);
  }
  return index;
}

std::string ShardIndex::to_text(uint64_t total_size_bytes,
                                std::optional<uint64_t> total_parameters) const {
  Json metadata = Json::object();
  if (total_parameters) metadata["total_parameters"] = *total_parameters;
  metadata["total_size"] = total_size_bytes;
  Json files = Json::object();
  for (const auto& [tensor, file] : weight_map) json_append(files, tensor, file);
  const Json index = {{"metadata", std::move(metadata)}, {"weight_map", std::move(files)}};
  return index.dump(2) + "\n";
}

Result<void> ShardIndex::check_agrees(const ShardSet& shards) const {
  for (const auto& [tensor, file] : weight_map) {
    const TensorLocation* location = shards.find(tensor);
    if (location == nullptr) {
      return bad_index("tensor '" + tensor + "' is in the index but in no shard");
    }
    if (shards.shards()[location->shard].name != file) {
      return bad_index("the index has tensor '" + tensor + "' in " + file + ", but it is in " +
                       shards.shards()[location->shard].name);
    }
  }
  for (const auto& [tensor, location] : shards.tensors()) {
    if (!weight_map.contains(tensor)) {
      return bad_index("tensor '" + tensor + "' in " + shards.shards()[location.shard].name +
                       " is not in the index");
    }
  }
  return {};
}

}  // namespace df11
