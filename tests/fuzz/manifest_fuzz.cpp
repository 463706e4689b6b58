// Input: the text of a manifest without its seal, which nobody gets right by chance. Taken as it
// is, and sealed.
#include "format/directory.h"
#include "format/hash.h"
#include "format/manifest.h"
#include "fuzz_input.h"

using namespace df11;
using df11::test::require;

namespace {

std::string sealed(ByteSpan text) {
  return std::string(text.begin(), text.end()) + ",\n \"manifest_sha256\": \"" +
         sha256(text).hex() + "\"\n}\n";
}

void check(const Manifest& manifest) {
  for (const auto* files : {&manifest.files, &manifest.source_files})
    for (const ManifestFile& file : *files)
      require(is_safe_relative_path(file.path), "files stay in the directory");
  for (const auto& [path, bytes] : manifest.restore)
    require(is_safe_relative_path(path), "records stay in the directory");
  for (const ManifestTensor& tensor : manifest.tensors)
    require(tensor_bytes(tensor.dtype, tensor.shape).has_value(), "tensors have a size");

  const std::string text = manifest.to_text();
  const Result<Manifest> again = Manifest::parse(text);
  require(again.has_value(), "what is written can be read");
  require(again->to_text() == text, "the same manifest");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const ByteSpan text(data, n_bytes);
  const Result<Manifest> raw = Manifest::parse(test::FuzzInput(data, n_bytes).text());
  if (raw) check(*raw);
  const Result<Manifest> manifest = Manifest::parse(sealed(text));
  if (manifest) check(*manifest);
  return 0;
}
