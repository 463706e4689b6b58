// df11_manifest.json: what the artifact was made from, where everything went, and the hashes that
// prove it (spec/manifest.md).
//
// The file is written last: its presence means that the artifact is complete. It ends with the
// SHA-256 of its own preceding bytes, so that no bit of it can change unnoticed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/error.h"
#include "format/hash.h"
#include "format/hub_record.h"
#include "format/safetensors.h"

namespace df11 {

inline constexpr std::string_view kManifestName = "df11_manifest.json";
inline constexpr uint64_t kManifestFormatVersion = 1;

struct ManifestFile {
  std::string path;
  uint64_t size_bytes = 0;
  Sha256 sha256;
  // Of source files only:
  std::string stored_as = {};  // the copy's path in the artifact; empty when it is the same
  std::optional<PublishedHash> published = {};  // compared while the file was read, and equal

  const std::string& stored_path() const { return stored_as.empty() ? path : stored_as; }
};

// A tensor of the source and where its bytes are in the artifact.
struct ManifestTensor {
  std::string name;
  Dtype dtype = Dtype::kBF16;
  Shape shape;
  std::string source_file;
  Xxh128 xxh3_128;     // of its bytes in the source
  std::string group;   // module whose group holds it; empty when it is stored verbatim
  std::string reason;  // why it is verbatim; empty in a group
};

struct ManifestGroup {
  std::string module;
  std::string file;
  uint64_t n_elements = 0;
  uint64_t n_code_bytes = 0;
  uint64_t stored_bytes = 0;  // of its six tensors
  double entropy_bits = 0;    // Shannon entropy of the exponents, bits a weight
  int longest_code_bits = 0;
  std::string code_rule;  // how the code was made (spec section 11)
};

struct Manifest {
  std::string tool_version;
  std::map<std::string, std::string> settings;
  std::vector<ManifestFile> source_files;
  std::vector<std::string> omitted_files;  // source files left out on request
  std::vector<ManifestTensor> tensors;     // by name
  std::vector<ManifestGroup> groups;       // by module
  std::vector<ManifestFile> files;         // of the artifact, by path; not this one
  // Bytes of the source that nothing else in the artifact holds, by source path: whole small files,
  // and for shards everything before the data section.
  std::map<std::string, std::string> restore;

  // Where the artifact has its copy of a source file, if it has one.
  const std::string& stored_path(const std::string& source_path) const;
  // Whether `path` is a file of the artifact that was made for it: a model card, that is, which no
  // file of the source is copied to.
  bool is_made_card(const std::string& path) const;

  std::string to_text() const;
  // Errors: malformed_manifest (with what is wrong), unsupported for a newer format_version.
  static Result<Manifest> parse(std::string_view text);
};

}  // namespace df11
