// Whether an artifact is what its source says, in both ways that df11-verify can tell.
#pragma once

#include <optional>

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"

namespace df11::test {

// Success: `artifact` is equal to `source`, and to its manifest; with `n_tensors`, where given.
inline ::testing::AssertionResult verifies(const fs::path& artifact, const fs::path& source,
                                           std::optional<size_t> n_tensors = std::nullopt) {
  for (const fs::path& against : {source, fs::path()}) {
    const Result<VerifyReport> report = run_verify(artifact, against);
    if (!report) return succeeded(report);
    if (!report->equal()) return ::testing::AssertionFailure() << to_json(*report, 0);
    if (n_tensors && report->n_tensors != *n_tensors)
      return ::testing::AssertionFailure() << report->n_tensors << " tensors";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace df11::test
