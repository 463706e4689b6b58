"""Upstream's encoder, as published: dfloat11_utils.py of the installed package dfloat11 0.5.0.

The module is loaded by its path: dfloat11/__init__.py would import cupy. Nothing in it is changed;
what upstream's compress_model does with it is in encode_group().
"""

import importlib.metadata
import pathlib
import types
import warnings

import numpy as np
import torch

TENSORS = ("luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps", "split_positions")
BYTES_PER_THREAD, THREADS_PER_BLOCK = 8, 512  # compress_model's constants
VERSIONS = {"dfloat11": "0.5.0", "dahuffman": "0.4.2"}


def utils_path():
    for package, version in VERSIONS.items():
        found = importlib.metadata.version(package)
        if found != version:
            raise SystemExit(f"{package} is {found}, these tests are about {version}")
    return pathlib.Path(importlib.metadata.distribution("dfloat11").locate_file("dfloat11/dfloat11_utils.py"))


def load(edit=lambda source: source):
    """The module, its source passed through `edit` first; prints and progress bars are dropped."""
    module = types.ModuleType("dfloat11_utils")
    path = utils_path()
    exec(compile(edit(path.read_text(encoding="utf-8")), str(path), "exec"), module.__dict__)
    module.tqdm = lambda iterable: iterable
    module.print = lambda *args: None
    return module


def replace_once(source, old, new):
    if source.count(old) != 1:
        raise SystemExit(f"upstream's source has not exactly one {old!r}")
    return source.replace(old, new)


warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
UPSTREAM = load()


def read_weights(directory):
    """The members of a group as the flat BF16 tensors that upstream takes out of a module."""
    weights = []
    while (path := directory / f"words_{len(weights)}.bin").exists():
        weights.append(torch.from_numpy(np.fromfile(path, dtype="<i2")).view(torch.bfloat16))
    return weights


def encode_group(weights, utils=UPSTREAM):
    """compress_model's steps for one module. Returns (tensors as bytes, code table, error of get_luts)."""
    _, counter = utils.get_codec(torch.cat(weights))
    codec, _, table = utils.get_32bit_codec(counter)
    encoded, other_8bits, output_positions, gaps, split_positions = utils.encode_weights(
        weights, codec, BYTES_PER_THREAD, THREADS_PER_BLOCK)
    tensors = {
        "encoded_exponent": encoded,
        "sign_mantissa": other_8bits,
        "output_positions": output_positions.view(torch.uint8),
        "gaps": gaps,
        "split_positions": split_positions,
    }
    error = None
    try:
        tensors["luts"] = utils.get_luts(table)
    except Exception as exception:  # upstream raises several kinds; the caller names the one it expects
        error = type(exception).__name__
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, table, error


def write_group(directory, tensors):
    """`tensors` as DIR/upstream/TENSOR.bin."""
    target = directory / "upstream"
    target.mkdir(exist_ok=True)
    for name, content in tensors.items():
        (target / (name + ".bin")).write_bytes(content)
