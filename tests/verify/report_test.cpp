// Verdicts, levels and the machine-readable forms of the report.
#include "verify/report.h"

#include "format/df11_layout.h"
#include "verify/fixture.h"

namespace df11::test {
namespace {

class ReportTest : public VerifyFixture {
 protected:
  Result<VerifyReport> verify_with(const VerifyOptions& options) const {
    const Executor executor(2);
    Progress progress;
    return verify(artifact(), options, *make_cpu_decoder(), executor, progress);
  }
  Result<VerifyReport> structure(bool with_source = false) const {
    VerifyOptions options;
    options.level = VerifyLevel::kStructure;
    if (with_source) options.source = source();
    return verify_with(options);
  }
};

TEST_F(ReportTest, FullLevelProves) {
  const Result<VerifyReport> report = run_verify(artifact());
  ASSERT_TRUE(succeeded(report));
  EXPECT_EQ(report->verdict(), "equal");
  EXPECT_TRUE(report->proven_equal());
  EXPECT_TRUE(report->passed());
  EXPECT_EQ(report->n_artifact_tensors, report->n_tensors);
  EXPECT_EQ(report->n_artifact_groups, report->n_groups);
  EXPECT_EQ(report->shards, (Found{"model.safetensors", layer_name_}));
  Found phases;
  for (const Phase& phase : report->phases) phases.push_back(phase.name);
  EXPECT_EQ(phases, (Found{"open", "list", "weights_and_files"}));
}

TEST_F(ReportTest, IgnoredFilesAreNoProof) {
  const Result<VerifyReport> report = run_verify(artifact(), {}, {"tokenizer.json"});
  ASSERT_TRUE(succeeded(report));
  EXPECT_TRUE(report->equal());
  EXPECT_FALSE(report->proven_equal());
}

TEST_F(ReportTest, StructureIsNeverTakenForFull) {
  for (const bool with_source : {false, true}) {
    const Result<VerifyReport> report = structure(with_source);
    ASSERT_TRUE(succeeded(report));
    EXPECT_EQ(report->findings.size(), 0u);
    EXPECT_TRUE(report->passed());
    EXPECT_FALSE(report->proven_equal());
    EXPECT_EQ(report->verdict(), "structure_ok");
    EXPECT_EQ(report->method(), "structure_only");
    EXPECT_EQ(report->decoder, "");
    EXPECT_EQ(report->n_tensors, 0u);
    EXPECT_EQ(report->weight_bytes, 0u);
    EXPECT_EQ(report->n_files, 0u);
    EXPECT_EQ(report->n_artifact_tensors, 4u);
    EXPECT_EQ(report->skipped.size(), 2u);
  }
}

TEST_F(ReportTest, StructureDoesNotReadWeights) {
  edit_safetensors(layer(), [&](auto& tensors) {  // neither hash nor words are looked at
    tensors.at(module_ + ".sign_mantissa").bytes[77] ^= '\x80';
    tensors.at(module_ + ".encoded_exponent").bytes[77] ^= '\x80';
  });
  EXPECT_EQ(findings_of(structure()), Found{});
  EXPECT_NE(against_manifest(), Found{});
}

TEST_F(ReportTest, StructureFindsWhatHeadersTell) {
  edit_layer([&](auto& tensors) { tensors.at(norm_).shape = {8, 8}; });
  EXPECT_EQ(findings_of(structure()), (Found{"tensor_differs " + layer_name_ + " " + norm_}));
  edit_layer([&](auto& tensors) {
    tensors.at(norm_).shape = {64};
    tensors.at(module_ + ".output_positions").bytes[0] = 1;
  });
  EXPECT_EQ(findings_of(structure()), (Found{"group_corrupt " + layer_name_ + " " + module_}));
  const Result<VerifyReport> report = structure();
  EXPECT_EQ(report->verdict(), "structure_broken");
  EXPECT_FALSE(report->passed());
}

TEST_F(ReportTest, StructureFindsWhatTheListingTells) {
  fs::remove(artifact() / "tokenizer.json");
  write_file(artifact() / "new.txt", "x");
  EXPECT_EQ(findings_of(structure()),
            (Found{"file_unlisted new.txt ", "file_missing tokenizer.json "}));
  write_file(layer(), read_file(layer()) + "x");
  EXPECT_EQ(findings_of(structure()), (Found{"artifact_malformed " + layer_name_ + " "}));
}

TEST_F(ReportTest, StructureOfAnArtifactOfOthers) {
  drop_manifest();
  const Result<VerifyReport> report = structure();
  ASSERT_TRUE(succeeded(report));
  EXPECT_EQ(report->verdict(), "structure_ok");
  EXPECT_EQ(report->skipped.size(), 3u);  // and says that there was nothing to compare names with
  edit_safetensors(layer(), [&](auto& tensors) { tensors[weight_] = weights(weight_, {64, 96}); });
  write_index(artifact() / "model.safetensors.index.json", {});
  EXPECT_EQ(findings_of(structure()), (Found{"index_differs model.safetensors.index.json ",
                                             "tensor_duplicate " + layer_name_ + " " + weight_}));
}

TEST_F(ReportTest, LintErrorsFailButDoNotDisprove) {
  VerifyOptions options;
  options.lint = true;
  Result<VerifyReport> report = verify_with(options);
  ASSERT_TRUE(succeeded(report));
  ASSERT_TRUE(report->lint.has_value());
  EXPECT_TRUE(report->lint->empty());
  EXPECT_TRUE(report->passed());

  fs::remove_all(artifact());
  CompressOptions include;
  include.plan.include = {"*embed_tokens*"};  // which config.json ties
  compress_or_throw(source(), artifact(), include);
  report = verify_with(options);
  ASSERT_TRUE(succeeded(report));
  ASSERT_EQ(report->lint->size(), 1u);
  EXPECT_EQ(report->verdict(), "equal");
  EXPECT_TRUE(report->proven_equal());
  EXPECT_FALSE(report->passed());
  EXPECT_NE(to_junit(*report, 0).find("<failure type=\"tied_weight_coded\""), std::string::npos);
  EXPECT_TRUE(run_verify(artifact())->passed());  // it was not asked
}

TEST_F(ReportTest, FirstDifferenceHasBothWords) {
  edit_layer([&](auto& tensors) { tensors.at(norm_).bytes[11] ^= '\x80'; });
  Json report = Json::parse(to_json(*run_verify(artifact(), source()), 0));
  const std::string bytes = read_safetensors(layer()).at(norm_).bytes;
  const uint32_t word = static_cast<uint8_t>(bytes[10]) | static_cast<uint8_t>(bytes[11]) << 8;
  char in_artifact[8], in_source[8];
  std::snprintf(in_artifact, sizeof in_artifact, "0x%04x", word);
  std::snprintf(in_source, sizeof in_source, "0x%04x", word ^ 0x8000);
  const Json& first = report["first_difference"];
  EXPECT_EQ(first["tensor"], norm_);
  EXPECT_EQ(first["element"], 5);
  EXPECT_EQ(first["offset_bytes"], 10);
  EXPECT_EQ(first["artifact_word"], in_artifact);
  EXPECT_EQ(first["source_word"], in_source);
  // The manifest knows a hash, no words.
  report = Json::parse(to_json(*run_verify(artifact()), 0));
  EXPECT_EQ(report["first_difference"]["tensor"], norm_);
  EXPECT_FALSE(report["first_difference"].contains("element"));
}

// Words are as wide as the dtype, and the first byte that differs need not be the first of one.
TEST_F(ReportTest, FirstDifferenceOfOtherDtypes) {
  struct Case {
    Dtype dtype;
    uint64_t n, byte, element;
    const char *in_artifact, *in_source;
  };
  for (const Case& c : {Case{Dtype::kF32, 4, 6, 1, "0x00010000", "0x00000000"},
                        Case{Dtype::kI64, 2, 15, 1, "0x0100000000000000", "0x0000000000000000"},
                        Case{Dtype::kU8, 8, 3, 3, "0x01", "0x00"}}) {
    fs::remove_all(source());
    fs::remove_all(artifact());
    write_tiny_checkpoint(source(), {weights(weight_, {64, 96}), zeros("x", c.dtype, {c.n})});
    compress_or_throw(source(), artifact());
    edit_safetensors(artifact() / "model.safetensors",
                     [&](auto& tensors) { tensors.at("x").bytes[c.byte] = 1; });
    const Json first =
        Json::parse(to_json(*run_verify(artifact(), source()), 0))["first_difference"];
    EXPECT_EQ(first["element"], c.element);
    EXPECT_EQ(first["artifact_word"], c.in_artifact);
    EXPECT_EQ(first["source_word"], c.in_source);
  }
}

TEST_F(ReportTest, JunitHasEachFindingAndEachGoodShard) {
  edit_layer([&](auto& tensors) { tensors.at(norm_).bytes[0] ^= 1; });
  fs::remove(artifact() / "tokenizer.json");
  const std::string xml = to_junit(*run_verify(artifact(), {}, {"config.json"}), 1.5);
  EXPECT_NE(xml.find("tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\""), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("classname=\"df11-verify.shard\" name=\"model.safetensors\"/>"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("name=\"" + layer_name_ + " " + norm_ + "\"><failure type=\"tensor_differs\""),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<failure type=\"file_missing\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("name=\"config.json\"><skipped message=\"--ignore\"/>"), std::string::npos)
      << xml;
}

TEST(Junit, Escapes) {
  VerifyReport report;
  report.artifact = "a&b";
  report.findings = {
      {"kind", "<f>", "\"t\"", "nul \x01 \x7f caf\xc3\xa9 \xe9 \xed\xa0\x80 \xf0\x9f\x98\x80"}};
  const std::string xml = to_junit(report, 0);
  EXPECT_NE(xml.find("name=\"df11-verify a&amp;b\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("name=\"&lt;f&gt; &quot;t&quot;\""), std::string::npos) << xml;
  EXPECT_NE(
      xml.find("message=\"nul \\x01 \x7f caf\xc3\xa9 \\xe9 \\xed\\xa0\\x80 \xf0\x9f\x98\x80\""),
      std::string::npos)
      << xml;
}

TEST(Junit, IsBounded) {
  VerifyReport report;
  report.n_findings_dropped = 5;
  report.findings = {{"kind", "f", "", "m"}};
  EXPECT_NE(to_junit(report, 0).find("5 more findings"), std::string::npos);
}

}  // namespace
}  // namespace df11::test
