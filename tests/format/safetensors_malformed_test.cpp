// tests/malformed/safetensors: every file is refused, for the reason it was made for.
#include <gtest/gtest.h>

#include <map>

#include "format/directory.h"
#include "format/safetensors.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

namespace fs = std::filesystem;

// File name: part of the message.
const std::map<std::string, std::string> kReasons = {
    {"data_missing", "the tensors end at byte 2"},
    {"data_trailing_byte", "the tensors end at byte 2"},
    {"data_truncated", "the tensors end at byte 2"},
    {"data_without_tensors", "the tensors end at byte 0"},
    {"dtype_array", "an array where none belongs"},
    {"dtype_empty", "unknown dtype"},
    {"dtype_lower_case", "unknown dtype"},
    {"dtype_null", "null"},
    {"dtype_number", "a number where none belongs"},
    {"dtype_unknown", "unknown dtype"},
    {"file_empty", "shorter than 8 bytes"},
    {"file_is_text", "the limit is"},
    {"file_of_7_bytes", "shorter than 8 bytes"},
    {"file_of_8_bytes", "truncated"},
    {"json_array", "does not begin with '{'"},
    {"json_begins_with_byte_order_mark", "does not begin with '{'"},
    {"json_begins_with_space", "does not begin with '{'"},
    {"json_comment", "not valid JSON"},
    {"json_name_lone_surrogate", "not valid JSON"},
    {"json_name_not_utf8", "not valid JSON"},
    {"json_name_overlong_utf8", "not valid JSON"},
    {"json_name_raw_control_character", "not valid JSON"},
    {"json_nan", "not valid JSON"},
    {"json_not_closed", "not valid JSON"},
    {"json_nul_between_tokens", "not valid JSON"},
    {"json_nul_then_other_object", "not valid JSON"},
    {"json_null", "does not begin with '{'"},
    {"json_single_quotes", "not valid JSON"},
    {"json_string", "does not begin with '{'"},
    {"json_trailing_comma", "not valid JSON"},
    {"json_trailing_letter", "not valid JSON"},
    {"json_trailing_nul", "not valid JSON"},
    {"json_trailing_object", "not valid JSON"},
    {"json_very_deep", "an array where none belongs"},
    {"length_0", "does not begin with '{'"},
    {"length_0_with_data", "does not begin with '{'"},
    {"length_beyond_file", "truncated"},
    {"length_cuts_header", "not valid JSON"},
    {"length_max", "the limit is"},
    {"length_over_limit", "the limit is"},
    {"length_takes_data", "not valid JSON"},
    {"metadata_array", "an array where none belongs"},
    {"metadata_key_twice", "duplicate key"},
    {"metadata_null", "null"},
    {"metadata_number", "a number where none belongs"},
    {"metadata_twice", "duplicate key"},
    {"metadata_value_null", "null"},
    {"metadata_value_number", "a number where none belongs"},
    {"metadata_value_object", "an object where none belongs"},
    {"name_twice", "duplicate key"},
    {"name_twice_by_escape", "duplicate key"},
    {"offsets_begin_after_start", "hole or overlap"},
    {"offsets_empty_tensor_inside_another", "hole or overlap"},
    {"offsets_empty_tensor_past_end", "hole or overlap"},
    {"offsets_exponent", "not an integer"},
    {"offsets_float", "not an integer"},
    {"offsets_huge", "need 2"},
    {"offsets_leave_hole", "hole or overlap"},
    {"offsets_negative", "a negative number"},
    {"offsets_nested", "an array where none belongs"},
    {"offsets_none", "not two"},
    {"offsets_null", "null"},
    {"offsets_number", "a number where none belongs"},
    {"offsets_object", "an object where none belongs"},
    {"offsets_of_strings", "a string where none belongs"},
    {"offsets_one", "not two"},
    {"offsets_over_64_bits", "not an integer"},
    {"offsets_overlap", "hole or overlap"},
    {"offsets_shared", "hole or overlap"},
    {"offsets_swapped", "hole or overlap"},
    {"offsets_three", "a number where none belongs"},
    {"shape_bits_overflow", "no size"},
    {"shape_exponent", "not an integer"},
    {"shape_float", "not an integer"},
    {"shape_leading_zero", "not valid JSON"},
    {"shape_minus_zero", "a negative number"},
    {"shape_negative", "a negative number"},
    {"shape_nested", "an array where none belongs"},
    {"shape_null", "null"},
    {"shape_number", "a number where none belongs"},
    {"shape_object", "an object where none belongs"},
    {"shape_of_booleans", "a boolean"},
    {"shape_of_nulls", "null"},
    {"shape_of_strings", "a string where none belongs"},
    {"shape_over_64_bits", "not an integer"},
    {"shape_product_overflows", "no size"},
    {"shape_product_overflows_before_zero", "no size"},
    {"shape_rank_65", "rank over 64"},
    {"shape_string", "a string where none belongs"},
    {"size_above_shape", "span 2 bytes, shape and dtype need 1"},
    {"size_below_shape", "span 2 bytes, shape and dtype need 3"},
    {"size_f4_odd", "no size"},
    {"size_f6_not_whole_bytes", "no size"},
    {"size_of_other_dtype", "span 2 bytes, shape and dtype need 4"},
    {"size_rank_0_is_one_element", "span 2 bytes, shape and dtype need 1"},
    {"tensor_dtype_missing", "is missing"},
    {"tensor_dtype_twice", "duplicate key"},
    {"tensor_is_array", "an array where none belongs"},
    {"tensor_is_empty", "is missing"},
    {"tensor_is_null", "null"},
    {"tensor_is_number", "a number where none belongs"},
    {"tensor_is_string", "a string where none belongs"},
    {"tensor_offsets_missing", "is missing"},
    {"tensor_offsets_twice", "duplicate key"},
    {"tensor_shape_missing", "is missing"},
    {"tensor_shape_twice", "duplicate key"},
    {"tensor_unknown_key", "unknown key \"extra\""},
};

class Malformed : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(Malformed, IsRefusedForItsReason) {
  const fs::path path =
      fs::path(DF11_MALFORMED_DIR) / "safetensors" / (GetParam().first + ".safetensors");
  const Result<File> file = File::open_read(path);
  ASSERT_TRUE(succeeded(file));
  const Result<SafetensorsHeader> header = SafetensorsHeader::read(*file);
  ASSERT_TRUE(failed_with(header, ErrorCode::malformed_safetensors, GetParam().second));
  EXPECT_EQ(header.error().file, path);
}

INSTANTIATE_TEST_SUITE_P(Safetensors, Malformed,
                         ::testing::ValuesIn(kReasons.begin(), kReasons.end()),
                         [](const auto& test) { return test.param.first; });

TEST(MalformedFiles, AreAllListed) {
  const Result<std::vector<DirectoryEntry>> entries =
      list_files(fs::path(DF11_MALFORMED_DIR) / "safetensors");
  ASSERT_TRUE(succeeded(entries));
  EXPECT_EQ(entries->size(), kReasons.size());
  for (const DirectoryEntry& entry : *entries) {
    EXPECT_TRUE(kReasons.contains(fs::path(entry.relative_path).stem())) << entry.relative_path;
  }
}

}  // namespace
}  // namespace df11::test
