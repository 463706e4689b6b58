#include "format/artifact.h"

#include <algorithm>
#include <numeric>

#include "format/checkpoint.h"
#include "format/df11_layout.h"
#include "format/directory.h"
#include "format/file.h"
#include "format/output_positions.h"

namespace df11 {

namespace {

auto bad_group(const std::string& module, std::string message) {
  return fail(Error{ErrorCode::malformed_group, std::move(message), {}, module, {}});
}

std::string joined(const std::string& module, std::string_view name) {
  return module.empty() ? std::string(name) : module + "." + std::string(name);
}

// Declared dtypes, ranks and sizes of the six tensors (spec section 3).
Result<void> check_declared(const GroupEntry& entry) {
  const auto is_bytes = [](const TensorLocation* tensor, size_t rank) {
    return tensor->info.dtype == Dtype::kU8 && tensor->info.shape.size() == rank;
  };
  const uint64_t n_code_bytes = entry.n_code_bytes();
  if (!is_bytes(entry.luts, 2) || entry.luts->info.shape[1] != kLutRowBytes) {
    return bad_group(entry.module, "luts is not U8 [rows, 256]");
  }
  if (!is_bytes(entry.encoded_exponent, 1) || !is_bytes(entry.sign_mantissa, 1) ||
      !is_bytes(entry.output_positions, 1) || !is_bytes(entry.gaps, 1)) {
    return bad_group(entry.module, "a tensor of the group is not U8 of rank 1");
  }
  if (entry.split_positions->info.dtype != Dtype::kI64 ||
      entry.split_positions->info.shape.size() != 1) {
    return bad_group(entry.module, "split_positions is not I64 of rank 1");
  }
  if (entry.n_elements() == 0 || n_code_bytes == 0)
    return bad_group(entry.module, "it holds no weights");
  if (entry.n_elements() > kMaxGroupElements || n_code_bytes > kMaxGroupCodeBytes) {
    return bad_group(entry.module, "2^31 weights or code bytes, or more");
  }
  if (entry.gaps->info.size_bytes() != gaps_bytes(n_code_bytes)) {
    return bad_group(entry.module, "gaps has " + std::to_string(entry.gaps->info.size_bytes()) +
                                       " bytes, the stream needs " +
                                       std::to_string(gaps_bytes(n_code_bytes)));
  }
  // Spec section 10: upstream leaves one position out in one case.
  const uint64_t positions_bytes = entry.output_positions->info.size_bytes();
  if (positions_bytes != 4 * n_output_positions(n_code_bytes) &&
      positions_bytes != 4 * (n_output_positions(n_code_bytes) - 1)) {
    return bad_group(entry.module, "output_positions has " + std::to_string(positions_bytes) +
                                       " bytes, the stream needs " +
                                       std::to_string(4 * n_output_positions(n_code_bytes)));
  }
  return {};
}

Result<std::vector<uint64_t>> parse_member_elements(const GroupEntry& entry, ByteSpan bytes) {
  const size_t n_splits = bytes.size() / 8;
  if (n_splits + 1 != entry.members.size()) {
    return bad_group(entry.module, std::to_string(n_splits) + " split positions for " +
                                       std::to_string(entry.members.size()) + " members");
  }
  std::vector<uint64_t> elements;
  uint64_t begin = 0;
  for (size_t i = 0; i <= n_splits; ++i) {
    const uint64_t end = i < n_splits ? load_le64(&bytes[8 * i]) : entry.n_elements();
    if (end < begin || end > entry.n_elements()) {
      return bad_group(entry.module, "split_positions are not ascending within the weights");
    }
    elements.push_back(end - begin);
    begin = end;
  }
  return elements;
}

// One list of members serves all groups that its pattern matches, each under a name of its own:
// what they take together is not bounded by the size of the files.
Result<void> names_within_limit(const std::string& module, const std::vector<std::string>& members,
                                uint64_t& total_bytes) {
  for (const std::string& member : members) {
    total_bytes += sizeof(std::string) + module.size() + member.size();
    if (total_bytes > kMaxTextBytes) {
      return fail(Error{ErrorCode::limit_exceeded,
                        "the names of all groups' members take more than 128 MiB",
                        {},
                        module,
                        {}});
    }
  }
  return {};
}

}  // namespace

uint64_t GroupEntry::stored_bytes() const {
  uint64_t bytes = 0;
  for (const TensorLocation* tensor :
       {luts, encoded_exponent, sign_mantissa, output_positions, gaps, split_positions}) {
    bytes += tensor->info.size_bytes();
  }
  return bytes;
}

uint64_t Group::first_element(size_t member) const {
  return std::accumulate(member_elements.begin(),
                         member_elements.begin() + static_cast<ptrdiff_t>(member), uint64_t{0});
}

Result<void> Artifact::sort_tensors() {
  DF11_ASSIGN(const ModulePatterns patterns, ModulePatterns::compile(config_.pattern_dict));
  const auto is_group = [&](const std::string& module) {
    return shards_.find(joined(module, kEncodedExponentName)) != nullptr;
  };
  uint64_t member_bytes = 0;
  for (const auto& [name, location] : shards_.tensors()) {
    const size_t dot = name.rfind('.');
    const std::string module = dot == name.npos ? "" : name.substr(0, dot);
    const std::string leaf = dot == name.npos ? name : name.substr(dot + 1);
    const bool group_tensor =
        std::find(kGroupTensors.begin(), kGroupTensors.end(), leaf) != kGroupTensors.end();
    if (!group_tensor || !is_group(module)) {
      verbatim_.push_back(&location);
      continue;
    }
    if (leaf != kEncodedExponentName) continue;  // the group is made once, from this one
    GroupEntry entry{module, {}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    const std::array<const TensorLocation**, 6> slots = {
        &entry.luts, &entry.encoded_exponent, &entry.sign_mantissa, &entry.output_positions,
        &entry.gaps, &entry.split_positions};
    for (size_t i = 0; i < slots.size(); ++i) {
      *slots[i] = shards_.find(joined(module, kGroupTensors[i]));
      if (*slots[i] == nullptr)
        return bad_group(module, std::string(kGroupTensors[i]) + " is missing");
    }
    DF11_TRY(check_declared(entry));
    DF11_ASSIGN(const std::vector<std::string>* members, patterns.members_of(module));
    if (members == nullptr) {
      return bad_group(module,
                       "no pattern of dfloat11_config matches the module: upstream would leave its "
                       "weights as they were initialised");
    }
    DF11_TRY(names_within_limit(module, *members, member_bytes));
    if (members->empty()) entry.members.push_back(joined(module, "weight"));
    for (const std::string& member : *members) {
      entry.members.push_back(joined(module, member + ".weight"));
    }
    groups_.push_back(std::move(entry));
  }
  return {};
}

Result<Artifact> Artifact::open(const std::filesystem::path& directory) {
  const auto in_file = [&](std::string_view name, Error error) {
    return fail(std::move(error).in_file((directory / name).string()));
  };
  std::error_code status_error;
  if (!std::filesystem::is_directory(directory, status_error)) {
    return fail(Error{ErrorCode::not_found, "no such directory", directory.string(), {}, {}});
  }
  Artifact artifact;
  artifact.directory_ = directory;
  DF11_ASSIGN(const std::vector<DirectoryEntry> entries, list_files(directory));
  std::vector<std::string> shard_names;
  bool has_manifest = false;
  for (const DirectoryEntry& entry : entries) {
    const std::string& path = entry.relative_path;
    if (path == kManifestName) has_manifest = true;
    if (path.find('/') == path.npos && path.ends_with(kSafetensorsSuffix))
      shard_names.push_back(path);
  }

  DF11_ASSIGN(artifact.config_text_, read_text_file(directory / kConfigName, kMaxTextBytes));
  const Result<Json> config = parse_json(artifact.config_text_);
  if (!config) return in_file(kConfigName, config.error());
  Result<Df11Config> df11_config = Df11Config::from_config(*config);
  if (!df11_config) return in_file(kConfigName, std::move(df11_config).error());
  artifact.config_ = std::move(*df11_config);

  if (has_manifest) {
    DF11_ASSIGN(const std::string text, read_text_file(directory / kManifestName, kMaxTextBytes));
    Result<Manifest> manifest = Manifest::parse(text);
    if (!manifest) return in_file(kManifestName, std::move(manifest).error());
    artifact.manifest_ = std::move(*manifest);
  }
  DF11_ASSIGN(artifact.shards_, ShardSet::open(directory, shard_names));
  if (Result<void> sorted = artifact.sort_tensors(); !sorted) {
    return fail(std::move(sorted).error().in_file(directory.string()));
  }
  return artifact;
}

Result<Group> Artifact::load_group(const GroupEntry& entry) const {
  const auto annotate = [&](Error error) {
    return fail(std::move(error)
                    .in_tensor(entry.module)
                    .in_file(shards_.shards()[entry.encoded_exponent->shard].file.path()));
  };
  // Sizes were checked against limits: luts below, the others against the code bytes.
  if (entry.luts->info.shape[0] > 2 + kMaxLinkRows) {
    return annotate({ErrorCode::malformed_group, "luts has too many rows", {}, {}, {}});
  }
  if (entry.split_positions->info.size_bytes() > 8 * entry.members.size()) {
    return annotate(
        {ErrorCode::malformed_group, "split_positions has more entries than members", {}, {}, {}});
  }
  DF11_ASSIGN(const std::vector<uint8_t> luts, shards_.read_all(*entry.luts));
  DF11_ASSIGN(const std::vector<uint8_t> positions, shards_.read_all(*entry.output_positions));
  DF11_ASSIGN(const std::vector<uint8_t> splits, shards_.read_all(*entry.split_positions));

  Group group;
  group.entry = &entry;
  Result<LookupTables> tables = LookupTables::parse(luts, entry.luts->info.shape[0]);
  if (!tables) return annotate(std::move(tables).error());
  group.tables = std::move(*tables);
  Result<std::vector<uint32_t>> parsed_positions =
      parse_output_positions(positions, entry.n_elements(), entry.n_code_bytes());
  if (!parsed_positions) return annotate(std::move(parsed_positions).error());
  group.positions = std::move(*parsed_positions);
  Result<std::vector<uint64_t>> elements = parse_member_elements(entry, splits);
  if (!elements) return annotate(std::move(elements).error());
  group.member_elements = std::move(*elements);
  return group;
}

}  // namespace df11
