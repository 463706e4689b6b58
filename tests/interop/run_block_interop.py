"""df11-compress --granularity block writes what upstream's compress_model writes, byte for byte.

Tiny models of several families, built by transformers from a config with seeded weights, are saved, and
compressed by both from the same directory: upstream with the pattern_dict that it published for the family,
df11-compress without one, and once more with that as --pattern-dict. Compared are the set of shards, every
shard, and the pattern_dict in config.json; df11-verify then reads upstream's directory.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

import upstream_model

SIZES = dict(hidden_size=64, intermediate_size=160, num_attention_heads=4, num_key_value_heads=2,
             num_hidden_layers=2, vocab_size=384, max_position_embeddings=64, pad_token_id=0)
# Name -> (config, published pattern_dict).
MODELS = {
    "qwen3": (transformers.Qwen3Config(head_dim=16, tie_word_embeddings=False, **SIZES), "qwen3-8b"),
    "qwen3 tied": (transformers.Qwen3Config(head_dim=16, tie_word_embeddings=True, **SIZES), "qwen3-4b (tied)"),
    "llama": (transformers.LlamaConfig(tie_word_embeddings=False, **SIZES), "qwen3-8b"),
    "qwen2 with biases": (transformers.Qwen2Config(tie_word_embeddings=False, **SIZES), "qwen3-8b"),
    "mistral": (transformers.MistralConfig(tie_word_embeddings=False, **SIZES), "llama-3.3-70b (escaped dots)"),
    "phi-4": (transformers.Phi3Config(tie_word_embeddings=False, **SIZES), "phi-4"),
    "gemma-3": (
        transformers.Gemma3Config(
            text_config=dict(SIZES, head_dim=16, sliding_window=32),
            vision_config=dict(hidden_size=32, intermediate_size=64, num_attention_heads=2, num_hidden_layers=1,
                               image_size=28, patch_size=14),
            mm_tokens_per_image=4),
        "gemma-3 (tied)"),
}


def build(config):
    torch.manual_seed(11)
    class_name = "Gemma3ForConditionalGeneration" if config.model_type == "gemma3" else None
    if class_name:
        model = getattr(transformers, class_name)(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():  # rows of different scales, as trained matrices have
        scale = torch.exp(torch.randn(parameter.shape[0], *[1] * (parameter.dim() - 1)))
        parameter.data.copy_(torch.randn_like(parameter) * scale * 0.02)
    return model.to(torch.bfloat16).eval()


def shards(directory):
    return {path.name: path.read_bytes() for path in directory.glob("*.safetensors")}


def compare(ours, theirs, problems):
    """Directories of one model: the same shards, the same pattern_dict. Returns the number of shards."""
    expected, got = shards(theirs), shards(ours)
    if expected.keys() != got.keys():
        problems.append(f"{ours.name}: shards {sorted(got)}, upstream has {sorted(expected)}")
    for name in expected.keys() & got.keys():
        if expected[name] != got[name]:
            problems.append(f"{ours.name}: {name} differs from upstream's")
    entries = [json.loads((d / "config.json").read_text())["dfloat11_config"] for d in (ours, theirs)]
    if entries[0] != entries[1]:
        problems.append(f"{ours.name}: dfloat11_config is {entries[0]}, upstream's {entries[1]}")
    return len(expected)


def run(name, config, pattern_dict, args, root, problems):
    source, theirs = root / "source", root / "upstream"
    build(config).save_pretrained(source)
    model = getattr(transformers, json.loads((source / "config.json").read_text())["architectures"][0])
    upstream_model.compress_model(
        model.from_pretrained(source, torch_dtype=torch.bfloat16), copy.deepcopy(pattern_dict), theirs)

    pattern_file = root / "pattern_dict.json"
    pattern_file.write_text(json.dumps(pattern_dict))
    for ours, options in ((root / "block", ["--granularity", "block"]),
                          (root / "patterns", ["--pattern-dict", str(pattern_file)])):
        subprocess.run([args.compress, source, ours, "--quiet", *options], check=True)
        n_shards = compare(ours, theirs, problems)
        subprocess.run([args.verify, ours, "--source", source, "--quiet"], check=True)
    verified = subprocess.run([args.verify, theirs, "--source", source, "--json", "--ignore", "*.json"],
                              capture_output=True, text=True)
    print(f"{name}: {n_shards} shards compared; df11-verify of upstream's directory: exit {verified.returncode}")
    if verified.returncode != 0:
        problems.append(f"{name}: df11-verify of upstream's directory: {verified.stdout} {verified.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compress", required=True)
    parser.add_argument("--verify", required=True)
    parser.add_argument("--published", required=True, help="published_pattern_dicts.json")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    published = json.loads(pathlib.Path(args.published).read_text())
    problems = []
    for name, (config, patterns) in MODELS.items():
        with tempfile.TemporaryDirectory() as directory:
            run(name, config, published[patterns]["pattern_dict"], args, pathlib.Path(directory), problems)
    for problem in problems:
        print("FAILED", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
