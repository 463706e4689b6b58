"""What df11-compress writes, as the hub's and the loaders' own packages see it, offline:

1. huggingface_hub reads the model card and finds the metadata that file the repository.
2. safetensors opens every shard, and together they hold what the index says.
3. transformers reads config.json and the index as those of a sharded checkpoint.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

from huggingface_hub import ModelCard, ModelCardData  # noqa: E402
from safetensors import safe_open  # noqa: E402
import transformers  # noqa: E402
from transformers.utils.hub import get_checkpoint_shard_files  # noqa: E402

SOURCE_CARD = """---
license: other
license_name: qwen
license_link: LICENSE
language: [en, "no"]
pipeline_tag: text-generation
base_model: Org/Parent
---

# The source's own card
"""


def check(condition, message):
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def check_card(artifact):
    card = ModelCard.load(artifact / "README.md")
    data = card.data
    check(isinstance(data, ModelCardData), "the front matter is that of a model card")
    found = {key: data.get(key) for key in ("base_model", "base_model_relation", "library_name", "license",
                                            "license_name", "license_link", "language", "pipeline_tag", "tags")}
    check(found == {"base_model": ["Org/Name"], "base_model_relation": "quantized", "library_name": "dfloat11",
                    "license": "other", "license_name": "qwen", "license_link": "LICENSE", "language": ["en", "no"],
                    "pipeline_tag": "text-generation", "tags": ["dfloat11", "df11", "lossless compression"]},
          f"metadata {found}")
    check("DFloat11Model.from_pretrained" in card.text, "the card says how to load")
    kept = (artifact / "README.source.md").read_text()
    check(kept == SOURCE_CARD, "the source's card is kept")
    check(ModelCard(kept).data.base_model == "Org/Parent", "and is a card still")


def check_shards(artifact, n_parameters):
    index = json.loads((artifact / "model.safetensors.index.json").read_text())
    names, n_bytes = {}, 0
    for path in artifact.glob("*.safetensors"):
        with safe_open(path, framework="np") as shard:
            check(shard.metadata() == {"format": "pt"}, f"metadata of {path.name}")
            for name in shard.keys():
                names[name] = path.name
    with_torch = {}
    for path in artifact.glob("*.safetensors"):
        with safe_open(path, framework="pt") as shard:
            for name in shard.keys():
                with_torch[name] = shard.get_tensor(name)
    n_bytes = sum(tensor.nbytes for tensor in with_torch.values())
    check(names == index["weight_map"], "index and shards agree")
    check(index["metadata"] == {"total_parameters": n_parameters, "total_size": n_bytes}, f"{index['metadata']}")


def check_transformers(artifact):
    config = transformers.AutoConfig.from_pretrained(artifact)
    check(type(config).__name__ == "Qwen3Config", type(config).__name__)
    check(set(config.dfloat11_config) >= {"version", "pattern_dict"}, "dfloat11_config is an attribute")
    files, metadata = get_checkpoint_shard_files(str(artifact), str(artifact / "model.safetensors.index.json"))
    check(sorted(map(str, files)) == sorted(map(str, artifact.glob("*.safetensors"))), "shards by the index")
    check(metadata["total_size"] > 0 and metadata["all_checkpoint_keys"], "metadata of the index")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--compress", required=True)
    parser.add_argument("--make-checkpoint", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "source"
        subprocess.run([arguments.make_checkpoint, source, "--layers", "2", "--hidden", "128", "--vocab", "1024"],
                       check=True)
        (source / "README.md").write_text(SOURCE_CARD)
        (source / "LICENSE").write_text("terms\n")
        n_parameters = 0
        for path in source.glob("*.safetensors"):
            with safe_open(path, framework="pt") as shard:
                n_parameters += sum(shard.get_tensor(name).numel() for name in shard.keys())
        for name, options in {"blocks": [], "merged": ["--max-shard-size", "500KB"]}.items():
            artifact = pathlib.Path(directory) / name
            subprocess.run([arguments.compress, source, artifact, "--base-model", "Org/Name", "--quiet", *options],
                           check=True)
            check_card(artifact)
            check_shards(artifact, n_parameters)
            check_transformers(artifact)
            n_shards = len(list(artifact.glob("*.safetensors")))
            check(n_shards > 1, "several shards")
            print(f"{name}: card, {n_shards} shards, index and config are read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
