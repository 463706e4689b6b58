// Rendering of compression results, for df11-compress and df11-inspect.
#pragma once

#include <string>

#include "compressor/compress.h"

namespace df11::cli {

// Several lines that a person can quote.
std::string summary_text(const CompressSummary& summary, const std::string& source,
                         const std::string& output, bool dry_run, double seconds);
// spec/cli.md, "df11-compress --json".
std::string summary_json(const CompressSummary& summary, const std::string& source,
                         const std::string& output, bool dry_run, double seconds);

// One line: "tied_weight_coded: FILE: 'lm_head': …".
std::string lint_line(const LintFinding& finding);

// How many tensors stay verbatim for each reason; with names, one line for the tensors that differ
// in numbers only.
std::string verbatim_reasons(const Manifest& manifest, bool with_names);

}  // namespace df11::cli
