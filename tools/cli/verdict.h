// Rendering of verification reports: for a terminal, and for GitHub Actions.
#pragma once

#include <string>

#include "verify/report.h"

namespace df11::cli {

// One line for each finding, note and lint finding, and one with the verdict.
std::string verdict_text(const VerifyReport& report, double seconds);

// A job summary in Markdown, well below the site's limit of 1 MiB.
std::string verdict_markdown(const VerifyReport& report, double seconds);

// Workflow commands "::error …" and "::warning …", below the site's limit of 10 of a kind a step;
// the last says how many more there are.
std::string verdict_annotations(const VerifyReport& report);

}  // namespace df11::cli
