// 10,000 seeded mutations of a whole artifact of 2.4 MB, about a minute on one core, of every kind
// of MutationKind: verify() notices each of them, and finds nothing where nothing was changed.
//
//   build/tests/verify/mutation_test        DF11_MUTATIONS=N in the environment for another number
//
// Seeds are 1 .. N, so that a missed one can be run again alone (DF11_FIRST_MUTATION).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "mutations.h"
#include "support/named_inputs.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Weights, one in 50 of them a zero of either sign.
Tensor with_zeros(Tensor tensor, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < tensor.bytes.size(); i += 2 * (1 + random.below(100))) {
    tensor.bytes[i] = '\0';
    tensor.bytes[i + 1] = random.below(2) == 0 ? '\0' : '\x80';
  }
  return tensor;
}

// NaNs of many payloads among ordinary values: cannot be coded.
Tensor with_nans(Tensor tensor) {
  const uint64_t word_bytes = dtype_bits(tensor.dtype) / 8;
  for (size_t i = 0; i < tensor.bytes.size(); i += 7 * word_bytes) {
    tensor.bytes[i + word_bytes - 1] = '\x7f';
    tensor.bytes[i + word_bytes - 2] = static_cast<char>(0x80 | (1 + i % 0x7f));
  }
  return tensor;
}

class MutationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(source() / "config.json", "{\n  \"model_type\": \"qwen3\"\n}\n");
    write_file(source() / "tokenizer.json", std::string(3000, ' ') + "{}\n");
    std::vector<Tensor> first, second;
    for (uint64_t layer = 0; layer < 4; ++layer) {
      const std::string module = "model.layers." + std::to_string(layer);
      std::vector<Tensor>& shard = layer < 2 ? first : second;
      shard.push_back(
          with_zeros(weights(module + ".self_attn.q_proj.weight", {256, 256}, layer), layer));
      shard.push_back(weights(module + ".mlp.up_proj.weight", {600, 256}, 10 + layer));
      shard.push_back(weights(module + ".mlp.down_proj.weight", {256, 600}, 20 + layer));
      shard.push_back(with_zeros(weights(module + ".input_layernorm.weight", {256}, layer), layer));
    }
    first.push_back(weights("model.embed_tokens.weight", {1000, 256}, 50));
    second.push_back(with_nans(weights("model.damaged.weight", {64, 64}, 51)));
    second.push_back(with_nans(zeros("model.float.weight", Dtype::kF32, {500})));
    std::map<std::string, std::string> index;
    for (const Tensor& tensor : first) index[tensor.name] = "model-00001-of-00002.safetensors";
    for (const Tensor& tensor : second) index[tensor.name] = "model-00002-of-00002.safetensors";
    write_safetensors(source() / "model-00001-of-00002.safetensors", first);
    write_safetensors(source() / "model-00002-of-00002.safetensors", second);
    write_index(source() / "model.safetensors.index.json", index);
    compress_or_throw(source(), artifact(), without_card());
  }
  fs::path source() const { return directory_ / "source"; }
  fs::path artifact() const { return directory_ / "artifact"; }

  // Mutates `mutated` with seeds 1 .. n, one after the other, and returns how many of each kind
  // were noticed.
  std::array<int, kMutationKinds> run(const fs::path& mutated, const fs::path& against,
                                      const std::vector<MutationKind>& kinds, uint64_t n,
                                      bool data_only) {
    const Executor executor(1);
    const std::unique_ptr<Decoder> decoder = make_cpu_decoder();
    VerifyOptions options;
    if (!against.empty()) options.source = against;
    const auto verdict = [&] {
      Progress progress;
      return verify(artifact(), options, *decoder, executor, progress);
    };
    std::array<int, kMutationKinds> noticed{};
    EXPECT_TRUE(verdict()->equal());
    MutableDirectory directory(mutated);
    const uint64_t first = from_environment("DF11_FIRST_MUTATION", 1);
    for (uint64_t seed = first; seed < first + n; ++seed) {
      Random random(seed);
      const MutationKind kind = kinds[random.below(kinds.size())];
      const std::string what = directory.mutate(kind, random, data_only);
      const Result<VerifyReport> report = verdict();
      const bool missed = report && report->equal();
      EXPECT_FALSE(missed) << "seed " << seed << ": " << what;
      noticed[static_cast<size_t>(kind)] += !missed;
      directory.undo();
      if (seed % 500 == 0) {
        EXPECT_TRUE(verdict()->equal()) << "false alarm after seed " << seed;
      }
    }
    EXPECT_TRUE(directory.is_original());
    EXPECT_TRUE(verdict()->equal());
    return noticed;
  }

  static std::vector<MutationKind> all_kinds() {
    std::vector<MutationKind> kinds;
    for (int kind = 0; kind < kMutationKinds; ++kind)
      kinds.push_back(static_cast<MutationKind>(kind));
    return kinds;
  }
  static uint64_t n_mutations(uint64_t share_percent) {
    return from_environment("DF11_MUTATIONS", 10'000) * share_percent / 100;
  }

  TemporaryDirectory directory_{memory_directory()};
};

TEST_F(MutationTest, AnythingUnderTheManifest) {
  const auto noticed = run(artifact(), {}, all_kinds(), n_mutations(70), false);
  for (const int n : noticed) EXPECT_GT(n, 0);
}

// Nothing but the decoded tensors tells.
TEST_F(MutationTest, DataAgainstTheSource) {
  fs::remove(artifact() / kManifestName);
  std::vector<MutationKind> kinds = all_kinds();
  std::erase(kinds, MutationKind::kTableEntry);
  run(artifact(), source(), kinds, n_mutations(25), true);
}

// Comparing floats would miss the one and always fail on the other.
TEST_F(MutationTest, ZerosAndNansOfTheSource) {
  fs::remove(artifact() / kManifestName);
  run(source(), source(), {MutationKind::kZeroSign, MutationKind::kNanPayload}, n_mutations(5),
      true);
}

}  // namespace
}  // namespace df11::test
