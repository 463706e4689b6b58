"""Upstream's compress_model, as published: dfloat11.py of the installed package dfloat11 0.5.0.

What it imports for running models on a GPU is replaced while it loads: cupy by a stand-in, accelerate by
an empty one. Nothing in the module is changed.
"""

import contextlib
import importlib
import io
import pathlib
import sys
import types
import warnings

import torch
import transformers  # noqa: F401  looks for accelerate: before the stand-ins are there

import upstream_codec


def stand_in(name, **attributes):
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    return module


def load():
    raw_module = types.SimpleNamespace(get_function=lambda name: None)
    stand_ins = {
        "cupy": stand_in("cupy", RawModule=lambda path: raw_module),
        "accelerate": stand_in("accelerate", infer_auto_device_map=None, dispatch_model=None),
        "accelerate.utils": stand_in("accelerate.utils", get_balanced_memory=None),
        "pkg_resources": stand_in("pkg_resources", resource_filename=lambda package, name: name),
    }
    upstream_codec.utils_path()  # checks versions
    replaced = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        module = importlib.import_module("dfloat11.dfloat11")
    finally:
        for name, original in replaced.items():
            if original is None:
                del sys.modules[name]
            else:
                sys.modules[name] = original
    sys.modules["dfloat11.dfloat11_utils"].tqdm = lambda iterable: iterable
    sys.modules["dahuffman.huffmancodec"].PrefixCodec.print_code_table = lambda codec: None
    return module


UPSTREAM = load()


def compress_model(model, pattern_dict, directory):
    """A directory with a shard for each matched module, as upstream publishes; its prints are dropped."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        UPSTREAM.compress_model(model, pattern_dict, str(directory), save_single_file=False, check_correctness=False)
    return pathlib.Path(directory)
