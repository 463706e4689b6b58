#include "tools/cli/summary.h"

#include <map>

#include "format/json.h"
#include "format/module_names.h"
#include "tools/cli/app.h"

namespace df11::cli {

namespace {
double as_double(uint64_t n) {
  return static_cast<double>(n);
}

// "model.layers.*.norm.weight": one line for the same tensor of every block.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const std::string_view part : name_components(name)) {
    if (!text.empty()) text += '.';
    text += is_all_digits(part) ? "*" : part;
  }
  return text;
}
}  // namespace

std::string verbatim_reasons(const Manifest& manifest, bool with_names) {
  struct Tally {
    uint64_t n_tensors = 0, n_bytes = 0;
    std::map<std::string, uint64_t> n_by_name;  // with * for numbers
  };
  std::map<std::string, Tally> tallies;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!tensor.group.empty()) continue;
    Tally& tally = tallies[tensor.reason];
    ++tally.n_tensors;
    tally.n_bytes += *tensor_bytes(tensor.dtype, tensor.shape);
    ++tally.n_by_name[without_numbers(tensor.name)];
  }
  std::string text;
  for (const auto& [reason, tally] : tallies) {
    text += "    " + format_count(tally.n_tensors) + " tensors, " +
            format_bytes(as_double(tally.n_bytes)) + ": " + reason + "\n";
    if (!with_names) continue;
    for (const auto& [name, n] : tally.n_by_name)
      text += "      " + name + (n == 1 ? "" : " (" + format_count(n) + ")") + "\n";
  }
  return text;
}

std::string lint_line(const LintFinding& finding) {
  std::string line = std::string(lint_severity_name(finding.severity)) + ": " + finding.rule + ": ";
  if (!finding.file.empty()) line += finding.file + ": ";
  if (!finding.module.empty()) line += "'" + finding.module + "': ";
  return printable(line + finding.message);
}

std::string summary_text(const CompressSummary& summary, const std::string& source,
                         const std::string& output, bool dry_run, double seconds) {
  const double source_bytes = as_double(summary.source_bytes);
  std::string text = source + ": " + format_bytes(source_bytes) + " -> " +
                     format_bytes(as_double(summary.artifact_bytes)) + " (" +
                     format_percent(as_double(summary.artifact_bytes), source_bytes) + ")\n";
  size_t n_grouped = 0;
  for (const ManifestTensor& tensor : summary.manifest.tensors) n_grouped += !tensor.group.empty();
  const uint64_t n_weights = summary.grouped_weight_bytes / 2;
  text += "  coded     " + format_count(n_grouped) + " tensors in " +
          format_count(summary.manifest.groups.size()) + " groups";
  if (n_weights != 0) {
    text += ", " + format_bytes(as_double(summary.grouped_weight_bytes)) + " -> " +
            format_bytes(as_double(summary.stored_group_bytes)) + ", " +
            format_fixed(8 * as_double(summary.stored_group_bytes) / as_double(n_weights), 2) +
            " bits a weight";
  }
  text += "\n  verbatim  " + format_count(summary.manifest.tensors.size() - n_grouped) +
          " tensors, " +
          format_bytes(as_double(summary.source_weight_bytes - summary.grouped_weight_bytes)) +
          "\n" + verbatim_reasons(summary.manifest, dry_run);
  for (const std::string& path : summary.manifest.omitted_files)
    text += "  left out  " + path + "\n";
  if (summary.n_published != 0) {
    text += "  source    " + format_count(summary.n_published) + " of " +
            format_count(summary.manifest.source_files.size()) + " files " +
            (dry_run ? "have a published hash to compare with\n"
                     : "confirmed by their published hash\n");
  }
  if (summary.n_reused != 0) {
    text += "  resumed   " + format_count(summary.n_reused) +
            " files of an interrupted run were kept: made from these tensors, SHA-256 as written\n";
  }
  for (const std::string& note : summary.notes) text += "  note: " + printable(note) + "\n";
  for (const LintFinding& finding : summary.lint) {
    text += "  for the dfloat11 package: " + lint_line(finding) + "\n";
  }
  if (dry_run) {
    return text + "  dry run: nothing was written; the output would have exactly " +
           format_count(summary.artifact_bytes) + " bytes\n";
  }
  return text + "  " + output + " written in " + format_seconds(seconds) + ", " +
         format_bytes(source_bytes / seconds) + "/s\n";
}

std::string summary_json(const CompressSummary& summary, const std::string& source,
                         const std::string& output, bool dry_run, double seconds) {
  Json groups = Json::array();
  for (const ManifestGroup& group : summary.manifest.groups) {
    groups.push_back({{"module", group.module},
                      {"file", group.file},
                      {"elements", group.n_elements},
                      {"code_bytes", group.n_code_bytes},
                      {"exponent_entropy_bits", group.entropy_bits},
                      {"longest_code_bits", group.longest_code_bits}});
  }
  Json verbatim = Json::array();
  for (const ManifestTensor& tensor : summary.manifest.tensors) {
    if (tensor.group.empty())
      verbatim.push_back({{"name", tensor.name}, {"reason", tensor.reason}});
  }
  const Json root = {{"report", "df11-compress"},
                     {"schema_version", 1},
                     {"tool_version", summary.manifest.tool_version},
                     {"dry_run", dry_run},
                     {"source", source},
                     {"output", output},
                     {"source_bytes", summary.source_bytes},
                     {"artifact_bytes", summary.artifact_bytes},
                     {"source_weight_bytes", summary.source_weight_bytes},
                     {"grouped_weight_bytes", summary.grouped_weight_bytes},
                     {"stored_group_bytes", summary.stored_group_bytes},
                     {"seconds", seconds},
                     {"groups", std::move(groups)},
                     {"verbatim", std::move(verbatim)},
                     {"omitted_files", summary.manifest.omitted_files},
                     {"source_files", summary.manifest.source_files.size()},
                     {"published_files", summary.n_published},
                     {"reused_files", summary.n_reused},
                     {"notes", summary.notes},
                     {"lint", lint_to_json(summary.lint)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace df11::cli
