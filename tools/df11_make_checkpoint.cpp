// df11-make-checkpoint OUTPUT: writes a Qwen3-shaped checkpoint with trained-like weights, for
// trying the programs and for measurements. Not installed.
//
// Weights are normal with a scale per row that varies log-normally, as rows of trained matrices do;
// that gives exponents an entropy of about 2.6 bits. Everything follows from the seed.
#include <array>
#include <cmath>
#include <iostream>
#include <vector>

#include "format/directory.h"
#include "format/file.h"
#include "format/json.h"
#include "format/safetensors.h"
#include "format/shard_set.h"
#include "tools/cli/app.h"

namespace {

using namespace df11;
namespace fs = std::filesystem;

struct Model {
  uint64_t n_layers = 4, hidden = 256, intermediate = 768, vocab = 4096, n_heads = 4,
           n_kv_heads = 2, head_dim = 64;
  bool tied = false;
  uint64_t seed = 1;
  uint64_t max_shard_bytes = uint64_t{5} << 30;
};

// splitmix64 (Steele, Lea, Flood 2014): any counter gives an independent value.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Quantiles of the standard normal distribution at (i + 1/2) / n: indexing them with uniform bits
// gives normal samples fast.
std::vector<float> normal_quantiles(size_t n) {
  std::vector<float> quantiles(n);
  double x = -5;
  for (size_t i = 0; i < n; ++i) {
    const double target = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    for (int step = 0; step < 50; ++step) {  // Newton on the distribution function
      const double error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - target;
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
      const double delta = error / std::max(density, 1e-12);
      x -= std::clamp(delta, -0.5, 0.5);
      if (std::abs(delta) < 1e-9) break;
    }
    quantiles[i] = static_cast<float>(x);
  }
  return quantiles;
}

uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

class Weights {
 public:
  explicit Weights(uint64_t seed) : seed_(seed), normal_(normal_quantiles(size_t{1} << 16)) {}

  void fill_row(uint64_t tensor, uint64_t row, bool norm, std::span<uint16_t> words) const {
    uint64_t state = mix(seed_ ^ mix(tensor << 40 ^ row));
    const float row_scale = norm ? 0.1f : 0.02f * std::exp(0.35f * normal_[mix(state ^ 1) >> 48]);
    const float centre = norm ? 1.0f : 0.0f;
    for (size_t i = 0; i < words.size(); i += 4) {
      uint64_t bits = mix(++state);
      for (size_t j = i; j < std::min(i + 4, words.size()); ++j, bits >>= 16) {
        words[j] = to_bf16(centre + row_scale * normal_[bits & 0xffff]);
      }
    }
  }

 private:
  uint64_t seed_;
  std::vector<float> normal_;
};

std::vector<TensorInfo> tensors_of(const Model& model) {
  std::vector<TensorInfo> tensors;
  const auto add = [&](std::string name, Shape shape) {
    tensors.push_back({std::move(name), Dtype::kBF16, std::move(shape), 0, 0});
  };
  const uint64_t q = model.n_heads * model.head_dim, kv = model.n_kv_heads * model.head_dim;
  add("model.embed_tokens.weight", {model.vocab, model.hidden});
  for (uint64_t i = 0; i < model.n_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "self_attn.q_proj.weight", {q, model.hidden});
    add(layer + "self_attn.k_proj.weight", {kv, model.hidden});
    add(layer + "self_attn.v_proj.weight", {kv, model.hidden});
    add(layer + "self_attn.o_proj.weight", {model.hidden, q});
    add(layer + "self_attn.q_norm.weight", {model.head_dim});
    add(layer + "self_attn.k_norm.weight", {model.head_dim});
    add(layer + "mlp.gate_proj.weight", {model.intermediate, model.hidden});
    add(layer + "mlp.up_proj.weight", {model.intermediate, model.hidden});
    add(layer + "mlp.down_proj.weight", {model.hidden, model.intermediate});
    add(layer + "input_layernorm.weight", {model.hidden});
    add(layer + "post_attention_layernorm.weight", {model.hidden});
  }
  add("model.norm.weight", {model.hidden});
  if (!model.tied) add("lm_head.weight", {model.vocab, model.hidden});
  return tensors;
}

Result<void> write_shard(const fs::path& path, const std::vector<TensorInfo>& tensors,
                         uint64_t first_tensor, const Weights& weights, const Executor& executor) {
  const SafetensorsHeader header = SafetensorsHeader::lay_out(tensors, {{"format", "pt"}});
  DF11_ASSIGN(const File file, File::create(path));
  const std::string head = header.serialize();
  DF11_TRY(file.write_exact(as_bytes(head), 0));
  for (size_t t = 0; t < header.tensors().size(); ++t) {
    const TensorInfo& info = header.tensors()[t];
    const bool norm = info.shape.size() == 1;
    const uint64_t n_columns = info.shape.back(), n_rows = info.n_elements() / n_columns;
    const uint64_t rows_at_once = std::max<uint64_t>(1, (uint64_t{1} << 19) / n_columns);
    DF11_TRY(executor.for_each(ceil_div(n_rows, rows_at_once), [&](size_t i) -> Result<void> {
      const uint64_t begin = i * rows_at_once, end = std::min(n_rows, begin + rows_at_once);
      std::vector<uint16_t> words((end - begin) * n_columns);
      for (uint64_t row = begin; row < end; ++row) {
        weights.fill_row(first_tensor + t, row, norm,
                         std::span(words).subspan((row - begin) * n_columns, n_columns));
      }
      return file.write_exact(
          {reinterpret_cast<const uint8_t*>(words.data()), 2 * words.size()},
          header.data_offset_bytes() + info.begin_bytes + 2 * begin * n_columns);
    }));
  }
  return {};
}

Result<void> make_checkpoint(const fs::path& output, const Model& model, const Executor& executor) {
  std::error_code error;
  if (fs::exists(output, error)) {
    return fail(Error{ErrorCode::already_exists, "the output exists", output.string(), {}, {}});
  }
  DF11_TRY(make_directories(output));
  std::vector<std::vector<TensorInfo>> shards(1);
  uint64_t shard_bytes = 0, total_bytes = 0;
  for (TensorInfo& tensor : tensors_of(model)) {
    const uint64_t n_bytes = *tensor_bytes(tensor.dtype, tensor.shape);
    if (shard_bytes != 0 && shard_bytes + n_bytes > model.max_shard_bytes) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    shard_bytes += n_bytes;
    total_bytes += n_bytes;
    shards.back().push_back(std::move(tensor));
  }

  const Weights weights(model.seed);
  Json weight_map = Json::object();
  uint64_t first_tensor = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    DF11_TRY(write_shard(output / (shards.size() == 1 ? "model.safetensors" : name), shards[i],
                         first_tensor, weights, executor));
    for (const TensorInfo& tensor : shards[i]) json_append(weight_map, tensor.name, name);
    first_tensor += shards[i].size();
  }
  if (shards.size() > 1) {
    const Json index = {{"metadata", {{"total_size", total_bytes}}},
                        {"weight_map", std::move(weight_map)}};
    DF11_TRY(write_text_file(output / "model.safetensors.index.json", index.dump(2) + "\n"));
  }
  const Json config = {{"architectures", {"Qwen3ForCausalLM"}},
                       {"attention_bias", false},
                       {"attention_dropout", 0.0},
                       {"bos_token_id", 0},
                       {"eos_token_id", 1},
                       {"head_dim", model.head_dim},
                       {"hidden_act", "silu"},
                       {"hidden_size", model.hidden},
                       {"initializer_range", 0.02},
                       {"intermediate_size", model.intermediate},
                       {"max_position_embeddings", 4096},
                       {"model_type", "qwen3"},
                       {"num_attention_heads", model.n_heads},
                       {"num_hidden_layers", model.n_layers},
                       {"num_key_value_heads", model.n_kv_heads},
                       {"rms_norm_eps", 1e-06},
                       {"rope_theta", 1000000},
                       {"tie_word_embeddings", model.tied},
                       {"torch_dtype", "bfloat16"},
                       {"use_cache", true},
                       {"vocab_size", model.vocab}};
  DF11_TRY(write_text_file(output / "config.json", config.dump(2) + "\n"));
  DF11_TRY(write_text_file(
      output / "generation_config.json",
      "{\n  \"bos_token_id\": 0,\n  \"eos_token_id\": 1,\n  \"do_sample\": false\n}\n"));
  Json vocabulary = Json::object();
  for (uint64_t i = 0; i < std::min<uint64_t>(model.vocab, 4096); ++i) {
    json_append(vocabulary, "t" + std::to_string(i), i);
  }
  const Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", Json::array()},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocabulary)}, {"unk_token", "t0"}}}};
  DF11_TRY(write_text_file(output / "tokenizer.json", tokenizer.dump(1) + "\n"));
  return write_text_file(
      output / "tokenizer_config.json",
      "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"eos_token\": \"t1\"\n}\n");
}

int run(int argc, char** argv) {
  CLI::App app("Write a Qwen3-shaped BF16 checkpoint with trained-like random weights.");
  Model model;
  std::string output;
  app.add_option("OUTPUT", output, "directory to create")->required();
  app.add_option("--layers", model.n_layers)->capture_default_str();
  app.add_option("--hidden", model.hidden)->capture_default_str();
  app.add_option("--intermediate", model.intermediate)->capture_default_str();
  app.add_option("--vocab", model.vocab)->capture_default_str();
  app.add_option("--heads", model.n_heads)->capture_default_str();
  app.add_option("--kv-heads", model.n_kv_heads)->capture_default_str();
  app.add_option("--head-dim", model.head_dim)->capture_default_str();
  app.add_flag("--tied", model.tied, "no lm_head: it shares the embedding");
  app.add_option("--seed", model.seed)->capture_default_str();
  app.add_option("--max-shard-bytes", model.max_shard_bytes)->capture_default_str();
  if (const auto exit_code = cli::parse(app, argc, argv)) return *exit_code;
  const Executor executor(0, &cli::cancel_on_signals());
  const Result<void> made = make_checkpoint(output, model, executor);
  return made ? cli::kExitGood : cli::report_error("df11-make-checkpoint", made.error());
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("df11-make-checkpoint", [&] { return run(argc, argv); });
}
