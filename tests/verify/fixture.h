// A source and its artifact, fresh for each test, and what verify() finds in them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {

class VerifyFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    write_sharded_checkpoint(source());
    write_file(source() / "assets/logo.png", "png");
    compress_or_throw(source(), artifact(), without_card());
  }

  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }
  // The shard with group and layernorm of layer 0.
  fs::path layer() const { return artifact() / "model_layers_0.safetensors"; }
  void drop_manifest() const { fs::remove(artifact() / kManifestName); }

  // "kind file tensor" of each finding, in order. Fails the test when verify() fails.
  static std::vector<std::string> findings_of(const Result<VerifyReport>& report) {
    EXPECT_TRUE(succeeded(report));
    std::vector<std::string> list;
    if (!report) return list;
    EXPECT_EQ(report->equal(), report->findings.empty());
    for (const Finding& finding : report->findings) {
      EXPECT_NE(finding.message, "");
      list.push_back(finding.kind + " " + fs::path(finding.file).filename().string() + " " +
                     finding.tensor);
    }
    return list;
  }
  std::vector<std::string> against_source() const {
    return findings_of(run_verify(artifact(), source()));
  }
  // For tests that change the source after compression: the manifest then differs from it, too.
  static std::vector<std::string> without_manifest_findings(std::vector<std::string> found) {
    EXPECT_NE(
        std::erase_if(found, [](const auto& f) { return f.starts_with("manifest_differs "); }), 0u);
    return found;
  }
  std::vector<std::string> against_manifest() const { return findings_of(run_verify(artifact())); }

  // Edits the layer's shard so that the manifest's file hashes do not tell: what remains is found
  // by looking at tensors.
  void edit_layer(const std::function<void(std::map<std::string, Tensor>&)>& edit) const {
    edit_safetensors(layer(), edit);
    if (fs::exists(artifact() / kManifestName)) rehash_manifest(artifact());
  }

  const std::string norm_ = "model.layers.0.input_layernorm.weight";
  const std::string weight_ = "model.layers.0.mlp.up_proj.weight";
  const std::string module_ = "model.layers.0.mlp.up_proj";
  const std::string layer_name_ = "model_layers_0.safetensors";
  TemporaryDirectory directory_;
};

using Found = std::vector<std::string>;

}  // namespace df11::test
