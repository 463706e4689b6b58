#include "directories/builders.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "format/file.h"
#include "format/hash.h"
#include "support/named_inputs.h"
#include "support/random.h"

namespace df11::test {

namespace {

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().describe());
  return std::move(*result);
}

}  // namespace

Tensor bf16_tensor(std::string name, Shape shape, std::span<const uint16_t> words) {
  std::string bytes(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  return {std::move(name), Dtype::kBF16, std::move(shape), std::move(bytes)};
}

Tensor weights(std::string name, Shape shape, uint64_t seed) {
  Random random(seed);
  std::vector<uint16_t> words(*shape_elements(shape));
  for (uint16_t& word : words) word = to_bf16(0.02 * random.normal());
  return bf16_tensor(std::move(name), std::move(shape), words);
}

Tensor zeros(std::string name, Dtype dtype, Shape shape) {
  const uint64_t n_bytes = tensor_bytes(dtype, shape).value();
  return {std::move(name), dtype, std::move(shape), std::string(n_bytes, '\0')};
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void write_safetensors(const fs::path& path, const std::vector<Tensor>& tensors) {
  std::vector<TensorInfo> infos;
  std::map<std::string, const std::string*> bytes;
  for (const Tensor& tensor : tensors) {
    infos.push_back({tensor.name, tensor.dtype, tensor.shape, 0, 0});
    bytes[tensor.name] = &tensor.bytes;
  }
  const SafetensorsHeader header = SafetensorsHeader::lay_out(std::move(infos), {{"format", "pt"}});
  std::string file = header.serialize();
  for (const TensorInfo& info : header.tensors()) file += *bytes[info.name];
  write_file(path, file);
}

std::map<std::string, Tensor> read_safetensors(const fs::path& path) {
  const File file = value_or_throw(File::open_read(path));
  const SafetensorsHeader header = value_or_throw(SafetensorsHeader::read(file));
  const std::string bytes = read_file(path);
  std::map<std::string, Tensor> tensors;
  for (const TensorInfo& info : header.tensors()) {
    tensors[info.name] = {
        info.name, info.dtype, info.shape,
        bytes.substr(header.data_offset_bytes() + info.begin_bytes, info.size_bytes())};
  }
  return tensors;
}

void edit_safetensors(const fs::path& path,
                      const std::function<void(std::map<std::string, Tensor>&)>& edit) {
  std::map<std::string, Tensor> by_name = read_safetensors(path);
  edit(by_name);
  std::vector<Tensor> tensors;
  for (auto& [name, tensor] : by_name) {
    tensor.name = name;  // an edit may insert under a new key
    tensors.push_back(std::move(tensor));
  }
  write_safetensors(path, tensors);
}

void write_index(const fs::path& path, const std::map<std::string, std::string>& weight_map) {
  const Json index = {{"metadata", Json::object()}, {"weight_map", weight_map}};
  write_file(path, index.dump(2) + "\n");
}

std::vector<Tensor> tiny_tensors() {
  return {weights("model.embed_tokens.weight", {32, 64}, 1),
          weights("model.layers.0.mlp.up_proj.weight", {64, 96}, 2),
          weights("model.layers.0.input_layernorm.weight", {64}, 3),
          weights("model.norm.weight", {64}, 4)};
}

namespace {
void write_small_files(const fs::path& directory) {
  write_file(directory / "config.json",
             "{\n  \"model_type\": \"qwen3\",\n  \"tie_word_embeddings\": true\n}\n");
  write_file(directory / "tokenizer.json", "{\"version\": \"1.0\"}\n");
}
}  // namespace

void write_tiny_checkpoint(const fs::path& directory, const std::vector<Tensor>& tensors) {
  write_small_files(directory);
  write_safetensors(directory / "model.safetensors", tensors);
}

void write_sharded_checkpoint(const fs::path& directory) {
  write_small_files(directory);
  const std::vector<Tensor> tensors = tiny_tensors();
  const std::string first = "model-00001-of-00002.safetensors",
                    second = "model-00002-of-00002.safetensors";
  write_safetensors(directory / first, {tensors[0], tensors[1]});
  write_safetensors(directory / second, {tensors[2], tensors[3]});
  write_index(directory / "model.safetensors.index.json", {{tensors[0].name, first},
                                                           {tensors[1].name, first},
                                                           {tensors[2].name, second},
                                                           {tensors[3].name, second}});
}

std::map<std::string, std::string> tree_of(const fs::path& directory) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().lexically_relative(directory).generic_string();
    if (entry.is_symlink()) {
      tree[path + "@"] = fs::read_symlink(entry.path()).string();
    } else if (entry.is_directory()) {
      tree[path + "/"] = "";
    } else {
      tree[path] = read_file(entry.path());
    }
  }
  return tree;
}

Result<CompressSummary> run_compress(const fs::path& source, const fs::path& output,
                                     const CompressOptions& options, int n_threads) {
  const Executor executor(n_threads);
  Progress progress;
  return compress(source, output, options, executor, progress);
}

Result<VerifyReport> run_verify(const fs::path& artifact, const fs::path& source,
                                const std::vector<std::string>& ignore, int n_threads) {
  const Executor executor(n_threads);
  Progress progress;
  VerifyOptions options;
  if (!source.empty()) options.source = source;
  options.ignore = ignore;
  return verify(artifact, options, *make_cpu_decoder(), executor, progress);
}

void compress_or_throw(const fs::path& source, const fs::path& output,
                       const CompressOptions& options) {
  value_or_throw(run_compress(source, output, options));
}

CompressOptions without_card() {
  CompressOptions options;
  options.card = false;
  return options;
}

Manifest read_manifest(const fs::path& artifact) {
  return value_or_throw(Manifest::parse(read_file(artifact / kManifestName)));
}

void edit_manifest(const fs::path& artifact, const std::function<void(Manifest&)>& edit) {
  Manifest manifest = read_manifest(artifact);
  edit(manifest);
  write_file(artifact / kManifestName, manifest.to_text());
}

void rehash_manifest(const fs::path& artifact) {
  edit_manifest(artifact, [&](Manifest& manifest) {
    for (ManifestFile& file : manifest.files) {
      const std::string bytes = read_file(artifact / file.path);
      file.size_bytes = bytes.size();
      file.sha256 = sha256(as_bytes(bytes));
    }
  });
}

std::string sealed(const Json& root) {
  std::string text = root.dump(1);
  text.resize(text.size() - 2);  // "\n}"
  return text + ",\n \"manifest_sha256\": \"" + sha256(as_bytes(text)).hex() + "\"\n}\n";
}

}  // namespace df11::test
