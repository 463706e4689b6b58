// An artifact of groups that no encoder here writes, read from disk: equal to the words they hold.
#include <gtest/gtest.h>

#include "directories/builders.h"
#include "format/df11_config.h"
#include "format/df11_layout.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "support/unusual_groups.h"

namespace df11::test {
namespace {

Tensor stored(std::string name, Dtype dtype, Shape shape, const std::vector<uint8_t>& bytes) {
  return {std::move(name), dtype, std::move(shape), std::string(bytes.begin(), bytes.end())};
}

// The six tensors under the name of `module`.
std::vector<Tensor> group_tensors(const std::string& module, const GroupTensors& group) {
  const auto flat = [&](std::string_view leaf, const std::vector<uint8_t>& bytes) {
    return stored(module + "." + std::string(leaf), Dtype::kU8, {bytes.size()}, bytes);
  };
  return {stored(module + ".luts", Dtype::kU8, {group.luts.size() / kLutRowBytes, kLutRowBytes},
                 group.luts),
          flat(kEncodedExponentName, group.encoded_exponent),
          flat(kSignMantissaName, group.sign_mantissa),
          flat(kOutputPositionsName, group.output_positions),
          flat(kGapsName, group.gaps),
          stored(module + ".split_positions", Dtype::kI64, {group.split_positions.size() / 8},
                 group.split_positions)};
}

TEST(UnusualGroups, VerifyEqualFromDiskAndDifferAfterOneWord) {
  constexpr uint64_t kGroups = 150;
  const TemporaryDirectory directory;
  std::vector<Tensor> source, artifact;
  Df11Config config{"0.5.0", {}};
  bool last_position_is_missing = false;
  for (uint64_t seed = 1; seed <= kGroups; ++seed) {
    const UnusualGroup group = unusual_group(seed);
    last_position_is_missing |= group.last_position_is_missing;
    const std::string module = "m." + std::to_string(seed);
    std::vector<std::string> members;
    for (const std::vector<uint16_t>& words : group.members) {
      members.push_back("part" + std::to_string(members.size()));
      source.push_back(
          bf16_tensor(module + "." + members.back() + ".weight", {words.size()}, words));
    }
    config.pattern_dict.emplace_back("m\\." + std::to_string(seed), members);
    for (Tensor& tensor : group_tensors(module, group.tensors))
      artifact.push_back(std::move(tensor));
  }
  EXPECT_TRUE(last_position_is_missing);
  write_safetensors(directory / "source/model.safetensors", source);
  write_file(directory / "source/config.json", "{}");
  write_safetensors(directory / "artifact/model.safetensors", artifact);
  write_file(directory / "artifact/config.json", *splice_df11_config("{}", config.to_json_text()));

  const Result<VerifyReport> report = run_verify(directory / "artifact", directory / "source");
  ASSERT_TRUE(succeeded(report));
  EXPECT_TRUE(report->equal()) << to_json(*report, 0);
  EXPECT_EQ(report->n_groups, kGroups);

  source[0].bytes[0] ^= 1;
  write_safetensors(directory / "source/model.safetensors", source);
  const Result<VerifyReport> differs = run_verify(directory / "artifact", directory / "source");
  ASSERT_TRUE(succeeded(differs));
  ASSERT_EQ(differs->findings.size(), 1u);
  EXPECT_EQ(differs->findings[0].tensor, source[0].name);
}

}  // namespace
}  // namespace df11::test
