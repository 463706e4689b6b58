#!/usr/bin/env python3
"""Decodes the groups of a DF11 artifact into torch tensors on the GPU, through the C interface.

    decode_torch.py libdf11.so ARTIFACT [--source CHECKPOINT] [--limit N]

With --source, every decoded tensor is compared, word for word, with the one in the checkpoint.
"""
import argparse
import ctypes
import glob
import os
import sys

import torch
from safetensors import safe_open


class Df11:
    """The functions of df11.h that are used here."""

    def __init__(self, path):
        self.lib = lib = ctypes.CDLL(path)
        for name in ("df11_last_error", "df11_status_name", "df11_group_module", "df11_member_name"):
            getattr(lib, name).restype = ctypes.c_char_p
        for name in ("df11_n_groups", "df11_group_members"):
            getattr(lib, name).restype = ctypes.c_size_t
        for name in ("df11_group_elements", "df11_n_elements"):
            getattr(lib, name).restype = ctypes.c_uint64

    def check(self, status):
        if status != 0:
            name = self.lib.df11_status_name(status).decode()
            raise RuntimeError(f"{name}: {self.lib.df11_last_error().decode()}")


def words_of_group(df11, artifact, index, status_word):
    """A 1-d bfloat16 tensor with all words of the group, members one after the other."""
    lib = df11.lib
    group, prepared = ctypes.c_void_p(), ctypes.c_void_p()
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    df11.check(lib.df11_load_group(artifact, ctypes.c_size_t(index), ctypes.byref(group)))
    try:
        device = ctypes.c_int(torch.cuda.current_device())
        df11.check(lib.df11_prepare_cuda(group, device, stream, ctypes.byref(prepared)))
        words = torch.empty(lib.df11_n_elements(group), dtype=torch.bfloat16, device="cuda")
        groups = (ctypes.c_void_p * 1)(prepared)
        outputs = (ctypes.c_void_p * 1)(words.data_ptr())
        df11.check(lib.df11_decode_cuda(groups, outputs, ctypes.c_size_t(1),
                                        ctypes.c_void_p(status_word.data_ptr()), stream))
        torch.cuda.current_stream().synchronize()  # before the group is freed
    finally:
        lib.df11_free_cuda_group(prepared)
        lib.df11_free_group(group)
    return words


def source_tensors(directory):
    """Tensor name to the open safetensors file that holds it."""
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.safetensors"))):
        file = safe_open(path, framework="pt")
        found.update({name: file for name in file.keys()})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("artifact")
    parser.add_argument("--source")
    parser.add_argument("--limit", type=int, help="groups to decode (default: all)")
    args = parser.parse_args()

    df11 = Df11(args.library)
    lib = df11.lib
    df11.check(lib.df11_cuda_available())
    artifact = ctypes.c_void_p()
    df11.check(lib.df11_open_artifact(os.fsencode(args.artifact), ctypes.byref(artifact)))
    source = source_tensors(args.source) if args.source else {}
    status_word = torch.zeros(1, dtype=torch.int32, device="cuda")
    n_groups, n_words, n_compared, different = lib.df11_n_groups(artifact), 0, 0, []
    for index in range(n_groups if args.limit is None else min(n_groups, args.limit)):
        words = words_of_group(df11, artifact, index, status_word)
        n_words += words.numel()
        elements = (ctypes.c_uint64 * lib.df11_group_members(artifact, ctypes.c_size_t(index)))()
        df11.check(lib.df11_member_elements(artifact, ctypes.c_size_t(index), elements))
        begin = 0
        for member, count in enumerate(elements):
            name = lib.df11_member_name(artifact, ctypes.c_size_t(index), ctypes.c_size_t(member)).decode()
            mine = words[begin:begin + count]
            begin += count
            if not source:
                print(f"{name}: {count} weights")
                continue
            theirs = source[name].get_tensor(name).cuda().view(torch.int16).flatten()
            n_compared += 1
            # As integers: floats would take -0 for 0 and NaN for different.
            if not torch.equal(mine.view(torch.int16), theirs):
                different.append(name)
    lib.df11_close_artifact(artifact)
    if status_word.item() != 0:
        print(f"a group is damaged: status {status_word.item()}")
        return 1
    for name in different:
        print(f"{name}: differs from the source")
    print(f"{n_words} weights decoded, {n_compared} tensors compared, {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
