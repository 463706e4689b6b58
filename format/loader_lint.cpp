#include "format/loader_lint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "format/checkpoint.h"
#include "format/df11_layout.h"
#include "format/module_names.h"

namespace df11 {

namespace {

// A weight tensor in a group, as far as it is known.
struct CodedMember {
  std::string tensor;
  std::string file;
  std::optional<size_t> rank;  // only a manifest knows it
};

std::string joined(std::string_view module, std::string_view leaf) {
  return module.empty() ? std::string(leaf) : std::string(module) + "." + std::string(leaf);
}

class Linter {
 public:
  // Section 9, 5: weights are injected into Linear modules, or one Linear or Embedding.
  void check_is_linear(const Json& config, const CodedMember& member) {
    const std::string_view module = module_of(member.tensor), leaf = leaf_of(module);
    const auto add = [&](LintSeverity severity, std::string message) {
      findings_.push_back(
          {"member_not_linear", severity, std::string(module), member.file, std::move(message)});
    };
    if (member.rank && *member.rank != 2) {
      add(LintSeverity::kError,
          "a weight of rank " + std::to_string(*member.rank) + " is none of a Linear or Embedding");
    } else if (is_conv1d(config, leaf)) {
      add(LintSeverity::kError,
          "a Conv1D in this model type: upstream injects no weights into it, and does not say so");
    } else if (is_router_leaf(leaf) && !repeated_block_of(module).empty()) {
      add(LintSeverity::kWarning, "a router, in many models of a class of its own");
    } else if (!member.rank && leaf.find("norm") != leaf.npos) {
      add(LintSeverity::kWarning, "named like a norm, which is no Linear");
    }
  }

  // Section 9, 6: a group's words live until the next group is decoded.
  void check_not_tied(const Json& config, const std::vector<CodedMember>& members, bool has_head) {
    const bool tied = config_says_tied(config);
    if (!tied && (has_head || is_base_model(config))) return;
    for (const CodedMember& member : members) {
      const std::string_view module = module_of(member.tensor), leaf = leaf_of(module);
      if (!repeated_block_of(module).empty()) continue;
      if (!is_embedding_leaf(leaf) && !is_head_leaf(leaf)) continue;
      findings_.push_back(
          {"tied_weight_coded", tied ? LintSeverity::kError : LintSeverity::kWarning,
           std::string(module), member.file,
           tied
               ? "config.json ties embedding and output head: the other one computes with whatever "
                 "group was decoded last"
               : "there is no output head: if the model ties it to the embedding, it computes with "
                 "whatever group was decoded last"});
    }
  }

  // Section 9, 2 and sections 10.1, 10.3.
  Result<void> check_group(const Artifact& artifact, const GroupEntry& entry) {
    const std::string& file = artifact.shards().shards()[entry.encoded_exponent->shard].name;
    const auto add = [&](std::string_view rule, LintSeverity severity, std::string message) {
      findings_.push_back({std::string(rule), severity, entry.module, file, std::move(message)});
    };
    const Result<Group> group = artifact.load_group(entry);
    if (!group) {
      if (!is_damage(group.error().code)) return fail(group.error());
      add("group_malformed", LintSeverity::kError, group.error().message);
      return {};
    }
    uint32_t largest = 0;
    for (size_t i = 0; i < group->n_blocks(); ++i) {
      largest = std::max(largest, group->positions[i + 1] - group->positions[i]);
    }
    if (largest > kMaxUpstreamBlockElements) {
      add("block_over_shared_memory", LintSeverity::kError,
          "a block of " + std::to_string(largest) +
              " weights does not fit the shared memory upstream launches its kernel with, which "
              "holds " +
              std::to_string(kMaxUpstreamBlockElements));
    }
    if (!group->tables.always_progresses()) {
      add("table_can_spin", LintSeverity::kWarning,
          "luts has slots on which upstream's kernel would not end; no weight leads there, but "
          "padding might");
    }
    if (entry.output_positions->info.size_bytes() < 4 * n_output_positions(entry.n_code_bytes())) {
      add("last_position_missing", LintSeverity::kWarning,
          "output_positions lacks its last entry: upstream's kernel reads past the tensor");
    }
    return {};
  }

  // Section 9, 7: every name ending in .safetensors is opened, and none below the top level.
  Result<void> check_shards(const Artifact& artifact) {
    const auto add = [&](std::string file, std::string message) {
      findings_.push_back(
          {"stray_shard", LintSeverity::kError, "", std::move(file), std::move(message)});
    };
    std::set<std::string> shards, indexed;
    for (const Shard& shard : artifact.shards().shards()) shards.insert(shard.name);
    bool has_index = false;
    std::error_code error;
    std::filesystem::directory_iterator entry(artifact.directory(), error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.ends_with(kSafetensorsSuffix) && !shards.contains(name)) {
        add(name, "no shard, but upstream's loader opens everything of that ending");
      }
      if (!name.ends_with(kIndexSuffix)) continue;
      DF11_ASSIGN(const std::string text, read_text_file(entry->path(), kMaxTextBytes));
      const Result<ShardIndex> index = ShardIndex::parse(text);
      if (!index) continue;  // index_differs, a finding of the verification
      has_index = true;
      for (const auto& [tensor, file] : index->weight_map) indexed.insert(file);
    }
    if (error) return fail(system_error(error.value(), "list", artifact.directory().string()));
    for (const std::string& name : shards) {
      if (has_index && !indexed.contains(name)) {
        add(name, "in no index, but upstream's loader opens it all the same");
      }
    }
    return {};
  }

  // Sections 7 and 10.9: which modules the patterns match, and what the directory has of them.
  Result<void> check_patterns(const Artifact& artifact) {
    const PatternDict& dict = artifact.config().pattern_dict;
    DF11_ASSIGN(const ModulePatterns patterns, ModulePatterns::compile(dict));
    std::map<std::string, std::string> modules;  // with all their parents, and a file that has them
    std::set<std::string> weights, owners;       // tensors, and modules that have one of their own
    const auto see = [&](const std::string& tensor, const TensorLocation& location) {
      weights.insert(tensor);
      owners.emplace(module_of(tensor));
      for (std::string_view module = module_of(tensor); !module.empty();
           module = module_of(module)) {
        const std::string& file = artifact.shards().shards()[location.shard].name;
        if (!modules.emplace(module, file).second) break;
      }
    };
    std::set<std::string> groups;
    for (const GroupEntry& group : artifact.groups()) {
      groups.insert(group.module);
      for (const std::string& member : group.members) see(member, *group.encoded_exponent);
    }
    for (const TensorLocation* tensor : artifact.verbatim()) see(tensor->info.name, *tensor);

    std::vector<bool> used(dict.size(), false);
    for (const auto& [module, file] : modules) {
      const Result<std::vector<size_t>> matches = patterns.matching(module);
      if (!matches) {
        findings_.push_back({"pattern_too_costly", LintSeverity::kError, module,
                             std::string(kConfigName), matches.error().message});
        return {};
      }
      if (matches->empty()) continue;
      for (const size_t i : *matches) used[i] = true;
      if (groups.contains(module)) {
        if (matches->size() > 1) {
          findings_.push_back({"several_patterns", LintSeverity::kError, module, file,
                               "matched by \"" + dict[(*matches)[0]].first + "\" and \"" +
                                   dict[(*matches)[1]].first +
                                   "\": upstream applies both, and fails on the second"});
        }
      } else if (!dict[matches->front()].second.empty() || owners.contains(module)) {
        check_ungrouped(module, file, dict[matches->front()], weights);
      }
    }
    for (size_t i = 0; i < dict.size(); ++i) {
      if (used[i]) continue;
      findings_.push_back({"pattern_unused", LintSeverity::kWarning, "", std::string(kConfigName),
                           "\"" + dict[i].first + "\" matches no module of the artifact"});
    }
    return {};
  }

  // Section 9, 8, and names that the loader would take for a group's.
  void check_verbatim(const Artifact& artifact) {
    std::set<std::string> coded;
    for (const GroupEntry& group : artifact.groups())
      coded.insert(group.members.begin(), group.members.end());
    std::map<std::pair<std::string, Dtype>, std::vector<std::string>> converted;
    for (const TensorLocation* tensor : artifact.verbatim()) {
      const std::string& name = tensor->info.name;
      const std::string& file = artifact.shards().shards()[tensor->shard].name;
      if (coded.contains(name)) {
        findings_.push_back({"member_also_verbatim", LintSeverity::kWarning, name, file,
                             "a group's member, but stored as it is too: upstream loads both"});
      }
      if (leaf_of(name) == kOutputPositionsName || leaf_of(name) == kSplitPositionsName) {
        // The loader takes differences of neighbouring u32 of the first.
        const uint64_t n_bytes = tensor->info.size_bytes();
        const bool raises =
            leaf_of(name) == kOutputPositionsName && (n_bytes % 4 != 0 || n_bytes < 8);
        findings_.push_back({"reserved_name",
                             raises ? LintSeverity::kError : LintSeverity::kWarning, name, file,
                             "upstream takes it for a part of a group"});
      }
      const Dtype dtype = tensor->info.dtype;
      if (dtype == Dtype::kF16 || dtype == Dtype::kF32 || dtype == Dtype::kF64)
        converted[{file, dtype}].push_back(name);
    }
    for (const auto& [key, names] : converted) {  // one for each file: there can be many
      findings_.push_back({"verbatim_converted", LintSeverity::kWarning, names.front(), key.first,
                           std::to_string(names.size()) + " tensors of dtype " +
                               std::string(dtype_name(key.second)) +
                               ": upstream converts them to the model's dtype, BF16"});
    }
  }

  std::vector<LintFinding> take() {
    std::sort(findings_.begin(), findings_.end());
    return std::move(findings_);
  }

 private:
  // A pattern promises a group of `module`, and there is none.
  void check_ungrouped(const std::string& module, const std::string& file,
                       const std::pair<std::string, std::vector<std::string>>& pattern,
                       const std::set<std::string>& weights) {
    std::vector<std::string> wanted, missing;
    for (const std::string& member : pattern.second)
      wanted.push_back(joined(module, member + ".weight"));
    if (wanted.empty()) wanted.push_back(joined(module, "weight"));
    std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(missing),
                 [&](const std::string& name) { return !weights.contains(name); });
    if (missing.empty()) {
      findings_.push_back({"pattern_without_group", LintSeverity::kWarning, module, file,
                           "matched by \"" + pattern.first + "\", but it has no group"});
    } else {
      findings_.push_back({"weight_missing", LintSeverity::kError, module, file,
                           "matched by \"" + pattern.first + "\", but '" + missing.front() +
                               "' is neither in a group nor verbatim: it keeps what memory held"});
    }
  }

  std::vector<LintFinding> findings_;
};

bool is_head_weight(const std::string& tensor) {
  return tensor.ends_with(kWeightSuffix) && is_head_leaf(leaf_of(module_of(tensor)));
}

}  // namespace

std::string_view lint_severity_name(LintSeverity severity) {
  return severity == LintSeverity::kError ? "error" : "warning";
}

bool has_errors(const std::vector<LintFinding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const auto& f) { return f.severity == LintSeverity::kError; });
}

Json lint_to_json(const std::vector<LintFinding>& findings) {
  Json list = Json::array();
  for (const LintFinding& finding : findings) {
    list.push_back({{"rule", finding.rule},
                    {"severity", lint_severity_name(finding.severity)},
                    {"module", finding.module},
                    {"file", finding.file},
                    {"message", finding.message}});
  }
  return list;
}

Result<std::vector<LintFinding>> lint_for_upstream(const Artifact& artifact) {
  DF11_ASSIGN(const Json config, parse_json(artifact.config_text()));
  std::map<std::string, size_t> ranks;
  bool has_head = false;
  if (artifact.manifest()) {
    for (const ManifestTensor& tensor : artifact.manifest()->tensors)
      ranks[tensor.name] = tensor.shape.size();
  }
  std::vector<CodedMember> members;
  for (const GroupEntry& group : artifact.groups()) {
    const std::string& file = artifact.shards().shards()[group.encoded_exponent->shard].name;
    for (const std::string& member : group.members) {
      const auto rank = ranks.find(member);
      members.push_back(
          {member, file, rank == ranks.end() ? std::nullopt : std::optional<size_t>(rank->second)});
      has_head |= is_head_weight(member);
    }
  }
  for (const TensorLocation* tensor : artifact.verbatim())
    has_head |= is_head_weight(tensor->info.name);

  Linter linter;
  for (const CodedMember& member : members) linter.check_is_linear(config, member);
  linter.check_not_tied(config, members, has_head);
  for (const GroupEntry& group : artifact.groups()) DF11_TRY(linter.check_group(artifact, group));
  DF11_TRY(linter.check_shards(artifact));
  DF11_TRY(linter.check_patterns(artifact));
  linter.check_verbatim(artifact);
  return linter.take();
}

std::vector<LintFinding> lint_planned(const Json& config, const Manifest& manifest) {
  std::map<std::string, std::string> files;
  for (const ManifestGroup& group : manifest.groups) files[group.module] = group.file;
  std::vector<CodedMember> members;
  bool has_head = false;
  for (const ManifestTensor& tensor : manifest.tensors) {
    has_head |= is_head_weight(tensor.name);
    if (!tensor.group.empty())
      members.push_back({tensor.name, files[tensor.group], tensor.shape.size()});
  }
  Linter linter;
  for (const CodedMember& member : members) linter.check_is_linear(config, member);
  linter.check_not_tied(config, members, has_head);
  return linter.take();
}

}  // namespace df11
