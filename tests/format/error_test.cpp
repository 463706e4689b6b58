#include "format/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

TEST(Error, CodesArePinned) {
  // Values and names are part of JSON reports: this list may only grow.
  const std::vector<std::pair<int, std::string_view>> pinned = {{1, "io_error"},
                                                                {2, "not_found"},
                                                                {3, "already_exists"},
                                                                {4, "no_space"},
                                                                {5, "invalid_argument"},
                                                                {6, "malformed_json"},
                                                                {7, "malformed_safetensors"},
                                                                {8, "malformed_index"},
                                                                {9, "malformed_config"},
                                                                {10, "malformed_group"},
                                                                {11, "malformed_manifest"},
                                                                {12, "corrupt_stream"},
                                                                {13, "unsupported"},
                                                                {14, "limit_exceeded"},
                                                                {15, "source_changed"},
                                                                {16, "cancelled"},
                                                                {19, "damaged"}};
  for (const auto& [value, name] : pinned) {
    EXPECT_EQ(error_code_name(static_cast<ErrorCode>(value)), name);
  }
}

TEST(ErrorCode, DamageIsOfWhatWasRead) {
  for (const ErrorCode code :
       {ErrorCode::malformed_json, ErrorCode::malformed_safetensors, ErrorCode::malformed_index,
        ErrorCode::malformed_config, ErrorCode::malformed_group, ErrorCode::malformed_manifest,
        ErrorCode::corrupt_stream, ErrorCode::damaged}) {
    EXPECT_TRUE(is_damage(code)) << error_code_name(code);
  }
  for (const ErrorCode code :
       {ErrorCode::io_error, ErrorCode::not_found, ErrorCode::already_exists, ErrorCode::no_space,
        ErrorCode::invalid_argument, ErrorCode::unsupported, ErrorCode::cancelled}) {
    EXPECT_FALSE(is_damage(code)) << error_code_name(code);
  }
}

TEST(Error, DescribesWhatItKnows) {
  Error error{ErrorCode::io_error, "it broke", {}, {}, {}};
  EXPECT_EQ(error.describe(), "it broke");
  error.offset_bytes = 17;
  const Error placed = Error(error).in_file("a.bin").in_tensor("w");
  EXPECT_EQ(placed.describe(), "a.bin: tensor 'w': at byte 17: it broke");
  const Error again = Error(placed).in_file("b.bin").in_tensor("v");
  EXPECT_EQ(again.file, "a.bin");
  EXPECT_EQ(again.tensor, "w");
}

TEST(Error, MapsSystemErrors) {
  EXPECT_EQ(system_error(ENOENT, "cannot open", "x").code, ErrorCode::not_found);
  EXPECT_EQ(system_error(ENOTDIR, "cannot open", "x").code, ErrorCode::not_found);
  EXPECT_EQ(system_error(EEXIST, "cannot create", "x").code, ErrorCode::already_exists);
  EXPECT_EQ(system_error(ENOTEMPTY, "cannot rename", "x").code, ErrorCode::already_exists);
  EXPECT_EQ(system_error(ENOSPC, "cannot write", "x").code, ErrorCode::no_space);
  EXPECT_EQ(system_error(EDQUOT, "cannot write", "x").code, ErrorCode::no_space);
  EXPECT_EQ(system_error(EIO, "cannot read", "x").code, ErrorCode::io_error);
  EXPECT_EQ(system_error(EACCES, "cannot open", "x").describe(),
            "x: cannot open: Permission denied");
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::invalid_argument, "odd");
  return value / 2;
}
Result<int> quarter(int value) {
  DF11_TRY(half(value));
  DF11_ASSIGN(const int first, half(value));
  DF11_ASSIGN(const int second, half(first));
  return second;
}

TEST(Error, MacrosPassFailuresOn) {
  ASSERT_TRUE(succeeded(quarter(12)));
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_TRUE(failed_with(quarter(7), ErrorCode::invalid_argument, "odd"));
  EXPECT_TRUE(failed_with(quarter(6), ErrorCode::invalid_argument, "odd"));
}

}  // namespace
}  // namespace df11::test
