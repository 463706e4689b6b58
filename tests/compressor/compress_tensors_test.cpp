// Compression of directories with odd tensors: each comes back bit for bit, coded or verbatim.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "compressor/compress.h"
#include "directories/builders.h"
#include "directories/verifies.h"
#include "support/random.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

using Reasons = std::map<std::string, std::string>;

class CompressTensorsTest : public ::testing::Test {
 protected:
  // Compresses a model of these tensors, verifies it in both ways, and returns why each verbatim
  // tensor is verbatim; grouped ones are absent.
  Reasons round_trip(const std::vector<Tensor>& tensors) {
    fs::remove_all(output_);
    write_safetensors(source_ / "model.safetensors", tensors);
    const Result<CompressSummary> summary = run_compress(source_, output_);
    EXPECT_TRUE(succeeded(summary));
    if (!summary) return {};
    EXPECT_TRUE(verifies(output_, source_, tensors.size()));
    Reasons reasons;
    for (const ManifestTensor& tensor : summary->manifest.tensors) {
      if (tensor.group.empty()) reasons[tensor.name] = tensor.reason;
    }
    return reasons;
  }

  TemporaryDirectory directory_;
  const fs::path source_ = directory_ / "source", output_ = directory_ / "output";
};

// Every word that a group can hold, often enough that coding pays.
TEST_F(CompressTensorsTest, AllCodableBf16Words) {
  std::vector<uint16_t> words;
  for (uint32_t word = 0; word < 65536; ++word) {
    const uint32_t exponent = word >> 7 & 0xff;
    if (exponent >= 240) continue;
    words.push_back(static_cast<uint16_t>(word));
    // Skewed exponents: a code shorter than 8 bits.
    if (exponent == 120) words.insert(words.end(), 800, static_cast<uint16_t>(word));
  }
  ASSERT_EQ(words.size(), 240u * 256 + 256 * 800);
  Random(1).shuffle(words);
  EXPECT_EQ(round_trip({bf16_tensor("l.0.x.weight", {words.size(), 1}, words)}), Reasons{});
}

TEST_F(CompressTensorsTest, All65536Bf16WordsStayVerbatimAndSaySo) {
  std::vector<uint16_t> words(65536);
  std::iota(words.begin(), words.end(), uint16_t{0});
  const Reasons reasons = round_trip({bf16_tensor("l.0.x.weight", {256, 256}, words)});
  EXPECT_EQ(reasons.at("l.0.x.weight"),
            "4096 weights with exponents of 240 or more (2^113 and up, Inf or NaN)");
}

TEST_F(CompressTensorsTest, ExponentsAroundTheLimit) {
  const Tensor base = weights("l.0.x.weight", {64, 128});
  const auto with_word = [&](uint16_t word) {
    Tensor tensor = base;
    std::memcpy(tensor.bytes.data() + 1000, &word, 2);
    return tensor;
  };
  // 0x7780 is 239 << 7, 2^112; both signs and the largest mantissa still fit.
  for (const uint16_t word : {uint16_t{0x7780}, uint16_t{0xf7ff}}) {
    EXPECT_EQ(round_trip({with_word(word)}), Reasons{}) << word;
  }
  for (const uint16_t word :
       std::vector<uint16_t>{0x7800, 0xf800, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffff}) {
    const Reasons reasons = round_trip({with_word(word)});
    EXPECT_EQ(reasons.at("l.0.x.weight"),
              "1 weights with exponents of 240 or more (2^113 and up, Inf or NaN)")
        << word;
  }
}

TEST_F(CompressTensorsTest, VerbatimWhenNotSmaller) {
  Random random(3);
  std::vector<uint16_t> noise(1 << 16);  // 240 equally likely exponents: about 7.9 bits a code
  for (uint16_t& word : noise) {
    word =
        static_cast<uint16_t>(random.below(240) << 7 | random.below(128) | random.below(2) << 15);
  }
  const Reasons reasons = round_trip(
      {bf16_tensor("l.0.noise.weight", {256, 256}, noise), weights("l.0.small.weight", {4, 4}),
       weights("l.0.one.weight", {1, 1}), weights("l.0.good.weight", {64, 128})});
  const std::string reason = "coding would not make it smaller";
  EXPECT_EQ(reasons, (Reasons{{"l.0.noise.weight", reason},
                              {"l.0.small.weight", reason},
                              {"l.0.one.weight", reason}}));
}

TEST_F(CompressTensorsTest, OneExponentOnly) {
  const std::vector<uint16_t> words(100'000, 0x8000);  // -0.0: 1 bit a weight, over 23,550 a block
  EXPECT_EQ(round_trip({bf16_tensor("l.0.x.weight", {1000, 100}, words)}), Reasons{});
}

TEST_F(CompressTensorsTest, PassengersOfEveryDtype) {
  std::vector<Tensor> tensors;
  for (int i = 0; i <= static_cast<int>(Dtype::kU64); ++i) {
    const Dtype dtype = static_cast<Dtype>(i);
    const std::string name = "l.0." + std::string(dtype_name(dtype));
    tensors.push_back(zeros(name + ".weight", dtype, {8, 3}));
    for (size_t at = 0; at < tensors.back().bytes.size(); ++at) {
      tensors.back().bytes[at] = static_cast<char>(17 * i + 31 * at);
    }
    tensors.push_back(zeros(name + ".empty", dtype, {0}));
    tensors.push_back(zeros(name + ".empty.weight", dtype, {16, 0}));
    if (dtype_bits(dtype) % 8 == 0) tensors.push_back(zeros(name + ".scalar", dtype, {}));
  }
  tensors.push_back(weights("l.0.good.weight", {64, 128}));
  const Reasons reasons = round_trip(tensors);
  EXPECT_EQ(reasons.size(), tensors.size() - 1);
  EXPECT_EQ(reasons.at("l.0.F8_E4M3.weight"), "dtype F8_E4M3, not BF16");
  EXPECT_EQ(reasons.at("l.0.BF16.scalar"), "not a module's .weight");
}

TEST_F(CompressTensorsTest, NoBf16AtAll) {
  write_file(source_ / "config.json", "{\"torch_dtype\": \"float32\"}\n");
  EXPECT_EQ(
      round_trip({zeros("l.0.x.weight", Dtype::kF32, {8, 8}), zeros("y", Dtype::kI64, {3})}).size(),
      2u);
}

TEST_F(CompressTensorsTest, NoTensorsAtAll) {
  fs::create_directories(source_);
  write_safetensors(source_ / "model.safetensors", {});
  // Either a refusal, or an artifact that verifies.
  if (run_compress(source_, output_)) {
    EXPECT_TRUE(run_verify(output_, source_)->equal());
  }
}

// A group adds tensors under its module's name. Where the source has one of those names already,
// the artifact must still hold both.
TEST_F(CompressTensorsTest, SourceTensorsNamedLikeThoseOfAGroup) {
  for (const char* name :
       {"luts", "gaps", "sign_mantissa", "output_positions", "split_positions"}) {
    fs::remove_all(output_);
    write_safetensors(
        source_ / "model.safetensors",
        {weights("l.0.x.weight", {64, 128}), zeros(std::string("l.0.x.") + name, Dtype::kU8, {7})});
    const Result<CompressSummary> summary = run_compress(source_, output_);
    if (!summary) continue;  // refusing is as good
    const Result<VerifyReport> report = run_verify(output_, source_);
    ASSERT_TRUE(succeeded(report)) << name;
    EXPECT_TRUE(report->equal()) << name << ": " << to_json(*report, 0);
  }
}

// Names that make odd file names or patterns: refused, or an artifact that verifies; and nothing
// written anywhere else.
TEST_F(CompressTensorsTest, OddTensorNames) {
  const std::string outside = (directory_ / "outside").string();
  for (const std::string& name : std::vector<std::string>{
           outside + ".0.x.weight", "../outside.0.x.weight", "sub/evil.0.x.weight",
           std::string("a\0b.0.x.weight", 14), "..0..weight", "0.weight", ".0.weight",
           "a b.0.x.weight", "new\nline.0.x.weight", "caf\xc3\xa9.0.x.weight",
           std::string(300, 'l') + ".0.x.weight", "a\\b.0.x.weight", "CON.0.x.weight"}) {
    fs::remove_all(output_);
    write_safetensors(source_ / "model.safetensors", {weights(name, {64, 128})});
    const Result<CompressSummary> summary = run_compress(source_, output_);
    if (summary) {
      const Result<VerifyReport> report = run_verify(output_, source_);
      ASSERT_TRUE(succeeded(report)) << name;
      EXPECT_TRUE(report->equal()) << name << ": " << to_json(*report, 0);
    }
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      EXPECT_TRUE(entry.path() == source_ || entry.path() == output_)
          << name << " wrote " << entry.path();
      if (entry.path() != source_ && entry.path() != output_) fs::remove_all(entry.path());
    }
  }
}

}  // namespace
}  // namespace df11::test
