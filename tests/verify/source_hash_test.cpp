// Hashes of the source that were published elsewhere, recomputed from the artifact alone.
#include "format/df11_layout.h"
#include "verify/fixture.h"

namespace df11::test {
namespace {

class SourceHashTest : public VerifyFixture {
 protected:
  // What sha256sum would print of the source.
  Sha256List published() const {
    Sha256List list;
    for (const auto& [path, bytes] : tree_of(source())) {
      if (!path.ends_with('/')) list[path] = sha256(as_bytes(bytes));
    }
    return list;
  }
  Result<VerifyReport> verify_hashes(const Sha256List& list,
                                     const std::vector<std::string>& ignore = {}) const {
    const Executor executor(2);
    Progress progress;
    VerifyOptions options;
    options.expected_source_sha256 = list;
    options.ignore = ignore;
    return verify(artifact(), options, *make_cpu_decoder(), executor, progress);
  }
  // Every file of the source has the published hash.
  void expect_all_equal() const {
    const Sha256List list = published();
    const Result<VerifyReport> report = verify_hashes(list);
    ASSERT_TRUE(succeeded(report));
    EXPECT_TRUE(report->proven_equal()) << to_json(*report, 0);
    EXPECT_EQ(report->source_hashes->n_listed, list.size());
    EXPECT_EQ(report->source_hashes->n_equal, list.size());
  }

  const std::string first_ = "model-00001-of-00002.safetensors";
  const std::string second_ = "model-00002-of-00002.safetensors";
};

TEST_F(SourceHashTest, EveryFileOfTheSource) {
  expect_all_equal();
}

// Layouts that are legal, but not what a writer of ours would make.
TEST_F(SourceHashTest, OddButLegalShards) {
  const auto shard = [&](const std::string& json, const std::string& data) {
    fs::remove_all(source());
    fs::remove_all(artifact());
    uint64_t n = json.size();
    write_file(source() / "model.safetensors",
               std::string(reinterpret_cast<const char*>(&n), 8) + json + data);
    compress_or_throw(source(), artifact());
    expect_all_equal();
  };
  const std::string coded = weights("", {64, 96}).bytes;
  shard(R"({"z.0.w.weight":{"data_offsets":[4,12292],"shape":[64,96],"dtype":"BF16"},)"
        R"("__metadata__":{"b":"1","a":"2"},)"
        R"("e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},)"
        R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
        "abcd" + coded);
  shard("{}", "");
}

// A group of two members, in the order of the pattern, from two shards; several runs of blocks.
TEST_F(SourceHashTest, MembersOfOneGroupInTwoShards) {
  const Shape shape = {1200, 1000};
  const Tensor q = weights("l.0.q.weight", shape, 1), k = weights("l.0.k.weight", shape, 2);
  const auto renew = [&](const std::function<void()>& write_shards) {
    fs::remove_all(source());
    fs::remove_all(artifact());
    write_shards();
    compress_or_throw(source(), artifact());
  };
  renew([&] {  // both tensors as one: its group is the group of the two
    Tensor both = weights("l.0.q.weight", {2400, 1000});
    both.bytes = q.bytes + k.bytes;
    write_safetensors(source() / "model.safetensors", {both});
  });
  std::map<std::string, Tensor> group;
  for (auto& [name, tensor] : read_safetensors(artifact() / "l_0.safetensors")) {
    tensor.name = "l.0." + name.substr(name.rfind('.') + 1);
    group[tensor.name] = tensor;
  }
  Tensor& splits = group.at("l.0.split_positions");
  const uint64_t split = 1200 * 1000;
  splits.shape = {1};
  splits.bytes.assign(reinterpret_cast<const char*>(&split), 8);

  renew([&] {
    write_safetensors(source() / first_, {k});
    write_safetensors(source() / second_, {q});
    write_index(source() / "model.safetensors.index.json", {{k.name, first_}, {q.name, second_}});
  });
  edit_safetensors(artifact() / "l_0.safetensors", [&](auto& tensors) { tensors = group; });
  std::map<std::string, std::string> index;
  for (const auto& [name, tensor] : group) index[name] = "l_0.safetensors";
  write_index(artifact() / "model.safetensors.index.json", index);
  Json config = Json::parse(read_file(artifact() / "config.json"));
  config["dfloat11_config"]["pattern_dict"] = {{"l\\.\\d+", {"q", "k"}}};
  write_file(artifact() / "config.json", config.dump());
  rehash_manifest(artifact());
  edit_manifest(artifact(), [](Manifest& manifest) {
    for (ManifestTensor& tensor : manifest.tensors) tensor.group = "l.0";
  });
  expect_all_equal();

  // Swapped members: each shard gets the other's words.
  config["dfloat11_config"]["pattern_dict"] = {{"l\\.\\d+", {"k", "q"}}};
  write_file(artifact() / "config.json", config.dump());
  rehash_manifest(artifact());
  EXPECT_EQ(
      findings_of(verify_hashes(published())),
      (Found{"tensor_differs l_0.safetensors l.0.k.weight",
             "tensor_differs l_0.safetensors l.0.q.weight", "source_sha256_differs " + first_ + " ",
             "source_sha256_differs " + second_ + " "}));
}

TEST_F(SourceHashTest, AnotherModelThanThePublishedOne) {
  Sha256List list = published();
  list[first_].bytes[0] ^= 1;
  EXPECT_EQ(findings_of(verify_hashes(list)), (Found{"source_sha256_differs " + first_ + " "}));
  list = published();
  list["absent.bin"] = list[first_];
  EXPECT_EQ(findings_of(verify_hashes(list)), (Found{"source_sha256_differs absent.bin "}));
}

// A manifest that claims the published hashes, over other weights: only recomputing tells.
TEST_F(SourceHashTest, ManifestThatOnlyClaims) {
  const Sha256List list = published();
  for (const bool coded : {true, false}) {
    fs::remove_all(artifact());
    const std::string name = coded ? weight_ : norm_;
    edit_safetensors(source() / (coded ? first_ : second_),
                     [&](auto& tensors) { tensors.at(name).bytes[100] ^= 1; });
    compress_or_throw(source(), artifact());
    edit_manifest(artifact(), [&](Manifest& manifest) {
      for (ManifestFile& file : manifest.source_files) file.sha256 = list.at(file.path);
    });
    EXPECT_EQ(against_manifest(), Found{});
    Found expected = {"source_sha256_differs " + first_ + " "};
    if (!coded) expected.push_back("source_sha256_differs " + second_ + " ");
    EXPECT_EQ(findings_of(verify_hashes(list)), expected);
  }
}

TEST_F(SourceHashTest, CopiedFilesAreThoseOfTheArtifact) {
  edit_manifest(artifact(), [](Manifest& manifest) {
    std::erase_if(manifest.files, [](const auto& file) { return file.path == "tokenizer.json"; });
  });
  EXPECT_EQ(findings_of(verify_hashes(published())),
            (Found{"file_unlisted tokenizer.json ", "source_sha256_differs tokenizer.json "}));
}

TEST_F(SourceHashTest, EveryShardMustBeListed) {
  Sha256List list = published();
  list.erase(second_);
  EXPECT_EQ(findings_of(verify_hashes(list)), (Found{"source_sha256_differs " + second_ + " "}));
  list = {{first_, published()[first_]}, {second_, published()[second_]}};
  const Result<VerifyReport> report = verify_hashes(list);
  EXPECT_EQ(findings_of(report), Found{});
  ASSERT_EQ(report->notes.size(), 1u);  // index, config.json, tokenizer.json, logo.png
  EXPECT_EQ(report->notes[0].substr(0, 2), "4 ");
}

TEST_F(SourceHashTest, IgnoredFilesAreNamed) {
  Sha256List list = published();
  list["README.md"] = Sha256{};
  const Result<VerifyReport> report = verify_hashes(list, {"README.md"});
  EXPECT_EQ(findings_of(report), Found{});
  EXPECT_EQ(report->ignored_files, (Found{"README.md"}));
  EXPECT_FALSE(report->proven_equal());
}

TEST_F(SourceHashTest, RecordsThatDoNotFitAreFindings) {
  const auto first_differs = [&](const std::function<void(Manifest&)>& edit) {
    fs::remove_all(artifact());
    compress_or_throw(source(), artifact());
    const Sha256List list = published();
    edit_manifest(artifact(), edit);
    const Found found = findings_of(verify_hashes(list));
    EXPECT_NE(std::find(found.begin(), found.end(), "source_sha256_differs " + first_ + " "),
              found.end());
  };
  first_differs([&](Manifest& manifest) { manifest.restore[first_] = "short"; });
  first_differs([&](Manifest& manifest) { manifest.restore[first_] += "x"; });
  first_differs([&](Manifest& manifest) { manifest.restore.erase(first_); });
  first_differs([&](Manifest& manifest) { manifest.restore[first_] = manifest.restore[second_]; });
  first_differs([&](Manifest& manifest) {
    std::erase_if(manifest.tensors, [&](const auto& tensor) { return tensor.name == weight_; });
  });
  first_differs([&](Manifest& manifest) {
    for (ManifestTensor& tensor : manifest.tensors) tensor.source_file = first_;
  });
  first_differs([&](Manifest& manifest) {
    for (ManifestFile& file : manifest.source_files) file.size_bytes = 3;
  });
}

TEST_F(SourceHashTest, CorruptGroup) {
  edit_layer([&](auto& tensors) { tensors.at(module_ + ".gaps").bytes[3] ^= 1; });
  EXPECT_EQ(findings_of(verify_hashes(published())),
            (Found{"group_corrupt " + layer_name_ + " " + module_,
                   "source_sha256_differs " + first_ + " "}));
}

TEST_F(SourceHashTest, NeedsManifestAndFullLevel) {
  const Executor executor(1);
  Progress progress;
  VerifyOptions options;
  options.expected_source_sha256 = published();
  options.level = VerifyLevel::kStructure;
  EXPECT_TRUE(failed_with(verify(artifact(), options, *make_cpu_decoder(), executor, progress),
                          ErrorCode::invalid_argument, "level full"));
  drop_manifest();
  EXPECT_TRUE(failed_with(verify_hashes(published()), ErrorCode::invalid_argument));
}

}  // namespace
}  // namespace df11::test
