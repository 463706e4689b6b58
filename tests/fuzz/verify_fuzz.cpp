// Input: a mode (1 byte), then changes of the files of a small artifact (6 bytes each). Verified
// against its manifest, "equal" means that no byte changed; against its source, without a manifest,
// that the tensors still decode to the source's by the oracle.
#include <stdexcept>

#include "directories/builders.h"
#include "format/df11_layout.h"
#include "fuzz_input.h"
#include "support/reference_decoder.h"
#include "support/temporary_directory.h"

using namespace df11;
using namespace df11::test;

namespace {

// What every input starts from, made once.
class SmallArtifact {
 public:
  SmallArtifact() : directory_(memory_directory()) {
    write_file(source() / "config.json", "{\n  \"tie_word_embeddings\": true\n}\n");
    write_safetensors(source() / "model.safetensors",
                      {weights("l.0.up.weight", {40, 64}), weights("l.0.norm.weight", {16})});
    compress_or_throw(source(), artifact(), without_card());
    files_ = tree_of(artifact());
    without_manifest_ = files_;
    without_manifest_.erase(std::string(kManifestName));
    words_ = read_safetensors(source() / "model.safetensors");
  }
  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }
  const std::map<std::string, std::string>& files(bool with_manifest) const {
    return with_manifest ? files_ : without_manifest_;
  }
  const std::map<std::string, Tensor>& source_tensors() const { return words_; }

 private:
  TemporaryDirectory directory_;
  std::map<std::string, std::string> files_, without_manifest_;
  std::map<std::string, Tensor> words_;
};

std::vector<uint8_t> bytes_of(const std::map<std::string, Tensor>& tensors, const char* name) {
  const std::string& bytes = tensors.at(name).bytes;
  return {bytes.begin(), bytes.end()};
}

// Whether the shard still holds the source's tensors, by the oracle.
bool holds_the_source(const SmallArtifact& small) {
  const auto tensors = read_safetensors(small.artifact() / "l_0.safetensors");
  const GroupTensors group = {
      bytes_of(tensors, "l.0.up.luts"),          bytes_of(tensors, "l.0.up.encoded_exponent"),
      bytes_of(tensors, "l.0.up.sign_mantissa"), bytes_of(tensors, "l.0.up.output_positions"),
      bytes_of(tensors, "l.0.up.gaps"),          bytes_of(tensors, "l.0.up.split_positions")};
  const std::vector<uint16_t> words = reference_decode_strictly(group);
  const Tensor decoded = bf16_tensor("l.0.up.weight", {40, 64}, words);
  const auto& source = small.source_tensors();
  const Tensor& norm = tensors.at("l.0.norm.weight");
  const Tensor& source_norm = source.at("l.0.norm.weight");
  return tensors.size() == 7 && decoded.bytes == source.at("l.0.up.weight").bytes &&
         norm.bytes == source_norm.bytes && norm.dtype == source_norm.dtype &&
         norm.shape == source_norm.shape;
}

void change(std::string& bytes, uint64_t kind, uint64_t at, uint8_t value) {
  if (bytes.empty()) return;
  at %= bytes.size();
  switch (kind % 6) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << value % 8); break;
    case 1: bytes[at] = static_cast<char>(value); break;
    case 2: std::swap(bytes[at], bytes[(at + 1 + value) % bytes.size()]); break;
    case 3: bytes.resize(at); break;
    case 4: bytes.insert(at, 1, static_cast<char>(value)); break;
    default: bytes.erase(at, 1 + value % 8); break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  static const SmallArtifact small;
  FuzzInput input(data, n_bytes);
  const bool with_manifest = input.take(1) % 2 == 0;
  const std::map<std::string, std::string>& originals = small.files(with_manifest);
  std::map<std::string, std::string> files = originals;
  while (!input.empty()) {
    const uint64_t file = input.take(1), kind = input.take(1), at = input.take(3);
    change(std::next(files.begin(), static_cast<ptrdiff_t>(file % files.size()))->second, kind, at,
           static_cast<uint8_t>(input.take(1)));
  }
  fs::remove_all(small.artifact());
  for (const auto& [path, bytes] : files) write_file(small.artifact() / path, bytes);

  const Result<VerifyReport> report =
      run_verify(small.artifact(), with_manifest ? fs::path() : small.source(), {}, 1);
  const bool equal = report && report->equal();
  require(equal || files != originals, "no false alarm");
  if (!equal || files == originals) return 0;
  require(!with_manifest, "no change goes unnoticed under a manifest");
  require(holds_the_source(small), "what is equal holds the source's tensors");
  return 0;
}
