"""What the loader lint says of an artifact is what upstream's loader does with it.

load_and_replace_tensors of the installed package, unchanged, loads artifacts of a small model on the CPU; only
what it imports for a GPU is replaced. Each case damages a fresh artifact in one way.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
from unittest import mock

import torch
from safetensors.torch import load_file, save_file
from torch import nn

GPU_MODULES = ("cupy", "accelerate", "accelerate.utils", "huggingface_hub", "pkg_resources")
LAYER = "layers_0.safetensors"


def upstream_loader():
    """load_and_replace_tensors, with stand-ins for the packages that need a GPU or a network."""
    path = pathlib.Path(importlib.metadata.distribution("dfloat11").locate_file("dfloat11/dfloat11.py"))
    package = types.ModuleType("dfloat11")
    package.__path__ = [str(path.parent)]
    for name in GPU_MODULES:
        sys.modules[name] = mock.MagicMock()
    sys.modules["dfloat11"] = package
    module = types.ModuleType("dfloat11.dfloat11")
    module.__package__ = "dfloat11"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    module.tqdm = lambda iterable, **_: iterable
    return module.load_and_replace_tensors


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64, bias=False)
        self.up = nn.Linear(64, 96, bias=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer()])
        self.final = nn.LayerNorm(64, bias=False)


class Case:
    """A fresh artifact of `source`, without a manifest, whose hashes are not the matter here."""

    def __init__(self, arguments, source, directory, load):
        self.arguments, self.source, self.directory, self.load = arguments, source, directory, load
        subprocess.run([arguments.compress, directory / "source", directory / "artifact", "--quiet", "--force"], check=True)
        (self.artifact / "df11_manifest.json").unlink()

    @property
    def artifact(self):
        return self.directory / "artifact"

    def edit_shard(self, edit, name=LAYER):
        tensors = load_file(self.artifact / name)
        edit(tensors)
        save_file(tensors, self.artifact / name)

    def edit_patterns(self, edit):
        path = self.artifact / "config.json"
        config = json.loads(path.read_text())
        edit(config["dfloat11_config"]["pattern_dict"])
        path.write_text(json.dumps(config))

    def lint(self):
        done = subprocess.run([self.arguments.verify, self.artifact, "--level", "structure", "--lint", "--json"],
                              stdout=subprocess.PIPE, text=True, check=False)
        return [f"{finding['severity']} {finding['rule']}" for finding in json.loads(done.stdout)["lint"]]

    def outcome(self):
        """How loading ends: an exception's name, "other weights", or "good"."""
        torch.manual_seed(0)
        model = Model().to(torch.bfloat16)
        config = json.loads((self.artifact / "config.json").read_text())["dfloat11_config"]
        try:
            self.load(model, str(self.artifact), config)
        except Exception as error:  # whatever upstream raises
            return type(error).__name__
        layer, wanted = model.layers[0], self.source.layers[0]
        coded = bool(layer.up._forward_pre_hooks) and not isinstance(getattr(layer.up, "weight", None), nn.Parameter)
        same = torch.equal(layer.norm.weight, wanted.norm.weight)
        return "good" if coded and same else "other weights"


CASES = {
    "nothing": (lambda case: None, [], "good"),
    "two patterns": (lambda case: case.edit_patterns(lambda p: p.update({"layers.0.up": []})),
                     ["error several_patterns"], "AttributeError"),
    "stray shard": (lambda case: save_file({"other": torch.zeros(4)}, case.artifact / "stray.safetensors"),
                    ["error stray_shard", "warning verbatim_converted"], "good"),
    "stray directory": (lambda case: os.mkdir(case.artifact / "directory.safetensors"),
                        ["error stray_shard"], "OSError"),
    "missing weight": (lambda case: (case.edit_shard(lambda t: t.pop("layers.0.norm.weight")),
                                     case.edit_patterns(lambda p: p.update({"layers.0": ["norm"]}))),
                       ["error weight_missing"], "other weights"),
    "member stored twice": (lambda case: case.edit_shard(lambda t: t.update({"layers.0.up.weight": torch.zeros(
        96, 64, dtype=torch.bfloat16)})), ["warning member_also_verbatim"], "good"),
    "name of a part": (lambda case: case.edit_shard(lambda t: t.update({"layers.0.norm.output_positions": torch.zeros(
        8, dtype=torch.uint8)})), ["warning reserved_name"], "good"),
    "name of a part, odd size": (lambda case: case.edit_shard(lambda t: t.update({
        "layers.0.norm.output_positions": torch.zeros(3, dtype=torch.uint8)})), ["error reserved_name"], "RuntimeError"),
    "pattern without group": (lambda case: case.edit_patterns(lambda p: p.update({"final": []})),
                              ["warning pattern_without_group"], "good"),
    "pattern of nothing": (lambda case: case.edit_patterns(lambda p: p.update({"lm_head": []})),
                           ["warning pattern_unused"], "good"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compress", required=True)
    parser.add_argument("--verify", required=True)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    source = Model()
    for parameter in source.parameters():
        nn.init.normal_(parameter, std=0.02)
    source = source.to(torch.bfloat16)
    load = upstream_loader()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "source").mkdir()
        save_file(source.state_dict(), directory / "source/model.safetensors")
        (directory / "source/config.json").write_text('{"model_type": "none"}')
        for title, (damage, rules, outcome) in CASES.items():
            case = Case(arguments, source, directory, load)
            damage(case)
            found = (sorted(case.lint()), case.outcome())
            good = found == (sorted(rules), outcome)
            failures += not good
            print(f"{'ok  ' if good else 'FAIL'} {title}: {found[0]}, upstream: {found[1]}")
    print(f"{len(CASES)} cases, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
