"""Our safetensors headers against the safetensors package.

1. What we write the package reads, and writing the same tensors with it gives the same bytes.
2. Whatever header we accept the package accepts, with as many tensors: over tests/malformed, and over
   thousands of seeded mutations of valid headers.
"""

import argparse
import ctypes
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

# What TensorSpec calls a dtype. F6 has no name there: the package can only read it.
SPEC_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32",
    "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16",
    "F32": "float32", "F64": "float64", "C64": "complex64", "F4": "float4_e2m1fn_x2",
    "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
# Refused by us, accepted by the package: stricter on purpose, since what a duplicate or an unknown key
# means is for nobody to guess, and the format asks for a first byte of {. Any other file of tests/malformed the package must refuse too.
STRICTER = {
    "json_begins_with_space", "metadata_key_twice", "metadata_null", "shape_rank_65", "tensor_unknown_key",
}
N_MUTATIONS = 20_000
# Mutations that few accept test little: at least so many must be accepted by us.
LEAST_ACCEPTED = 500


def rewritten(content):
    """The same tensors and metadata, written by the package."""
    tensors = safetensors.deserialize(content)
    keep = []
    specs = {}
    for name, tensor in tensors:
        buffer = ctypes.create_string_buffer(bytes(tensor["data"]), max(1, len(tensor["data"])))
        keep.append(buffer)
        shape = list(tensor["shape"])
        if tensor["dtype"] == "F4" and shape:
            shape[-1] //= 2  # torch's packed type: two to an element
        specs[name] = safetensors.TensorSpec(dtype=SPEC_DTYPES[tensor["dtype"]], shape=shape,
                                             data_ptr=ctypes.addressof(buffer), data_len=len(tensor["data"]))
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        file.write(content)
        file.flush()
        with safetensors.safe_open(file.name, framework="np") as opened:
            metadata = opened.metadata()
    return bytes(safetensors.serialize(specs, metadata=metadata))


def check_written(program, problems):
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        subprocess.run([program, root], check=True)
        paths = sorted(root.iterdir())
        for path in paths:
            content = path.read_bytes()
            if path.stem == "six_bits":
                read = {name: tensor["dtype"] for name, tensor in safetensors.deserialize(content)}
                if sorted(set(read.values())) != ["F6_E2M3", "F6_E3M2"]:
                    problems.append(f"{path.stem}: read as {read}")
            elif rewritten(content) != content:
                problems.append(f"{path.stem}: the package writes other bytes")
        check_frameworks(root, problems)
        print(f"wrote and compared {len(paths)} files")


def running_bytes(n):
    return (np.arange(n) % 256).astype(np.uint8)


def check_frameworks(root, problems):
    """Through the public writers, in case they add something to what serialize() writes."""
    # As in safetensors_dump.cpp: the data is a running byte counter.
    data = running_bytes(8)
    scalars = {"scalar": data[0:4].view(np.float32).reshape(()), "one": data[0:4].view(np.float32).reshape(1, 1, 1)}
    scalars["one"], scalars["scalar"] = scalars["one"], data[4:8].view(np.float32).reshape(())
    if safetensors.numpy.save(scalars) != (root / "rank_0.safetensors").read_bytes():
        problems.append("rank_0: safetensors.numpy.save writes other bytes")
    weights = torch.from_numpy(running_bytes(6)).view(torch.bfloat16)
    for i in range(8):
        name = "x" * (i + 1)
        if safetensors.torch.save({name: weights}) != (root / f"padding_{i}.safetensors").read_bytes():
            problems.append(f"padding_{i}: safetensors.torch.save writes other bytes")


def package_accepts(content):
    """Number of tensors, or None when the package refuses."""
    try:
        return len(safetensors.deserialize(content))
    except safetensors.SafetensorError:
        return None


def probe(program, contents):
    with tempfile.NamedTemporaryFile() as records:
        for content in contents:
            records.write(struct.pack("<Q", len(content)) + content)
        records.flush()
        lines = subprocess.run([program, records.name], check=True, capture_output=True).stdout.splitlines()
    if len(lines) != len(contents):
        raise SystemExit(f"{program} answered {len(lines)} of {len(contents)} times")
    return [int(line.split()[1]) if line.startswith(b"accepted") else None for line in lines]


def seeds():
    def tensor(name, dtype="U8", shape="[2]", begin=0, end=2):
        return '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (name, dtype, shape, begin, end)

    a, b = tensor("a"), tensor("b", "BF16", "[1,2]", 2, 6)
    empty = tensor("e", "F32", "[0,7]", 2, 2)
    meta = '"__metadata__":{"format":"pt","k":"v"}'
    four = tensor("f", "F4", "[6]", 0, 3)
    return [("{%s}" % ",".join(parts), n) for parts, n in (
        ((a,), 2), ((a, b), 6), ((b, a), 6), ((meta, a, b), 6), ((a, empty, b), 6), ((meta,), 0), ((four,), 3),
        ((tensor("é\\n\\u00e9", "I64", "[]", 0, 8),), 8))]


TOKENS = ["{", "}", "[", "]", ",", ":", '"', "0", "1", "2", "-", ".", "e", "null", "true", '"U8"', '"F4"', '"BF16"',
          '"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', "[]", "{}", "[0,0]", '"a"', " ", "\n", "\0", "\x7f",
          "\\", "\\u0000", "\\ud83d\\ude00", "18446744073709551615", "é", "\ufeff", "//", "/**/"]


def mutate(rng, header, n_data):
    content = bytearray(header.encode())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            content[at:at + rng.randrange(1, 4)] = b""
        elif kind == 1:
            content[at:at] = rng.choice(TOKENS).encode()
        elif kind == 2:
            content[at:at + 1] = rng.choice(TOKENS).encode()
        elif kind == 3 and at < len(content):
            content[at] = rng.randrange(256)
        elif kind == 4:
            content += rng.choice((b" ", b"\n", b"\t\r ", b"\0", b"x", b"{}"))
        else:
            end = min(len(content), at + rng.randrange(30))
            content[at:at] = content[at:end]
        if not content:
            content = bytearray(b"{")
    n_data += rng.choice((0, 0, 0, 0, 1, -1))
    return struct.pack("<Q", len(content)) + bytes(content) + bytes(max(0, n_data))


def check_accepted(program, malformed, problems):
    paths = sorted(malformed.glob("*.safetensors"))
    if len(paths) < 50:
        problems.append(f"only {len(paths)} files in {malformed}")
    for path, ours in zip(paths, probe(program, [p.read_bytes() for p in paths])):
        theirs = package_accepts(path.read_bytes())
        if ours is not None:
            problems.append(f"{path.stem}: accepted by us")
        if (theirs is not None) != (path.stem in STRICTER):
            problems.append(f"{path.stem}: the package {'refuses' if theirs is None else 'accepts'} it")

    rng = random.Random(1)
    contents = [struct.pack("<Q", len(h.encode())) + h.encode() + bytes(n) for h, n in seeds()]
    n_seeds = len(contents)
    for _ in range(N_MUTATIONS):
        contents.append(mutate(rng, *rng.choice(seeds())))
    answers = probe(program, contents)
    if None in answers[:n_seeds]:
        problems.append("a valid header is refused")
    n_accepted = 0
    for content, ours in zip(contents, answers):
        if ours is None:
            continue
        n_accepted += 1
        theirs = package_accepts(content)
        if theirs != ours:
            problems.append(f"accepted by us with {ours} tensors, by the package with {theirs}: {content[8:]!r}")
    print(f"{n_accepted} of {len(contents)} mutated headers accepted")
    if n_accepted < LEAST_ACCEPTED:
        problems.append("too few mutations are accepted")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--safetensors-dump", required=True)
    parser.add_argument("--header-probe", required=True)
    parser.add_argument("--malformed", required=True, type=pathlib.Path)
    args = parser.parse_args()
    problems = []
    check_written(args.safetensors_dump, problems)
    check_accepted(args.header_probe, args.malformed, problems)
    for problem in problems:
        print("FAILED", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
