// Artifacts made to lead out of their directory, to hang, or to take memory: each is refused or a
// finding, and what it declares is checked before anything of that size is read or allocated.
#include <sys/resource.h>
#include <sys/stat.h>

#include "fixture.h"
#include "format/df11_layout.h"

namespace df11::test {
namespace {

class HostileArtifactTest : public VerifyFixture {
 protected:
  // Of all tests together, and far less than what is declared.
  void TearDown() override {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss, 700'000) << "KiB";
#endif
  }

  // "equal", "finding", or the name of an error's code.
  static std::string outcome(const Result<VerifyReport>& report) {
    if (!report) return std::string(error_code_name(report.error().code));
    return report->equal() ? "equal" : report->findings[0].kind;
  }
  static bool has_finding(const Result<VerifyReport>& report, std::string_view kind) {
    return report && std::any_of(report->findings.begin(), report->findings.end(),
                                 [&](const Finding& finding) { return finding.kind == kind; });
  }
  std::string by_manifest() const {
    return outcome(run_verify(artifact()));
  }
  std::string by_source() const {
    return outcome(run_verify(artifact(), source()));
  }

  // A header that fits its sparse file; data are zeros that take no space.
  static void write_sparse(const fs::path& path, std::vector<TensorInfo> tensors) {
    const SafetensorsHeader header = SafetensorsHeader::lay_out(std::move(tensors), {});
    write_file(path, header.serialize());
    fs::resize_file(path, header.file_bytes());
  }
  static std::vector<TensorInfo> group_of(const std::string& module, uint64_t n_elements,
                                          uint64_t n_code_bytes, uint64_t n_rows,
                                          uint64_t n_splits) {
    return {{module + ".luts", Dtype::kU8, {n_rows, 256}},
            {module + ".encoded_exponent", Dtype::kU8, {n_code_bytes}},
            {module + ".sign_mantissa", Dtype::kU8, {n_elements}},
            {module + ".output_positions", Dtype::kU8, {4 * n_output_positions(n_code_bytes)}},
            {module + ".gaps", Dtype::kU8, {gaps_bytes(n_code_bytes)}},
            {module + ".split_positions", Dtype::kI64, {n_splits}}};
  }
};

TEST_F(HostileArtifactTest, LinksToFilesAreReadAndTheRestRefused) {
  const fs::path moved = directory_ / "moved", tokenizer = artifact() / "tokenizer.json";
  fs::rename(layer(), moved);  // as in the hub's cache
  fs::create_symlink(moved, layer());
  EXPECT_EQ(by_manifest(), "equal");
  EXPECT_EQ(by_source(), "equal");

  fs::remove(tokenizer);
  for (const char* target : {"/etc/passwd", "/proc/self/environ", "/proc/self/exe"}) {
    fs::create_symlink(target, tokenizer);  // files, but not those of the manifest
    EXPECT_EQ(by_manifest(), "file_differs") << target;
    fs::remove(tokenizer);
  }
  for (const char* target : {"/dev/zero", "/dev/stdin", "/proc/self", "/", "."}) {
    fs::create_symlink(target, tokenizer);
    EXPECT_EQ(by_manifest(), "unsupported") << target;
    fs::remove(tokenizer);
  }
  fs::create_symlink("nowhere", tokenizer);
  EXPECT_EQ(by_manifest(), "not_found");
  fs::remove(tokenizer);
  fs::create_symlink(tokenizer, tokenizer);
  EXPECT_EQ(by_manifest(), "io_error");
  fs::remove(tokenizer);
  ASSERT_EQ(::mkfifo(tokenizer.c_str(), 0600), 0);
  EXPECT_EQ(by_manifest(), "unsupported");
}

TEST_F(HostileArtifactTest, LinkedDirectoriesAreRefusedWhereverTheyLead) {
  fs::create_directory_symlink(source(), artifact() / "inner");
  EXPECT_EQ(by_manifest(), "unsupported");
  fs::remove(artifact() / "inner");
  fs::create_directory_symlink(artifact(), artifact() / "inner");  // for ever
  EXPECT_EQ(by_manifest(), "unsupported");
}

TEST_F(HostileArtifactTest, NamesThatLeaveTheDirectory) {
  const std::string text = read_file(artifact() / kManifestName);
  for (const char* path : {"../source/config.json", "/etc/passwd", "assets/../../x"}) {
    Json root = *parse_json(text);
    root["files"][0]["path"] = path;
    root.erase("manifest_sha256");
    write_file(artifact() / kManifestName, sealed(root));
    EXPECT_EQ(by_manifest(), "artifact_malformed") << path;
  }
  fs::remove(artifact() / kManifestName);
  const fs::path index = artifact() / "model.safetensors.index.json";
  for (const char* name : {"../model.safetensors", "/etc/model.safetensors", "a\\b.safetensors"}) {
    write_index(index, {{weight_, name}});
    EXPECT_EQ(by_source(), "index_differs") << name;
  }
}

TEST_F(HostileArtifactTest, HeadersThatDeclareTheWorld) {
  const std::string bytes = read_file(layer());
  for (const uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::string damaged = bytes;
    store_le64(reinterpret_cast<uint8_t*>(damaged.data()), length);
    write_file(layer(), damaged);
    EXPECT_EQ(by_source(), "artifact_malformed") << length;
  }
  write_sparse(layer(), {{"a", Dtype::kU8, {uint64_t{1} << 40}}});  // a terabyte that is not there
  EXPECT_TRUE(has_finding(run_verify(artifact()), "file_differs"));
  drop_manifest();
  EXPECT_TRUE(has_finding(run_verify(artifact(), source()), "tensor_extra"));
}

TEST_F(HostileArtifactTest, GroupsThatDeclareTheWorld) {
  drop_manifest();
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const auto found = [&](std::vector<TensorInfo> group, const char* kind) {
    write_sparse(layer(), std::move(group));
    return has_finding(run_verify(artifact(), source()), kind);
  };
  EXPECT_TRUE(found(group_of(module_, 2 * kGiB, 4096, 2, 0), "artifact_malformed"));
  EXPECT_TRUE(found(group_of(module_, 4096, 2 * kGiB, 2, 0), "artifact_malformed"));
  EXPECT_TRUE(found(group_of(module_, 4096, 4096, kGiB, 0), "group_corrupt"));
  EXPECT_TRUE(found(group_of(module_, 4096, 4096, 2, kGiB), "group_corrupt"));
  // Within limits, and its tables are zeros.
  EXPECT_TRUE(found(group_of(module_, kGiB, kGiB, 2, 0), "group_corrupt"));
}

// A member's name is its group's name and its own: a short text that stands for a lot of memory.
TEST_F(HostileArtifactTest, MemberNamesThatTakeMoreMemoryThanTheirText) {
  drop_manifest();
  const std::string module(1'000'000, 'm');
  write_sparse(layer(), group_of(module, 4096, 4096, 2, 0));
  Df11Config config{"0.5.0", {{".*", std::vector<std::string>(100'000, "a")}}};
  fs::remove(artifact() / "config.json");
  write_file(artifact() / "config.json", *splice_df11_config("{}", config.to_json_text()));
  const Result<VerifyReport> report = run_verify(artifact(), source());
  ASSERT_TRUE(succeeded(report));
  ASSERT_EQ(outcome(report), "artifact_malformed");
  EXPECT_NE(report->findings[0].message.find("names"), std::string::npos);
}

TEST_F(HostileArtifactTest, TextsThatAreTooLong) {
  for (const char* name : {"config.json", "df11_manifest.json", "model.safetensors.index.json"}) {
    const std::string bytes = read_file(artifact() / name);
    fs::resize_file(artifact() / name, uint64_t{1} << 40);
    EXPECT_NE(by_source(), "equal") << name;
    write_file(artifact() / name, bytes);
  }
  EXPECT_EQ(by_source(), "equal");
}

TEST_F(HostileArtifactTest, NestedAndHostileConfigs) {
  drop_manifest();
  const std::string config = read_file(artifact() / "config.json");
  const auto outcome_of = [&](const std::string& text) {
    write_file(artifact() / "config.json", text);
    return by_source();
  };
  EXPECT_EQ(outcome_of(std::string(1'000'000, '[')), "artifact_malformed");
  EXPECT_EQ(outcome_of("{\"a\":" + std::string(1'000'000, '[')), "artifact_malformed");
  for (const char* pattern : {"(([mlpdo_.]+)+)+!", "(?R)", "((?:(?:a{999}){999}){999}){999}",
                              "(((((((.*)*)*)*)*)*)*)*!"}) {
    const Df11Config hostile{"0.5.0", {{pattern, {}}}};
    EXPECT_EQ(outcome_of(*splice_df11_config("{}", hostile.to_json_text())), "artifact_malformed")
        << pattern;
  }
  EXPECT_EQ(outcome_of(config), "equal");
}

}  // namespace
}  // namespace df11::test
