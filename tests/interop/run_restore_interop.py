"""df11-decompress beside the peers.

1. An artifact whose groups upstream's encoder wrote, several members each and no manifest: the tensors that
   df11-decompress --tensors-only writes are, read by the safetensors package, bit for bit those that were encoded.
2. The same for an artifact of ours, whose shapes config.json tells.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import safetensors.torch
import torch

import upstream_codec

HIDDEN, INTERMEDIATE, HEADS, VOCAB = 192, 640, 3, 2000
CONFIG = {"hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_attention_heads": HEADS,
          "num_key_value_heads": 1, "vocab_size": VOCAB, "model_type": "llama"}
KEY_VALUE = HIDDEN // HEADS
MEMBERS = {"self_attn.q_proj": [HIDDEN, HIDDEN], "self_attn.k_proj": [KEY_VALUE, HIDDEN],
           "self_attn.v_proj": [KEY_VALUE, HIDDEN], "self_attn.o_proj": [HIDDEN, HIDDEN],
           "mlp.gate_proj": [INTERMEDIATE, HIDDEN], "mlp.up_proj": [INTERMEDIATE, HIDDEN],
           "mlp.down_proj": [HIDDEN, INTERMEDIATE]}


def model():
    """Name -> tensor of two layers, their norms, and an embedding."""
    generator = torch.Generator().manual_seed(1)

    def weight(shape):
        return (torch.randn(shape, generator=generator) * 0.02).to(torch.bfloat16)

    tensors = {"model.embed_tokens.weight": weight([VOCAB, HIDDEN]), "lm_head.weight": weight([VOCAB, HIDDEN])}
    for layer in range(2):
        for member, shape in MEMBERS.items():
            tensors[f"model.layers.{layer}.{member}.weight"] = weight(shape)
        tensors[f"model.layers.{layer}.input_layernorm.weight"] = weight([HIDDEN])
    return tensors


def group_tensors(module, weights):
    content, _, error = upstream_codec.encode_group([weight.flatten() for weight in weights])
    if error:
        raise SystemExit(f"{module}: upstream's get_luts failed with {error}")
    tensors = {}
    for name, raw in content.items():
        tensor = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
        if name == "split_positions":
            tensor = tensor.view(torch.int64) if raw else torch.empty(0, dtype=torch.int64)
        if name == "luts":
            tensor = tensor.view(-1, 256)
        tensors[f"{module}.{name}"] = tensor
    return tensors


def write_upstream_artifact(directory, tensors):
    """As compress_model saves it: one shard a module, the rest in another; no index, no manifest."""
    directory.mkdir()
    rest = dict(tensors)
    for layer in range(2):
        module = f"model.layers.{layer}"
        shard = group_tensors(module, [rest.pop(f"{module}.{member}.weight") for member in MEMBERS])
        safetensors.torch.save_file(shard, directory / f"model_layers_{layer}.safetensors")
    for module in ("model.embed_tokens", "lm_head"):
        shard = group_tensors(module, [rest.pop(f"{module}.weight")])
        safetensors.torch.save_file(shard, directory / f"{module.replace('.', '_')}.safetensors")
    safetensors.torch.save_file(rest, directory / "model.safetensors")
    entry = {"version": "0.5.0", "threads_per_block": [512], "bytes_per_thread": 8,
             "pattern_dict": {r"model\.layers\.\d+": list(MEMBERS), r"model\.embed_tokens": [], "lm_head": []}}
    # Between other keys, as a sorted config has it.
    config = {"architectures": ["LlamaForCausalLM"], "dfloat11_config": entry, **CONFIG}
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return {key: value for key, value in config.items() if key != "dfloat11_config"}


def check_restored(what, directory, tensors, config, problems):
    restored = {}
    for path in sorted(directory.glob("*.safetensors")):
        restored.update(safetensors.torch.load_file(path))
    if sorted(restored) != sorted(tensors):
        problems.append(f"{what}: has {sorted(restored)}")
        return
    for name, tensor in tensors.items():
        other = restored[name]
        if other.dtype != tensor.dtype or other.shape != tensor.shape:
            problems.append(f"{what}: {name} is {other.dtype} {list(other.shape)}")
        elif not torch.equal(other.view(torch.int16), tensor.view(torch.int16)):
            problems.append(f"{what}: {name} has other bits")
    text = (directory / "config.json").read_text(encoding="utf-8")
    if text != json.dumps(config, indent=2) + "\n":
        problems.append(f"{what}: config.json is {text!r}")
    print(f"{what}: {len(tensors)} tensors compared")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compress", required=True)
    parser.add_argument("--decompress", required=True)
    args = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        tensors = model()
        config = write_upstream_artifact(root / "upstream", tensors)
        subprocess.run([args.decompress, root / "upstream", root / "restored", "--tensors-only", "--verify", "--quiet"],
                       check=True)
        check_restored("of upstream's", root / "restored", tensors, config, problems)

        (root / "source").mkdir()
        safetensors.torch.save_file(tensors, root / "source/model.safetensors", metadata={"format": "pt"})
        shutil.copy(root / "restored/config.json", root / "source")
        subprocess.run([args.compress, root / "source", root / "ours", "--quiet"], check=True)
        (root / "ours/df11_manifest.json").unlink()
        subprocess.run([args.decompress, root / "ours", root / "ours-restored", "--tensors-only", "--quiet"], check=True)
        check_restored("of ours", root / "ours-restored", tensors, config, problems)
        # One shard of sorted names is what was there: the very file.
        if (root / "ours-restored/model.safetensors").read_bytes() != (root / "source/model.safetensors").read_bytes():
            problems.append("of ours: model.safetensors differs from the package's")
    for problem in problems:
        print("FAILED", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
