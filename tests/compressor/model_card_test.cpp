// README.md and what becomes of the source's; published hashes; the index's metadata.
#include "compressor/model_card.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "directories/verifies.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

const std::string kSourceCard =
    "---\nlicense: other\nlicense_name: some-licence\nlicense_link: LICENSE\nlanguage: [en, no]\n"
    "pipeline_tag: text-generation\nbase_model: Org/Parent\nlibrary_name: transformers\n"
    "tags: [chat]\n---\n# The source\n";

class ModelCardTest : public ::testing::Test {
 protected:
  void SetUp() override { write_tiny_checkpoint(source_); }

  fs::path output() const { return directory_ / "output"; }

  // Compresses, verifies against source and manifest, and returns what the card says to a hub.
  FrontMatter card(const CompressOptions& options = {}) {
    fs::remove_all(output());
    Result<CompressSummary> summary = run_compress(source_, output(), options);
    EXPECT_TRUE(succeeded(summary));
    if (!summary) return {};
    notes_ = summary->notes;
    n_published_ = summary->n_published;
    EXPECT_TRUE(verifies(output(), source_));
    const Result<FrontMatter> matter = FrontMatter::parse(read_file(output() / "README.md"));
    EXPECT_TRUE(succeeded(matter));
    return matter.value_or(FrontMatter());
  }
  static std::string value(const FrontMatter& matter, std::string_view key) {
    const CardValue* found = matter.find(key);
    if (found == nullptr) return "(none)";
    std::string text;
    for (const std::string& item : found->items) text += (text.empty() ? "" : ",") + item;
    return text;
  }
  bool noted(std::string_view text) const {
    return std::any_of(notes_.begin(), notes_.end(),
                       [&](const std::string& note) { return note.find(text) != note.npos; });
  }

  TemporaryDirectory directory_;
  fs::path source_ = directory_ / "source";
  std::vector<std::string> notes_;
  uint64_t n_published_ = 0;
};

TEST_F(ModelCardTest, WithoutACardInTheSource) {
  const FrontMatter matter = card();
  EXPECT_EQ(value(matter, "base_model"), "(none)");
  EXPECT_EQ(value(matter, "base_model_relation"), "(none)");
  EXPECT_EQ(value(matter, "library_name"), "dfloat11");
  EXPECT_EQ(value(matter, "tags"), "dfloat11,df11,lossless compression");
  EXPECT_EQ(value(matter, "license"), "(none)");
  EXPECT_TRUE(noted("--base-model"));
  const std::string text = read_file(output() / "README.md");
  for (const char* said : {"DFloat11Model.from_pretrained(", "df11-verify", "df11-decompress",
                           "bits per coded weight"})
    EXPECT_NE(text.find(said), text.npos) << said;
}

TEST_F(ModelCardTest, TakesLicenceLanguageAndTaskAndKeepsTheSourcesCard) {
  write_file(source_ / "README.md", kSourceCard);
  write_file(source_ / "LICENSE", "terms\n");
  CompressOptions options;
  options.base_model = "Org/Name";
  const FrontMatter matter = card(options);
  EXPECT_EQ(value(matter, "base_model"), "Org/Name");
  EXPECT_EQ(value(matter, "base_model_relation"), "quantized");
  EXPECT_EQ(value(matter, "license"), "other");
  EXPECT_EQ(value(matter, "license_name"), "some-licence");
  EXPECT_EQ(value(matter, "license_link"), "LICENSE");
  EXPECT_EQ(value(matter, "language"), "en,no");
  EXPECT_EQ(value(matter, "pipeline_tag"), "text-generation");
  EXPECT_EQ(value(matter, "library_name"), "dfloat11");
  EXPECT_EQ(read_file(output() / "README.source.md"), kSourceCard);
  const Manifest manifest = read_manifest(output());
  EXPECT_EQ(manifest.stored_path("README.md"), "README.source.md");
  EXPECT_EQ(manifest.stored_path("LICENSE"), "LICENSE");
  EXPECT_TRUE(manifest.is_made_card("README.md"));
  // A licence's file that is not in the artifact is linked where it is.
  options.omit = {"LICENSE"};
  EXPECT_EQ(value(card(options), "license_link"),
            "https://huggingface.co/Org/Name/blob/main/LICENSE");
}

TEST_F(ModelCardTest, NamesThatAreTaken) {
  write_file(source_ / "README.md", kSourceCard);
  write_file(source_ / "README.source.md", "mine");
  write_file(source_ / "README.source.2.md/file", "mine too");
  card();
  EXPECT_EQ(read_file(output() / "README.source.md"), "mine");
  EXPECT_EQ(read_file(output() / "README.source.3.md"), kSourceCard);
}

TEST_F(ModelCardTest, NoCard) {
  CompressOptions options;
  options.card = false;
  ASSERT_TRUE(succeeded(run_compress(source_, output(), options)));
  EXPECT_FALSE(fs::exists(output() / "README.md"));
  write_file(source_ / "README.md", kSourceCard);
  fs::remove_all(output());
  card(options);
  EXPECT_EQ(read_file(output() / "README.md"), kSourceCard);
  EXPECT_FALSE(fs::exists(output() / "README.source.md"));
}

TEST_F(ModelCardTest, OmittedCardOfTheSource) {
  write_file(source_ / "README.md", kSourceCard);
  CompressOptions options;
  options.omit = {"README.md"};
  EXPECT_EQ(value(card(options), "license"), "(none)");
  EXPECT_FALSE(fs::exists(output() / "README.source.md"));
}

TEST_F(ModelCardTest, BrokenCardOfTheSourceIsKeptAndNamed) {
  for (const std::string& broken :
       {std::string("---\nlicense: mit\n"), std::string("---\na: [\n---\n"),
        "---\n" + std::string(5u << 20, '#') + "\n---\n", std::string(17u << 20, 'x')}) {
    write_file(source_ / "README.md", broken);
    EXPECT_EQ(value(card(), "license"), "(none)");
    EXPECT_TRUE(noted("nothing is taken from it")) << broken.substr(0, 20);
    EXPECT_TRUE(read_file(output() / "README.source.md") == broken);
  }
}

TEST_F(ModelCardTest, BaseModelFromConfig) {
  const auto with = [&](const std::string& name) {
    write_file(source_ / "config.json", "{\"_name_or_path\": \"" + name + "\"}\n");
    return value(card(), "base_model");
  };
  EXPECT_EQ(with("Org/Name"), "Org/Name");
  EXPECT_TRUE(noted("_name_or_path"));
  for (const char* path : {"/home/me/model", "./model", "../model", "model", "a/b/c", ""})
    EXPECT_EQ(with(path), "(none)") << path;
  // What the source's own card calls its parent is not what was compressed here.
  write_file(source_ / "README.md", kSourceCard);
  EXPECT_EQ(with("Org/Parent"), "(none)");
  EXPECT_TRUE(noted("not taken as base_model"));
}

TEST_F(ModelCardTest, BaseModelThatIsNoName) {
  for (const char* name : {"a/b/c", "https://huggingface.co/a/b", "a b", "x\ny"}) {
    CompressOptions options;
    options.base_model = name;
    EXPECT_TRUE(failed_with(run_compress(source_, output(), options), ErrorCode::invalid_argument,
                            "repository name"));
    EXPECT_FALSE(fs::exists(output()));
  }
}

TEST_F(ModelCardTest, HubCacheGivesTheNameAndConfirmsFiles) {
  const fs::path repository = directory_ / "models--Org--Name";
  const fs::path snapshot = repository / "snapshots/0123456789abcdef0123456789abcdef01234567";
  fs::create_directories(snapshot);
  std::string blob_of_weights;
  for (const auto& [name, bytes] : tree_of(source_)) {
    const ByteSpan span{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
    GitBlobHasher git(bytes.size());
    git.update(span);
    const bool weights_file = name.ends_with(kSafetensorsSuffix);
    const std::string blob = weights_file ? sha256(span).hex() : git.digest().hex();
    if (weights_file) blob_of_weights = blob;
    write_file(repository / "blobs" / blob, bytes);
    fs::create_symlink("../../blobs/" + blob, snapshot / name);
  }
  source_ = snapshot;
  EXPECT_EQ(value(card(), "base_model"), "Org/Name");
  EXPECT_EQ(n_published_, 3u);
  for (const ManifestFile& file : read_manifest(output()).source_files) {
    ASSERT_TRUE(file.published.has_value()) << file.path;
    EXPECT_EQ(file.published->recorded_in, "hub cache");
    EXPECT_EQ(file.published->revision, "0123456789abcdef0123456789abcdef01234567");
  }

  // One bit of the weights flips on the disk, or of a file that is only copied, or of config.json.
  for (const char* name : {"model.safetensors", "tokenizer.json", "config.json"}) {
    const fs::path blob = fs::canonical(snapshot / name);
    const std::string before = read_file(blob);
    std::string damaged = before;
    damaged[damaged.size() - 14] ^= 1;
    write_file(blob, damaged);
    fs::remove_all(output());
    EXPECT_TRUE(failed_with(run_compress(snapshot, output()), ErrorCode::damaged, name)) << name;
    EXPECT_FALSE(fs::exists(output()));
    write_file(blob, before);
  }
}

TEST_F(ModelCardTest, ComponentOfAPipeline) {
  const fs::path pipeline = directory_ / "pipeline";
  write_file(pipeline / "model_index.json", "{}");
  write_file(pipeline / "README.md",
             "---\nlicense: other\nlicense_link: LICENSE.md\npipeline_tag: text-to-image\n---\n");
  fs::rename(source_, pipeline / "transformer");
  source_ = pipeline / "transformer";
  write_file(source_ / "config.json", "{\"_class_name\": \"FluxTransformer2DModel\"}\n");
  CompressOptions options;
  options.base_model = "Org/Flux";
  const FrontMatter matter = card(options);
  EXPECT_EQ(value(matter, "license"), "other");
  EXPECT_EQ(value(matter, "license_link"), "https://huggingface.co/Org/Flux/blob/main/LICENSE.md");
  EXPECT_EQ(value(matter, "pipeline_tag"), "text-to-image");
  const std::string text = read_file(output() / "README.md");
  EXPECT_NE(text.find("bfloat16_model=pipeline.transformer"), text.npos);
  EXPECT_EQ(value(card(), "license_link"), "(none)") << "nothing to link to without a repository";
  // A card of the component's own comes first, and its licence whole.
  write_file(source_ / "README.md", "---\nlicense: mit\n---\n");
  const FrontMatter own = card(options);
  EXPECT_EQ(value(own, "license"), "mit");
  EXPECT_EQ(value(own, "license_link"), "(none)");
  EXPECT_EQ(value(own, "pipeline_tag"), "text-to-image");
}

TEST_F(ModelCardTest, IndexHasTheOriginalsParameters) {
  write_sharded_checkpoint(source_ = directory_ / "sharded");
  card();
  const Result<Json> index = parse_json(read_file(output() / "model.safetensors.index.json"));
  uint64_t n_parameters = 0, n_bytes = 0;
  for (const Tensor& tensor : tiny_tensors()) n_parameters += *shape_elements(tensor.shape);
  for (const auto& [name, file] : (*index)["weight_map"].items()) {
    const auto tensors = read_safetensors(output() / file.get<std::string>());
    n_bytes += tensors.at(name).bytes.size();
  }
  EXPECT_EQ((*index)["metadata"]["total_parameters"], n_parameters);
  EXPECT_EQ((*index)["metadata"]["total_size"], n_bytes);
}

TEST_F(ModelCardTest, NothingToCompress) {
  const std::vector<std::vector<Tensor>> sources = {
      {zeros("model.layers.0.up.weight", Dtype::kF16, {64, 64}), zeros("n", Dtype::kF32, {})},
      {weights("model.embed_tokens.weight", {100, 64})},  // tied
      {}};
  for (const std::vector<Tensor>& tensors : sources) {
    fs::remove_all(source_);
    write_tiny_checkpoint(source_, tensors);
    card();
    EXPECT_TRUE(noted("nothing to compress"));
    EXPECT_TRUE(read_manifest(output()).groups.empty());
    const Result<Json> config = parse_json(read_file(output() / "config.json"));
    EXPECT_EQ((*config)["dfloat11_config"]["pattern_dict"], Json::object());
  }
}

TEST_F(ModelCardTest, ShardWithoutTensors) {
  fs::rename(source_ / "model.safetensors", source_ / "model-00001-of-00002.safetensors");
  write_safetensors(source_ / "model-00002-of-00002.safetensors", {});
  std::map<std::string, std::string> index;
  for (const Tensor& tensor : tiny_tensors())
    index[tensor.name] = "model-00001-of-00002.safetensors";
  write_index(source_ / "model.safetensors.index.json", index);
  CompressOptions options;
  options.omit = {"model-00002-of-00002.safetensors"};  // what no index names must be left out
  EXPECT_TRUE(failed_with(run_compress(source_, output()), ErrorCode::malformed_index));
  card(options);
}

}  // namespace
}  // namespace df11::test
