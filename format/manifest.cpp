#include "format/manifest.h"

#include <algorithm>
#include <set>

#include "format/df11_layout.h"
#include "format/directory.h"
#include "format/front_matter.h"
#include "format/json.h"
#include "format/zstd.h"

namespace df11 {

namespace {

constexpr std::string_view kFormatName = "df11-manifest";
// The text ends with this, 64 hex digits and kSealEnd (spec/manifest.md, "Seal").
constexpr std::string_view kSealBegin = ",\n \"manifest_sha256\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr uint64_t kMaxRestoreBytes = uint64_t{256} << 20;  // of all records together

auto malformed(std::string message) {
  return fail(ErrorCode::malformed_manifest, std::move(message));
}

Json published_to_json(const PublishedHash& published) {
  Json entry = {{"algorithm", published.algorithm},
                {"hex", published.hex},
                {"recorded_in", published.recorded_in}};
  if (!published.revision.empty()) entry["revision"] = published.revision;
  return entry;
}

Result<PublishedHash> published_from_json(const Json& entry) {
  PublishedHash published;
  DF11_ASSIGN(published.algorithm, json_string(entry, "algorithm"));
  DF11_ASSIGN(published.hex, json_string(entry, "hex"));
  DF11_ASSIGN(published.recorded_in, json_string(entry, "recorded_in"));
  if (json_find(entry, "revision") != nullptr) {
    DF11_ASSIGN(published.revision, json_string(entry, "revision"));
  }
  return published;
}

Json files_to_json(const std::vector<ManifestFile>& files) {
  Json list = Json::array();
  for (const ManifestFile& file : files) {
    Json entry = {
        {"path", file.path}, {"size_bytes", file.size_bytes}, {"sha256", file.sha256.hex()}};
    if (!file.stored_as.empty()) entry["stored_as"] = file.stored_as;
    if (file.published) entry["published"] = published_to_json(*file.published);
    list.push_back(std::move(entry));
  }
  return list;
}

Result<const Json*> list_of(const Json& object, std::string_view key) {
  const Json* list = json_find(object, key);
  if (list == nullptr || !list->is_array())
    return malformed("\"" + std::string(key) + "\" is no list");
  return list;
}

// A path that stays within the directory it is joined to.
Result<std::string> path_from_json(const Json& entry, std::string_view key) {
  DF11_ASSIGN(std::string path, json_string(entry, key));
  if (!is_safe_relative_path(path)) return malformed("unsafe path \"" + path + "\"");
  return path;
}

Result<std::vector<ManifestFile>> files_from_json(const Json& root, std::string_view key) {
  DF11_ASSIGN(const Json* list, list_of(root, key));
  std::vector<ManifestFile> files;
  for (const Json& entry : *list) {
    ManifestFile file;
    DF11_ASSIGN(file.path, path_from_json(entry, "path"));
    DF11_ASSIGN(file.size_bytes, json_uint(entry, "size_bytes"));
    DF11_ASSIGN(const std::string hex, json_string(entry, "sha256"));
    DF11_ASSIGN(file.sha256, parse_sha256(hex));
    if (json_find(entry, "stored_as") != nullptr) {
      DF11_ASSIGN(file.stored_as, json_string(entry, "stored_as"));
      if (!is_safe_relative_path(file.stored_as))
        return malformed("unsafe path \"" + file.stored_as + "\"");
    }
    if (const Json* published = json_find(entry, "published")) {
      DF11_ASSIGN(file.published, published_from_json(*published));
    }
    files.push_back(std::move(file));
  }
  return files;
}

Json tensor_to_json(const ManifestTensor& tensor) {
  Json entry = {{"name", tensor.name},
                {"dtype", dtype_name(tensor.dtype)},
                {"shape", tensor.shape},
                {"source_file", tensor.source_file},
                {"xxh3_128", tensor.xxh3_128.hex()}};
  if (!tensor.group.empty()) entry["group"] = tensor.group;
  if (!tensor.reason.empty()) entry["verbatim_reason"] = tensor.reason;
  return entry;
}

Result<ManifestTensor> tensor_from_json(const Json& entry) {
  ManifestTensor tensor;
  DF11_ASSIGN(tensor.name, json_string(entry, "name"));
  DF11_ASSIGN(const std::string dtype, json_string(entry, "dtype"));
  DF11_ASSIGN(tensor.dtype, parse_dtype(dtype));
  const Json* shape = json_find(entry, "shape");
  if (shape == nullptr || !shape->is_array())
    return malformed("'" + tensor.name + "' has no shape");
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned()) return malformed("'" + tensor.name + "' has a bad shape");
    tensor.shape.push_back(extent.get<uint64_t>());
  }
  if (!tensor_bytes(tensor.dtype, tensor.shape))
    return malformed("'" + tensor.name + "' has a bad shape");
  DF11_ASSIGN(tensor.source_file, path_from_json(entry, "source_file"));
  DF11_ASSIGN(const std::string hex, json_string(entry, "xxh3_128"));
  DF11_ASSIGN(tensor.xxh3_128, parse_xxh128(hex));
  if (json_find(entry, "group") != nullptr) {
    DF11_ASSIGN(tensor.group, json_string(entry, "group"));
  }
  if (json_find(entry, "verbatim_reason") != nullptr) {
    DF11_ASSIGN(tensor.reason, json_string(entry, "verbatim_reason"));
  }
  return tensor;
}

Json group_to_json(const ManifestGroup& group) {
  return {{"module", group.module},
          {"file", group.file},
          {"elements", group.n_elements},
          {"code_bytes", group.n_code_bytes},
          {"stored_bytes", group.stored_bytes},
          {"exponent_entropy_bits", group.entropy_bits},
          {"longest_code_bits", group.longest_code_bits},
          {"code_rule", group.code_rule}};
}

Result<ManifestGroup> group_from_json(const Json& entry) {
  ManifestGroup group;
  DF11_ASSIGN(group.module, json_string(entry, "module"));
  DF11_ASSIGN(group.file, path_from_json(entry, "file"));
  DF11_ASSIGN(group.n_elements, json_uint(entry, "elements"));
  DF11_ASSIGN(group.n_code_bytes, json_uint(entry, "code_bytes"));
  DF11_ASSIGN(group.stored_bytes, json_uint(entry, "stored_bytes"));
  DF11_ASSIGN(const uint64_t longest, json_uint(entry, "longest_code_bits"));
  if (longest > kMaxCodeLength) return malformed("a group has codes over 32 bits");
  group.longest_code_bits = static_cast<int>(longest);
  DF11_ASSIGN(group.code_rule, json_string(entry, "code_rule"));
  const Json* entropy = json_find(entry, "exponent_entropy_bits");
  if (entropy == nullptr || !entropy->is_number()) return malformed("a group has no entropy");
  group.entropy_bits = entropy->get<double>();
  return group;
}

Result<std::map<std::string, std::string>> restore_from_json(const Json& root) {
  DF11_ASSIGN(const Json* list, list_of(root, "restore"));
  std::map<std::string, std::string> restore;
  uint64_t total_bytes = 0;
  for (const Json& entry : *list) {
    DF11_ASSIGN(const std::string path, path_from_json(entry, "path"));
    DF11_ASSIGN(const uint64_t size_bytes, json_uint(entry, "size_bytes"));
    DF11_ASSIGN(const std::string hex, json_string(entry, "zstd_hex"));
    if (size_bytes > kMaxRestoreBytes - total_bytes) {
      return malformed("the restore records are too large");
    }
    total_bytes += size_bytes;
    if (restore.contains(path)) return malformed("two restore records are for " + path);
    const std::optional<std::string> frame = hex_decode(hex);
    if (!frame) return malformed("a restore record is not hex");
    DF11_ASSIGN(restore[path], zstd_decompress(*frame, size_bytes));
  }
  return restore;
}

// malformed_manifest when two of `list` have the same `name`.
template <typename Entry>
Result<void> check_unique(const std::vector<Entry>& list, std::string Entry::*name,
                          std::string_view what) {
  std::set<std::string_view> names;
  for (const Entry& entry : list) {
    if (!names.insert(entry.*name).second)
      return malformed("it lists the " + std::string(what) + " \"" + entry.*name + "\" twice");
  }
  return {};
}

// Checks the seal and returns the sealed bytes.
Result<std::string_view> check_seal(std::string_view text) {
  constexpr size_t kHexBytes = 64;
  const size_t seal_bytes = kSealBegin.size() + kHexBytes + kSealEnd.size();
  if (text.size() < seal_bytes || !text.ends_with(kSealEnd))
    return malformed("it has no seal; truncated?");
  const std::string_view seal = text.substr(text.size() - seal_bytes);
  if (!seal.starts_with(kSealBegin)) return malformed("it has no seal; truncated?");
  const std::string_view sealed = text.substr(0, text.size() - seal_bytes);
  if (sha256(as_bytes(sealed)).hex() != seal.substr(kSealBegin.size(), kHexBytes)) {
    return malformed("its content does not match its own SHA-256: damaged or edited");
  }
  return sealed;
}

}  // namespace

const std::string& Manifest::stored_path(const std::string& source_path) const {
  const auto file = std::find_if(source_files.begin(), source_files.end(),
                                 [&](const ManifestFile& f) { return f.path == source_path; });
  return file == source_files.end() ? source_path : file->stored_path();
}

bool Manifest::is_made_card(const std::string& path) const {
  return path == kCardName &&
         std::any_of(files.begin(), files.end(),
                     [&](const ManifestFile& file) { return file.path == path; }) &&
         std::none_of(source_files.begin(), source_files.end(),
                      [&](const ManifestFile& file) { return file.stored_path() == path; });
}

std::string Manifest::to_text() const {
  Json root = {{"format", kFormatName},
               {"format_version", kManifestFormatVersion},
               {"tool", {{"name", "df11-compress"}, {"version", tool_version}}},
               {"settings", settings},
               {"source_files", files_to_json(source_files)},
               {"omitted_files", omitted_files},
               {"files", files_to_json(files)}};
  Json& groups_json = root["groups"] = Json::array();
  for (const ManifestGroup& group : groups) groups_json.push_back(group_to_json(group));
  Json& tensors_json = root["tensors"] = Json::array();
  for (const ManifestTensor& tensor : tensors) tensors_json.push_back(tensor_to_json(tensor));
  Json& restore_json = root["restore"] = Json::array();
  for (const auto& [path, bytes] : restore) {
    const std::string frame = zstd_compress(bytes);
    restore_json.push_back(
        {{"path", path}, {"size_bytes", bytes.size()}, {"zstd_hex", hex_encode(as_bytes(frame))}});
  }
  std::string text = root.dump(1);
  text.resize(text.size() - std::string_view("\n}").size());
  const std::string seal = sha256(as_bytes(text)).hex();
  return text + std::string(kSealBegin) + seal + std::string(kSealEnd);
}

namespace {
Result<Manifest> parse_sealed(std::string_view text) {
  DF11_TRY(check_seal(text));
  DF11_ASSIGN(const Json root, parse_json(text));
  DF11_ASSIGN(const std::string format, json_string(root, "format"));
  if (format != kFormatName)
    return malformed("\"format\" is not \"" + std::string(kFormatName) + "\"");
  DF11_ASSIGN(const uint64_t version, json_uint(root, "format_version"));
  if (version != kManifestFormatVersion) {
    return fail(ErrorCode::unsupported, "format_version " + std::to_string(version) +
                                            " is not the one this tool knows, " +
                                            std::to_string(kManifestFormatVersion));
  }
  Manifest manifest;
  if (const Json* tool = json_find(root, "tool")) {
    DF11_ASSIGN(manifest.tool_version, json_string(*tool, "version"));
  }
  if (const Json* settings = json_find(root, "settings");
      settings != nullptr && settings->is_object()) {
    for (const auto& [key, value] : settings->get_ref<const Json::object_t&>()) {
      if (value.is_string()) manifest.settings[key] = value.get<std::string>();
    }
  }
  DF11_ASSIGN(manifest.source_files, files_from_json(root, "source_files"));
  DF11_ASSIGN(manifest.files, files_from_json(root, "files"));
  DF11_ASSIGN(const Json* omitted, list_of(root, "omitted_files"));
  for (const Json& path : *omitted) {
    if (!path.is_string()) return malformed("an omitted file is no string");
    if (!is_safe_relative_path(path.get_ref<const std::string&>()))
      return malformed("unsafe path \"" + path.get<std::string>() + "\"");
    manifest.omitted_files.push_back(path.get<std::string>());
  }
  DF11_ASSIGN(const Json* groups, list_of(root, "groups"));
  for (const Json& entry : *groups) {
    DF11_ASSIGN(ManifestGroup group, group_from_json(entry));
    manifest.groups.push_back(std::move(group));
  }
  DF11_ASSIGN(const Json* tensors, list_of(root, "tensors"));
  for (const Json& entry : *tensors) {
    DF11_ASSIGN(ManifestTensor tensor, tensor_from_json(entry));
    manifest.tensors.push_back(std::move(tensor));
  }
  DF11_ASSIGN(manifest.restore, restore_from_json(root));
  DF11_TRY(check_unique(manifest.source_files, &ManifestFile::path, "source file"));
  DF11_TRY(check_unique(manifest.files, &ManifestFile::path, "file"));
  DF11_TRY(check_unique(manifest.groups, &ManifestGroup::module, "group"));
  DF11_TRY(check_unique(manifest.tensors, &ManifestTensor::name, "tensor"));
  return manifest;
}
}  // namespace

Result<Manifest> Manifest::parse(std::string_view text) {
  Result<Manifest> manifest = parse_sealed(text);
  if (!manifest && manifest.error().code != ErrorCode::unsupported) {
    return malformed(manifest.error().message);  // whatever part of it is bad
  }
  return manifest;
}

}  // namespace df11
