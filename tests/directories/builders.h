// Small checkpoint directories written from a description, and edits of what is on disk.
//
// Everything here throws on failure: a test that cannot build its input has nothing to assert.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compressor/compress.h"
#include "format/json.h"
#include "format/manifest.h"
#include "format/safetensors.h"
#include "verify/verify.h"

namespace df11::test {

namespace fs = std::filesystem;

struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kBF16;
  Shape shape;
  std::string bytes;
};

Tensor bf16_tensor(std::string name, Shape shape, std::span<const uint16_t> words);
// Normal weights of deviation 0.02: coding always makes 4,000 of them or more smaller.
Tensor weights(std::string name, Shape shape, uint64_t seed = 1);
Tensor zeros(std::string name, Dtype dtype, Shape shape);

std::string read_file(const fs::path& path);
void write_file(const fs::path& path, std::string_view bytes);  // makes parent directories
void write_safetensors(const fs::path& path, const std::vector<Tensor>& tensors);
// By name.
std::map<std::string, Tensor> read_safetensors(const fs::path& path);
void edit_safetensors(const fs::path& path,
                      const std::function<void(std::map<std::string, Tensor>&)>& edit);
void write_index(const fs::path& path, const std::map<std::string, std::string>& weight_map);

// One model.safetensors with a grouped and a verbatim tensor in layer 0, tied embedding,
// config.json, tokenizer.json: a few ten kB.
std::vector<Tensor> tiny_tensors();
void write_tiny_checkpoint(const fs::path& directory,
                           const std::vector<Tensor>& tensors = tiny_tensors());
// The same weights in two shards with an index.
void write_sharded_checkpoint(const fs::path& directory);

// Relative path -> bytes of every regular file; "dir/" -> "" of every directory, "link@" -> target
// of every symbolic link.
std::map<std::string, std::string> tree_of(const fs::path& directory);

Result<CompressSummary> run_compress(const fs::path& source, const fs::path& output,
                                     const CompressOptions& options = {}, int n_threads = 2);
// `source` empty: against the manifest.
Result<VerifyReport> run_verify(const fs::path& artifact, const fs::path& source = {},
                                const std::vector<std::string>& ignore = {}, int n_threads = 2);

// A compressed tiny checkpoint. Throws when compression fails.
void compress_or_throw(const fs::path& source, const fs::path& output,
                       const CompressOptions& options = {});

// For tests that drop the manifest: without it a model card is a file that the source lacks.
CompressOptions without_card();

Manifest read_manifest(const fs::path& artifact);
void edit_manifest(const fs::path& artifact, const std::function<void(Manifest&)>& edit);
// Makes every size and SHA-256 of `artifact`'s manifest those of its files as they are now.
void rehash_manifest(const fs::path& artifact);
// `json_without_seal` (an object, pretty or not) with the seal that Manifest::parse asks for.
std::string sealed(const Json& root);

}  // namespace df11::test
