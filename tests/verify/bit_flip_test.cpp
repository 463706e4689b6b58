// Every bit of every file of an artifact, flipped one at a time: verify() never says "equal".
//
// Bits are flipped in place and restored, in parallel over copies of the directory. Under a
// sanitizer every 17th bit is taken, as DF11_BIT_STEP in the environment can say too.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "directories/builders.h"
#include "format/bf16.h"
#include "format/df11_layout.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

size_t bit_step() {
  if (const char* step = std::getenv("DF11_BIT_STEP")) return static_cast<size_t>(std::atoi(step));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 17;
#else
  return 1;
#endif
}

struct Bit {
  std::string file;
  uint64_t byte;
  int bit;  // 7 is the first in stream order

  friend auto operator<=>(const Bit&, const Bit&) = default;
};

// All bits of `n_bytes` from `first_byte` of `file`, every bit_step()-th.
void append_bits(std::vector<Bit>& bits, const std::string& file, uint64_t first_byte,
                 uint64_t n_bytes) {
  for (uint64_t at = 0; at < 8 * n_bytes; at += bit_step()) {
    bits.push_back({file, first_byte + at / 8, 7 - static_cast<int>(at % 8)});
  }
}

void flip(const fs::path& path, uint64_t byte, int bit) {
  const int fd = ::open(path.c_str(), O_RDWR);
  uint8_t value = 0;
  if (fd < 0 || ::pread(fd, &value, 1, static_cast<off_t>(byte)) != 1) std::abort();
  value = static_cast<uint8_t>(value ^ 1 << bit);
  if (::pwrite(fd, &value, 1, static_cast<off_t>(byte)) != 1) std::abort();
  ::close(fd);
}

class BitFlipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(source() / "config.json", "{\n  \"tie_word_embeddings\": true\n}\n");
    write_file(source() / "tokenizer.json", "{\"version\": \"1.0\"}\n");
    write_safetensors(source() / "model.safetensors",
                      {weights("l.0.up.weight", {40, 64}), weights("l.0.norm.weight", {16})});
    compress_or_throw(source(), artifact(), without_card());
  }
  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }

  // Flips each of `bits` alone and returns those that verify() does not notice.
  std::vector<Bit> unnoticed(const std::vector<Bit>& bits, const fs::path& against) {
    const size_t n_workers = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::vector<Bit>> missed(n_workers);
    std::atomic<size_t> next{0};
    const auto work = [&](size_t worker) {
      const fs::path copy = directory_ / ("copy" + std::to_string(worker));
      fs::remove_all(copy);
      fs::copy(artifact(), copy, fs::copy_options::recursive);
      const Executor executor(1);
      const std::unique_ptr<Decoder> decoder = make_cpu_decoder();
      VerifyOptions options;
      if (!against.empty()) options.source = against;
      for (size_t i = next++; i < bits.size(); i = next++) {
        flip(copy / bits[i].file, bits[i].byte, bits[i].bit);
        Progress progress;
        const Result<VerifyReport> report = verify(copy, options, *decoder, executor, progress);
        if (report && report->equal()) missed[worker].push_back(bits[i]);
        flip(copy / bits[i].file, bits[i].byte, bits[i].bit);
      }
      EXPECT_TRUE(tree_of(copy) == tree_of(artifact()));  // every flip was taken back
    };
    std::vector<std::thread> workers;
    for (size_t i = 0; i < n_workers; ++i) workers.emplace_back(work, i);
    for (std::thread& worker : workers) worker.join();
    std::vector<Bit> all;
    for (const auto& list : missed) all.insert(all.end(), list.begin(), list.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  static std::string text_of(const std::vector<Bit>& bits) {
    std::string text;
    for (const Bit& bit : bits)
      text +=
          bit.file + " byte " + std::to_string(bit.byte) + " bit " + std::to_string(bit.bit) + "\n";
    return text;
  }

  TemporaryDirectory directory_;
};

TEST_F(BitFlipTest, EveryBitOfEveryFileUnderTheManifest) {
  std::vector<Bit> bits;
  uint64_t n_bytes = 0;
  for (const auto& [path, bytes] : tree_of(artifact())) {
    append_bits(bits, path, 0, bytes.size());
    n_bytes += bytes.size();
  }
  EXPECT_LT(n_bytes, 12'000u) << "the test's time grows with this";
  ASSERT_TRUE(run_verify(artifact())->equal());
  const std::vector<Bit> missed = unnoticed(bits, {});
  EXPECT_TRUE(missed.empty()) << text_of(missed);
}

// Without a manifest, against the source: every bit of these four tensors counts, but for the
// padding after the last code in the last byte of the stream, which no decoder looks at.
TEST_F(BitFlipTest, EveryBitOfAGroupAgainstTheSource) {
  fs::remove(artifact() / kManifestName);
  ASSERT_TRUE(run_verify(artifact(), source())->equal());
  const std::string shard = "l_0.safetensors";
  const Result<File> file = File::open_read(artifact() / shard);
  ASSERT_TRUE(succeeded(file));
  const Result<SafetensorsHeader> header = SafetensorsHeader::read(*file);
  ASSERT_TRUE(succeeded(header));
  std::vector<Bit> bits;
  uint64_t code_end = 0;
  for (const TensorInfo& info : header->tensors()) {
    const std::string leaf = info.name.substr(info.name.rfind('.') + 1);
    const uint64_t begin = header->data_offset_bytes() + info.begin_bytes;
    if (leaf == kEncodedExponentName) code_end = begin + info.size_bytes();
    if (leaf == kEncodedExponentName || leaf == kGapsName || leaf == kOutputPositionsName ||
        leaf == kSignMantissaName) {
      append_bits(bits, shard, begin, info.size_bytes());
    }
  }

  // Bits of the stream, from the source's weights and the lengths in the last row of luts.
  const auto tensors = read_safetensors(artifact() / shard);
  const std::string& luts = tensors.at("l.0.up.luts").bytes;
  const std::string words =
      read_safetensors(source() / "model.safetensors").at("l.0.up.weight").bytes;
  uint64_t n_code_bits = 0;
  for (size_t i = 0; i < words.size(); i += 2) {
    uint16_t word;
    std::memcpy(&word, &words[i], 2);
    n_code_bits += static_cast<uint8_t>(luts[luts.size() - kLutRowBytes + bf16_exponent(word)]);
  }
  const int n_padding = static_cast<int>((8 - n_code_bits % 8) % 8);
  std::vector<Bit> padding;
  for (int bit = 0; bit < n_padding; ++bit) padding.push_back({shard, code_end - 1, bit});
  if (bit_step() != 1) {
    std::erase_if(padding, [&](const Bit& bit) {
      return std::find(bits.begin(), bits.end(), bit) == bits.end();
    });
  }

  const std::vector<Bit> missed = unnoticed(bits, source());
  EXPECT_EQ(missed, padding) << text_of(missed) << "expected\n" << text_of(padding);
}

}  // namespace
}  // namespace df11::test
