// What verify() says of tensors: equality down to the bit, and each way to miss it.
#include "verify/verify.h"

#include "format/bf16.h"
#include "verify/fixture.h"

namespace df11::test {
namespace {

using VerifyTest = VerifyFixture;

TEST_F(VerifyTest, EqualToSourceAndToManifest) {
  const Result<VerifyReport> with_source = run_verify(artifact(), source());
  ASSERT_TRUE(succeeded(with_source));
  EXPECT_TRUE(with_source->equal()) << to_json(*with_source, 0);
  EXPECT_EQ(with_source->n_groups, 1u);
  EXPECT_EQ(with_source->n_tensors, 4u);
  EXPECT_EQ(with_source->weight_bytes, 2u * (32 * 64 + 64 * 96 + 64 + 64));
  EXPECT_TRUE(with_source->has_manifest);
  EXPECT_EQ(with_source->notes, std::vector<std::string>{});

  const Result<VerifyReport> alone = run_verify(artifact());
  ASSERT_TRUE(succeeded(alone));
  EXPECT_TRUE(alone->equal()) << to_json(*alone, 0);
  EXPECT_EQ(alone->n_tensors, 4u);
  EXPECT_EQ(alone->source, "");

  drop_manifest();
  const Result<VerifyReport> without_manifest = run_verify(artifact(), source());
  ASSERT_TRUE(succeeded(without_manifest));
  EXPECT_TRUE(without_manifest->equal()) << to_json(*without_manifest, 0);
  EXPECT_FALSE(without_manifest->has_manifest);
}

TEST_F(VerifyTest, NothingToCompareWith) {
  drop_manifest();
  EXPECT_TRUE(failed_with(run_verify(artifact()), ErrorCode::invalid_argument, "--source"));
}

TEST_F(VerifyTest, DirectoriesThatAreNotThere) {
  EXPECT_TRUE(failed_with(run_verify(directory_ / "absent"), ErrorCode::not_found));
  EXPECT_TRUE(failed_with(run_verify(artifact(), directory_ / "absent"), ErrorCode::not_found));
  EXPECT_TRUE(failed_with(run_verify(artifact(), artifact()), ErrorCode::unsupported));
}

// One changed word in a group: the source has another value, bit for bit, even where == says equal.
TEST_F(VerifyTest, ChangedWordInAGroup) {
  struct Case {
    const char* name;
    uint16_t in_artifact, in_source;
  };
  // Words of a group have exponents below 240, so +0 and -0 are the pair that == cannot tell apart.
  for (const Case& c : {Case{"minus zero", 0x0000, 0x8000}, Case{"plus zero", 0x8000, 0x0000},
                        Case{"last mantissa bit", 0x3c00, 0x3c01}, Case{"exponent", 0x3c00, 0x3c80},
                        Case{"subnormal flushed", 0x0000, 0x0001}}) {
    for (const size_t element : {size_t{0}, size_t{3000}, size_t{64 * 96 - 1}}) {
      const auto set = [&](uint16_t word) {
        edit_safetensors(source() / "model-00001-of-00002.safetensors", [&](auto& tensors) {
          std::memcpy(tensors.at(weight_).bytes.data() + 2 * element, &word, 2);
        });
      };
      set(c.in_artifact);
      fs::remove_all(artifact());
      compress_or_throw(source(), artifact());
      ASSERT_EQ(against_source(), Found{}) << c.name;
      set(c.in_source);
      const Result<VerifyReport> report = run_verify(artifact(), source());
      ASSERT_EQ(without_manifest_findings(findings_of(report)),
                (Found{"tensor_differs " + layer_name_ + " " + weight_}))
          << c.name;
      EXPECT_NE(report->findings.back().message.find("element " + std::to_string(element) + ":"),
                std::string::npos)
          << report->findings.back().message;
    }
  }
}

TEST_F(VerifyTest, ChangedWordInAVerbatimTensor) {
  struct Case {
    uint16_t in_source, in_artifact;
  };
  for (const Case& c : {Case{0x0000, 0x8000}, Case{0x7fc0, 0x7fc1}, Case{0x7fc0, 0xffc0},
                        Case{0x7f80, 0x7f81}, Case{0x7fc0, 0x7fc0}}) {
    const auto put = [&](std::map<std::string, Tensor>& tensors, uint16_t word) {
      std::memcpy(tensors.at(norm_).bytes.data() + 10, &word, 2);
    };
    edit_safetensors(source() / "model-00002-of-00002.safetensors",
                     [&](auto& tensors) { put(tensors, c.in_source); });
    fs::remove_all(artifact());
    compress_or_throw(source(), artifact());
    edit_layer([&](auto& tensors) { put(tensors, c.in_artifact); });
    const Found expected = c.in_source == c.in_artifact
                               ? Found{}
                               : Found{"tensor_differs " + layer_name_ + " " + norm_};
    EXPECT_EQ(against_source(), expected) << c.in_artifact;  // NaN equals itself
    EXPECT_EQ(against_manifest(), expected) << c.in_artifact;
  }
}

// sign_mantissa is stored as it is: any change of it decodes without an error.
TEST_F(VerifyTest, ChangedSignOfOneWeight) {
  edit_layer([&](auto& tensors) { tensors.at(module_ + ".sign_mantissa").bytes[77] ^= '\x80'; });
  const Found expected = {"tensor_differs " + layer_name_ + " " + weight_};
  EXPECT_EQ(against_source(), expected);
  EXPECT_EQ(against_manifest(), expected);
}

TEST_F(VerifyTest, CorruptGroup) {
  edit_layer([&](auto& tensors) { tensors.at(module_ + ".gaps").bytes[3] ^= 1; });
  const Found expected = {"group_corrupt " + layer_name_ + " " + module_};
  EXPECT_EQ(against_source(), expected);
  EXPECT_EQ(against_manifest(), expected);
}

TEST_F(VerifyTest, GroupWhoseHeadersContradict) {
  edit_layer([&](auto& tensors) {
    Tensor& gaps = tensors.at(module_ + ".gaps");
    gaps.bytes.pop_back();
    gaps.shape = {gaps.bytes.size()};
  });
  EXPECT_EQ(against_source(), (Found{"artifact_malformed artifact " + module_}));
  EXPECT_EQ(against_manifest(), (Found{"artifact_malformed artifact " + module_}));
}

TEST_F(VerifyTest, OtherDtypeOrShapeOfTheSameBytes) {
  edit_layer([&](auto& tensors) { tensors.at(norm_).dtype = Dtype::kF16; });
  EXPECT_EQ(against_source(), (Found{"tensor_differs " + layer_name_ + " " + norm_}));
  EXPECT_EQ(against_manifest(), (Found{"tensor_differs " + layer_name_ + " " + norm_}));
  edit_layer([&](auto& tensors) {
    tensors.at(norm_).dtype = Dtype::kBF16;
    tensors.at(norm_).shape = {8, 8};
  });
  EXPECT_EQ(against_source(), (Found{"tensor_differs " + layer_name_ + " " + norm_}));
  EXPECT_EQ(against_manifest(), (Found{"tensor_differs " + layer_name_ + " " + norm_}));
  edit_layer([&](auto& tensors) { tensors.at(norm_) = weights(norm_, {65}); });
  EXPECT_EQ(against_source(), (Found{"tensor_differs " + layer_name_ + " " + norm_}));
}

TEST_F(VerifyTest, CodedTensorThatIsOtherwiseInTheSource) {
  const fs::path shard = source() / "model-00001-of-00002.safetensors";
  edit_safetensors(shard, [&](auto& tensors) { tensors.at(weight_).dtype = Dtype::kF16; });
  const Found f16 = without_manifest_findings(against_source());
  EXPECT_FALSE(f16.empty());
  for (const std::string& found : f16)
    EXPECT_EQ(found, "tensor_differs " + layer_name_ + " " + weight_);
  edit_safetensors(shard, [&](auto& tensors) { tensors.at(weight_) = weights(weight_, {64, 97}); });
  EXPECT_EQ(without_manifest_findings(against_source()),
            (Found{"tensor_differs " + layer_name_ + " " + weight_}));
}

TEST_F(VerifyTest, TensorMissing) {
  edit_layer([&](auto& tensors) { tensors.erase(norm_); });
  drop_manifest();
  const Found found = against_source();
  EXPECT_NE(std::find(found.begin(), found.end(), "tensor_missing  " + norm_), found.end());
  // The index still has it.
  EXPECT_NE(std::find(found.begin(), found.end(), "index_differs model.safetensors.index.json "),
            found.end());
}

TEST_F(VerifyTest, TensorExtra) {
  edit_layer(
      [&](auto& tensors) { tensors["model.extra"] = zeros("model.extra", Dtype::kF32, {2}); });
  for (const Found& found : {against_source(), against_manifest()}) {
    EXPECT_NE(std::find(found.begin(), found.end(), "tensor_extra " + layer_name_ + " model.extra"),
              found.end());
  }
}

TEST_F(VerifyTest, TensorBothInAGroupAndVerbatim) {
  edit_layer([&](auto& tensors) { tensors[weight_] = weights(weight_, {64, 96}, 2); });
  for (const Found& found : {against_source(), against_manifest()}) {
    EXPECT_NE(
        std::find(found.begin(), found.end(), "tensor_duplicate " + layer_name_ + " " + weight_),
        found.end());
  }
}

TEST_F(VerifyTest, TensorInTwoShards) {
  write_safetensors(artifact() / "second.safetensors", {weights(norm_, {64}, 3)});
  drop_manifest();
  const Result<VerifyReport> report = run_verify(artifact(), source());
  ASSERT_EQ(findings_of(report).size(), 1u);
  EXPECT_EQ(report->findings[0].kind, "artifact_malformed");
  EXPECT_EQ(report->findings[0].tensor, norm_);
}

TEST_F(VerifyTest, TruncatedShard) {
  const std::string bytes = read_file(layer());
  for (const size_t n : {bytes.size() - 1, bytes.size() / 2, size_t{100}, size_t{8}, size_t{0}}) {
    write_file(layer(), bytes.substr(0, n));
    EXPECT_EQ(against_source(), (Found{"artifact_malformed " + layer_name_ + " "})) << n;
    EXPECT_EQ(against_manifest(), (Found{"artifact_malformed " + layer_name_ + " "})) << n;
  }
  write_file(layer(), bytes);
  // A damaged source is not a finding about the artifact: the check cannot be done.
  const fs::path shard = source() / "model-00002-of-00002.safetensors";
  write_file(shard, read_file(shard).substr(0, 100));
  EXPECT_TRUE(failed_with(run_verify(artifact(), source()), ErrorCode::malformed_safetensors,
                          "model-00002"));
}

TEST_F(VerifyTest, ReportIsSortedAndTheSameForAnyNumberOfThreads) {
  edit_safetensors(layer(), [&](auto& tensors) {
    tensors.at(norm_).bytes[0] ^= 1;
    tensors["z.extra"] = zeros("z.extra", Dtype::kU8, {1});
    tensors["a.extra"] = zeros("a.extra", Dtype::kU8, {1});
  });
  write_file(artifact() / "zz.txt", "x");
  write_file(artifact() / "aa.txt", "x");
  std::string first;
  for (const int n_threads : {1, 2, 4, 1}) {
    Result<VerifyReport> report = run_verify(artifact(), source(), {}, n_threads);
    ASSERT_TRUE(succeeded(report));
    report->phases.clear();  // the times of which differ
    EXPECT_TRUE(std::is_sorted(
        report->findings.begin(), report->findings.end(), [](const auto& a, const auto& b) {
          return std::tie(a.file, a.tensor, a.kind) < std::tie(b.file, b.tensor, b.kind);
        }));
    EXPECT_GE(report->findings.size(), 6u);
    const std::string json = to_json(*report, 0);
    if (first.empty()) first = json;
    EXPECT_EQ(json, first);
  }
}

TEST_F(VerifyTest, ReportIsBoundedAndSaysSo) {
  drop_manifest();
  edit_safetensors(layer(), [&](auto& tensors) {
    for (int i = 0; i < 1500; ++i) {
      const std::string name = "extra." + std::to_string(i);
      tensors[name] = zeros(name, Dtype::kU8, {1});
    }
  });
  const Result<VerifyReport> report = run_verify(artifact(), source());
  ASSERT_TRUE(succeeded(report));
  EXPECT_EQ(report->findings.size(), Findings::kMaxKept);
  EXPECT_EQ(report->n_findings_dropped, 1500 + 1 - Findings::kMaxKept);  // and index_differs
}

TEST_F(VerifyTest, CancelledIsAnError) {
  CancelToken token;
  token.cancel();
  const Executor executor(1, &token);
  Progress progress;
  EXPECT_TRUE(failed_with(verify(artifact(), {}, *make_cpu_decoder(), executor, progress),
                          ErrorCode::cancelled));
}

}  // namespace
}  // namespace df11::test
