// What verify() says of files: config, index, manifest, and everything that is copied.
#include "format/df11_config.h"
#include "verify/fixture.h"
#include "verify/verify.h"

namespace df11::test {
namespace {

using VerifyFilesTest = VerifyFixture;

TEST_F(VerifyFilesTest, FileChanged) {
  write_file(artifact() / "tokenizer.json", "{\"version\": \"1.1\"}\n");  // of the same length
  EXPECT_EQ(against_manifest(), (Found{"file_differs tokenizer.json "}));
  // Both checks see it: manifest and source.
  EXPECT_EQ(against_source(),
            (Found{"file_differs tokenizer.json ", "file_differs tokenizer.json "}));
  write_file(artifact() / "tokenizer.json", "{}");
  EXPECT_EQ(against_manifest(), (Found{"file_differs tokenizer.json "}));
  drop_manifest();
  EXPECT_EQ(against_source(), (Found{"file_differs tokenizer.json "}));
}

TEST_F(VerifyFilesTest, FileMissing) {
  fs::remove(artifact() / "assets/logo.png");
  EXPECT_EQ(against_manifest(), (Found{"file_missing logo.png "}));
  drop_manifest();
  EXPECT_EQ(against_source(), (Found{"file_missing logo.png "}));
}

TEST_F(VerifyFilesTest, FileUnlistedOrExtra) {
  write_file(artifact() / "README.md", "# card");
  EXPECT_EQ(against_manifest(), (Found{"file_unlisted README.md "}));
  EXPECT_EQ(against_source(), (Found{"file_extra README.md ", "file_unlisted README.md "}));
  drop_manifest();
  EXPECT_EQ(against_source(), (Found{"file_extra README.md "}));
}

TEST_F(VerifyFilesTest, FileThatOnlyTheSourceHas) {
  write_file(source() / "new.txt", "added after compression");
  EXPECT_EQ(against_manifest(), Found{});
  EXPECT_EQ(without_manifest_findings(against_source()), (Found{"file_missing new.txt "}));
}

TEST_F(VerifyFilesTest, HousekeepingOfHubAndGitIsNoFinding) {
  write_file(artifact() / ".gitattributes", "x");
  write_file(artifact() / ".cache/huggingface/x.lock", "");
  EXPECT_EQ(against_manifest(), Found{});
  EXPECT_EQ(against_source(), Found{});
}

TEST_F(VerifyFilesTest, ConfigChanged) {
  drop_manifest();
  const std::string text = read_file(artifact() / "config.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    write_file(artifact() / "config.json", changed.replace(changed.find(from), from.size(), to));
    return against_source();
  };
  EXPECT_EQ(with("qwen3", "qwen2"), (Found{"file_differs config.json "}));
  EXPECT_EQ(with("true", "1"), (Found{"file_differs config.json "}));
  EXPECT_EQ(with("\"model_type\"", "\"added\": 0, \"model_type\""),
            (Found{"file_differs config.json "}));
  EXPECT_EQ(with("\"model_type\": \"qwen3\",", ""), (Found{"file_differs config.json "}));
  // The same values otherwise written: a remark, as re-serialising tools do this.
  EXPECT_EQ(with("\"model_type\": \"qwen3\",", "\"model_type\" :   \"qwen3\","), Found{});
  const Result<VerifyReport> report = run_verify(artifact(), source());
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("config.json"), std::string::npos);
}

TEST_F(VerifyFilesTest, ConfigWithAnotherNumberType) {
  write_file(source() / "config.json", "{\"rope_theta\": 10000, \"eps\": 1e-06}");
  fs::remove_all(artifact());
  compress_or_throw(source(), artifact(), without_card());
  drop_manifest();
  std::string text = read_file(artifact() / "config.json");
  write_file(artifact() / "config.json", text.replace(text.find("10000"), 5, "10000.0"));
  // Python reads an int from one and a float from the other.
  EXPECT_EQ(against_source(), (Found{"file_differs config.json "}));
}

TEST_F(VerifyFilesTest, ConfigChangedUnderAManifest) {
  const std::string text = read_file(artifact() / "config.json");
  write_file(artifact() / "config.json", text + "\n");
  EXPECT_EQ(against_manifest(), (Found{"file_differs config.json "}));
}

TEST_F(VerifyFilesTest, ConfigMissingOrDamaged) {
  const std::string text = read_file(artifact() / "config.json");
  for (const char* bad : {"{", "[]", "{\"dfloat11_config\": 1}"}) {
    write_file(artifact() / "config.json", bad);
    EXPECT_EQ(against_source(), (Found{"artifact_malformed config.json "})) << bad;
  }
  fs::remove(artifact() / "config.json");
  EXPECT_FALSE(run_verify(artifact(), source()).has_value() && against_source().empty());
}

TEST_F(VerifyFilesTest, SourceWithoutConfig) {
  fs::remove(source() / "config.json");
  fs::remove_all(artifact());
  compress_or_throw(source(), artifact());
  EXPECT_EQ(against_source(), Found{});
  EXPECT_EQ(against_manifest(), Found{});
  write_file(source() / "config.json", "{\"model_type\": \"qwen3\"}");
  EXPECT_EQ(without_manifest_findings(against_source()), (Found{"file_differs config.json "}));
}

TEST_F(VerifyFilesTest, IndexWrong) {
  const fs::path index = artifact() / "model.safetensors.index.json";
  const std::string text = read_file(index);
  for (const std::string& from :
       {std::string("model_layers_0.safetensors"), std::string("input_layernorm")}) {
    std::string changed = text;
    write_file(index, changed.replace(changed.find(from), from.size(), "other.safetensors"));
    rehash_manifest(artifact());
    EXPECT_EQ(against_manifest(), (Found{"index_differs model.safetensors.index.json "})) << from;
    EXPECT_EQ(against_source(), (Found{"index_differs model.safetensors.index.json "})) << from;
  }
  write_file(index, "not JSON");
  rehash_manifest(artifact());
  EXPECT_EQ(against_manifest(), (Found{"index_differs model.safetensors.index.json "}));
}

TEST_F(VerifyFilesTest, DamagedManifest) {
  std::string text = read_file(artifact() / kManifestName);
  text[text.size() / 2] ^= 1;
  write_file(artifact() / kManifestName, text);
  EXPECT_EQ(against_manifest(), (Found{"artifact_malformed df11_manifest.json "}));
  // A manifest that cannot be trusted is a finding even where the source could tell.
  EXPECT_EQ(against_source(), (Found{"artifact_malformed df11_manifest.json "}));
}

// A right seal over wrong content: with the source at hand, what the manifest says of it is
// checked.
TEST_F(VerifyFilesTest, ManifestThatContradictsTheSource) {
  const std::string intact = read_file(artifact() / kManifestName);
  const std::vector<std::pair<const char*, std::function<void(Manifest&)>>> edits = {
      {"tensor hash", [](Manifest& m) { m.tensors[0].xxh3_128.bytes[0] ^= 1; }},
      {"tensor shape", [](Manifest& m) { m.tensors[0].shape = {1}; }},
      {"tensor missing", [](Manifest& m) { m.tensors.pop_back(); }},
      {"source file hash", [](Manifest& m) { m.source_files[0].sha256.bytes[0] ^= 1; }},
      {"source file size", [](Manifest& m) { ++m.source_files[0].size_bytes; }},
      {"restore record", [](Manifest& m) { m.restore.begin()->second += " "; }},
      {"restore record missing", [](Manifest& m) { m.restore.clear(); }}};
  for (const auto& [name, edit] : edits) {
    edit_manifest(artifact(), edit);
    EXPECT_FALSE(against_source().empty()) << name;
    write_file(artifact() / kManifestName, intact);
  }
}

TEST_F(VerifyFilesTest, IgnoredFilesAreNamed) {
  write_file(artifact() / "README.md", "# card");
  write_file(artifact() / "tokenizer.json", "changed");
  fs::remove(artifact() / "assets/logo.png");
  const std::vector<std::string> ignore = {"README.md", "assets/*", "token*"};
  for (const fs::path& against : {source(), fs::path()}) {
    const Result<VerifyReport> report = run_verify(artifact(), against, ignore);
    EXPECT_EQ(findings_of(report), Found{});
    EXPECT_EQ(report->ignored_files,
              (std::vector<std::string>{"README.md", "assets/logo.png", "tokenizer.json"}));
  }
  // Without a manifest, too: a file that only the source has was skipped as well.
  drop_manifest();
  const Result<VerifyReport> report = run_verify(artifact(), source(), ignore);
  EXPECT_EQ(findings_of(report), Found{});
  EXPECT_EQ(report->ignored_files,
            (std::vector<std::string>{"README.md", "assets/logo.png", "tokenizer.json"}));
}

TEST_F(VerifyFilesTest, IgnoreDoesNotHideTheManifestOrWeights) {
  const std::vector<std::string> everything = {"*.json", "*.md"};
  std::string text = read_file(artifact() / kManifestName);
  text[100] ^= 1;
  write_file(artifact() / kManifestName, text);
  EXPECT_FALSE(findings_of(run_verify(artifact(), {}, everything)).empty());
}

TEST_F(VerifyFilesTest, OmittedFilesAreNamedInNotes) {
  write_file(source() / "onnx/model.onnx", "x");
  fs::remove_all(artifact());
  CompressOptions options;
  options.omit = {"onnx/*"};
  compress_or_throw(source(), artifact(), options);
  const Result<VerifyReport> report = run_verify(artifact(), source());
  EXPECT_EQ(findings_of(report), Found{});
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("onnx/model.onnx"), std::string::npos);
}

// Globs in a manifest's omitted_files are names, not patterns: '*' must not hide everything.
TEST_F(VerifyFilesTest, OmittedFilesOfTheManifestAreNoGlobs) {
  edit_manifest(artifact(), [](Manifest& manifest) {
    manifest.omitted_files = {"assets/*", "tokenizer.jso?"};
  });
  fs::remove(artifact() / "assets/logo.png");
  edit_manifest(artifact(), [](Manifest& manifest) {
    std::erase_if(manifest.files,
                  [](const ManifestFile& file) { return file.path == "assets/logo.png"; });
  });
  EXPECT_EQ(against_source(), (Found{"file_missing logo.png "}));
}

TEST_F(VerifyFilesTest, StraySafetensorsCounts) {
  write_safetensors(artifact() / "adapter.safetensors", {zeros("x", Dtype::kU8, {1})});
  const Found found = against_manifest();
  for (const char* expected :
       {"file_unlisted adapter.safetensors ", "tensor_extra adapter.safetensors x",
        "index_differs model.safetensors.index.json "}) {
    EXPECT_NE(std::find(found.begin(), found.end(), expected), found.end()) << expected;
  }
}

TEST_F(VerifyFilesTest, ReportAsJson) {
  const Result<VerifyReport> report = run_verify(artifact(), source());
  ASSERT_TRUE(succeeded(report));
  const Result<Json> json = parse_json(to_json(*report, 1.5));
  ASSERT_TRUE(succeeded(json));
  EXPECT_EQ((*json)["verdict"], "equal");
  EXPECT_EQ((*json)["method"], "decoded_and_compared");
  EXPECT_EQ((*json)["seconds"], 1.5);
  VerifyReport odd = *report;
  odd.findings.push_back({"file_extra", "caf\xe9", "\n\"", "\x01"});
  const Result<Json> escaped = parse_json(to_json(odd, 0));
  ASSERT_TRUE(succeeded(escaped));
  EXPECT_EQ((*escaped)["verdict"], "not_equal");
}

}  // namespace
}  // namespace df11::test
