// Assertions on Result<T> that show the error they met.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "format/error.h"

namespace df11::test {

template <typename T>
::testing::AssertionResult succeeded(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << error_code_name(result.error().code) << ": " << result.error().describe();
}

// Fails with `code`, and with `text` somewhere in the description.
template <typename T>
::testing::AssertionResult failed_with(const Result<T>& result, ErrorCode code,
                                       std::string_view text = {}) {
  if (result) return ::testing::AssertionFailure() << "succeeded";
  const std::string description = result.error().describe();
  if (result.error().code == code && description.find(text) != description.npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "is " << error_code_name(result.error().code) << ": " << description << "; wanted "
         << error_code_name(code) << " with \"" << text << "\"";
}

}  // namespace df11::test
