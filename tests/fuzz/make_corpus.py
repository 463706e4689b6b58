"""Writes the hand-made inputs of tests/fuzz/corpus. Each target's file says how its input is read.

    python3 tests/fuzz/make_corpus.py
"""
import json
import os
import random
import struct

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(target, name, data):
    path = os.path.join(CORPUS, target, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def header(name, tensors, data_bytes):
    text = tensors if isinstance(tensors, str) else json.dumps(tensors, separators=(",", ":"))
    write("safetensors_header", name, struct.pack("<Q", data_bytes) + text.encode())


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors_headers():
    header("empty", {}, 0)
    header("two_tensors", {"__metadata__": {"format": "pt"}, "a": tensor("BF16", [2, 3], 0, 12),
                           "b": tensor("I64", [1], 12, 20)}, 20)
    header("empty_tensors_share_an_offset",
           {"a": tensor("U8", [0], 0, 0), "b": tensor("U8", [0, 5], 0, 0), "c": tensor("U8", [1], 0, 1)}, 1)
    header("rank_0", {"a": tensor("F64", [], 0, 8)}, 8)
    header("half_bytes", {"a": tensor("F4", [2], 0, 1), "b": tensor("F6_E2M3", [4], 1, 4)}, 4)
    header("hole", {"a": tensor("U8", [1], 1, 2)}, 2)
    header("overflowing_shape", {"a": tensor("U8", [1 << 63, 4, 0], 0, 0)}, 0)
    header("size_of_2_to_63", {"a": tensor("U8", [1 << 63], 0, 1 << 63)}, 1 << 63)
    header("escaped_names", {"\u00e9\u0001\"\\": tensor("BOOL", [1], 0, 1)}, 1)
    header("duplicate_name", '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                             '"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}', 0)
    header("deep", '{"a":' * 100, 0)
    header("float_offsets", '{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}', 1)


def shard_indexes():
    def index(name, weight_map):
        write("shard_index", name, json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    index("empty", {})
    index("two_shards", {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"})
    index("parent_directory", {"a": "../model.safetensors"})
    index("absolute", {"a": "/etc/model.safetensors"})
    index("backslash", {"a": "..\\model.safetensors"})
    index("nul", {"a": "a\0.safetensors"})
    index("only_suffix", {"a": ".safetensors"})
    index("number", {"a": 1})
    write("shard_index", "duplicate_tensor", '{"weight_map":{"a":"a.safetensors","a":"b.safetensors"}}')
    write("shard_index", "no_map", "{}")


def configs():
    def config(name, pattern_dict, **others):
        entry = {"version": "0.5.0", "threads_per_block": [512], "bytes_per_thread": 8,
                 "pattern_dict": pattern_dict}
        write("df11_config", name, json.dumps({"model_type": "qwen3", "dfloat11_config": {**entry, **others}}))
    config("per_tensor", {r"model\.layers\.\d+\.mlp\.up_proj": [], "lm_head": []})
    config("per_block", {r"model\.layers\.\d+": ["self_attn.q_proj", "mlp.up_proj"], "lm_head": []})
    config("possessive", {r"(?!x)transformer_blocks\.\d++\.attn": ["to_q"]})
    config("backtracking", {"(a+)+[bc]": [], "(a|aa)+$b": [], "((a*)*)*b": []})
    config("recursion", {"(?R)?a": [], "(a(?1)?)b": []})
    config("large_repeats", {"(((a{1,999}){1,999}){1,999})b": []})
    config("lookbehind_and_unicode", {"(?<=a)b|\\p{L}+\\.\u20ac\\.\\d": ["\u00e9"]})
    config("verbs", {"(*LIMIT_MATCH=4000000000)(a+)+b": [], "(*NO_JIT)a(*ACCEPT)": []})
    config("other_geometry", {}, bytes_per_thread=16)
    config("geometry_of_floats", {}, threads_per_block=[512.0], bytes_per_thread=8.0)
    write("df11_config", "plain", '{\n  "model_type": "qwen3"\n}\n')
    write("df11_config", "empty_object", " {\t}")
    write("df11_config", "array", "[1, 2.5e300, -0.0, null]")
    write("df11_config", "numbers", '{"a": 1e999, "b": 18446744073709551616, "c": -9223372036854775808}')
    write("df11_config", "braces_in_strings", '{"a": "}{", "b": {"c": [{}]} }  ')


def manifests():
    zero128, zero256 = "0" * 32, "0" * 64
    base = {
        "format": "df11-manifest", "format_version": 1, "tool": {"name": "df11-compress", "version": "0.1.0"},
        "settings": {"granularity": "tensor"},
        "source_files": [{"path": "model.safetensors", "size_bytes": 10, "sha256": zero256}],
        "omitted_files": ["a.bin"],
        "files": [{"path": "l_0.safetensors", "size_bytes": 10, "sha256": zero256}],
        "groups": [{"module": "l.0", "file": "l_0.safetensors", "elements": 1, "code_bytes": 1, "stored_bytes": 900,
                    "exponent_entropy_bits": 2.5, "longest_code_bits": 3, "code_rule": "huffman"}],
        "tensors": [{"name": "l.0.weight", "dtype": "BF16", "shape": [1], "source_file": "model.safetensors",
                     "xxh3_128": zero128, "group": "l.0"}],
        # "{}" as a zstd frame.
        "restore": [{"path": "config.json", "size_bytes": 2, "zstd_hex": "28b52ffd04581100007b7dd194f27a"}],
    }

    def manifest(name, **changes):
        text = json.dumps({**base, **changes}, indent=1)
        write("manifest", name, text[:-2])  # the seal brings the end
    manifest("complete")
    manifest("nothing_listed", source_files=[], omitted_files=[], files=[], groups=[], tensors=[], restore=[])
    manifest("parent_directory", files=[{"path": "../x", "size_bytes": 1, "sha256": zero256}])
    manifest("later_version", format_version=2)
    manifest("frame_that_declares_more", restore=[{"path": "a", "size_bytes": 1 << 62, "zstd_hex": "28b52ffd"}])
    manifest("frame_is_damaged", restore=[{"path": "a", "size_bytes": 2, "zstd_hex": "28b52ffd04581100007b7cd194f27a"}])
    manifest("shape_overflows", tensors=[{**base["tensors"][0], "shape": [1 << 63, 2]}])
    manifest("numbers_at_limits", groups=[{**base["groups"][0], "elements": (1 << 64) - 1,
                                           "exponent_entropy_bits": 1e308}])
    # Found: came back negative.
    manifest("code_length_beyond_int", groups=[{**base["groups"][0], "longest_code_bits": 1 << 40}])
    write("manifest", "seal_only", "")


def lookup_tables():
    def tables(name, seed, rows, lengths):
        luts = b"".join(bytes(row) for row in rows) + bytes(lengths.get(i, 0) for i in range(256))
        write("lookup_tables", name, struct.pack("<I", seed) + luts)
    tables("two_codes_of_one_bit", 0, [[100] * 128 + [101] * 128], {100: 1, 101: 1})
    tables("incomplete", 1, [[100] * 64 + [0] * 192], {100: 2})
    tables("link", 0xff000000, [[100] * 255 + [255], [101] * 256], {100: 1, 101: 9})
    tables("four_levels", 0xffffffff, [[100] * 255 + [255], [100] * 255 + [254], [100] * 255 + [253],
                                       [101] * 128 + [102] * 128], {100: 1, 101: 25, 102: 32})
    tables("link_to_itself", 0xffffffff, [[100] * 255 + [255], [255] * 256], {100: 1})
    tables("sixteen_link_rows", 0xfafafafa, [list(range(240, 256)) * 16] + [[i] * 256 for i in range(16)],
           {i: 9 for i in range(16)})
    tables("symbol_of_another_level", 2, [[100] * 256], {100: 9})
    tables("length_33", 2, [[100] * 256], {100: 33})
    # A slot in the middle of a code's slots that holds another symbol.
    tables("code_with_a_hole", 0x12345678, [[100] * 60 + [101] + [100] * 67 + [102] * 128],
           {100: 1, 101: 8, 102: 1})


def words(values):
    return b"".join(struct.pack("<HB", word, count) for word, count in values)


def round_trips():
    rng = random.Random(1)

    def case(name, slice_elements, values):
        write("round_trip", name, struct.pack("<H", slice_elements - 1) + words(values))
    case("one_word", 100, [(0x3f80, 1)])
    case("zeros_of_both_signs", 100, [(0x0000, 3), (0x8000, 2), (0x0001, 1)])
    case("infinity_is_refused", 100, [(0x3f80, 1), (0x7f80, 1)])
    case("exponent_239", 100, [(239 << 7, 1), (0x3f80, 5)])
    case("constant_blocks", 5000, [(0x3f80, 255), (0x3f80, 255), (0x3f80, 255)])
    case("members_and_empty_members", 7, [(0x3f80, 9), (0, 0), (0, 0), (0x3d00, 40), (0x3c80, 3), (0, 0)])
    case("weights", 33, [(rng.choice([0, 0x8000]) | rng.choice([118, 119, 120, 120, 121, 121, 122]) << 7
                          | rng.randrange(128), 1) for _ in range(600)])
    case("all_exponents", 1000, [(exponent << 7, 1) for exponent in range(240)])
    case("long_codes", 65536, [(exponent << 7, min(255, 128 + exponent * 3)) for exponent in range(30)])
    case("slices_of_one", 1, [(0x3f80, 1), (0x3f00, 1), (0x3e00, 1), (0x3f80, 140)])


def group_decodes():
    def changed(name, seed, changes=(), geometry=0):
        write("group_decode", name, bytes([2 * geometry]) + seed.to_bytes(3, "little")
              + b"".join(bytes([what]) + at.to_bytes(3, "little") + bytes([value]) for what, at, value in changes))
    for geometry in range(5):
        changed(f"intact_geometry_{geometry}", 10 + geometry, geometry=geometry)
    changed("bit_of_luts", 3, [(0, 5, 3)])
    changed("bit_of_stream", 3, [(1, 7, 3)])
    changed("sign_of_a_weight", 3, [(2, 0, 7)])
    changed("bit_of_gaps", 3, [(3, 2, 1)])
    changed("bit_of_positions", 4, [(4, 4, 0)])
    changed("stream_cut", 5, [(21, 0, 9)])
    changed("stream_longer", 5, [(26, 0x5a, 9)])
    changed("positions_of_less_than_one", 3, [(24, 0, 255)])
    changed("weights_fewer", 6, [(22, 0, 1)])
    changed("weights_more", 6, [(27, 0, 200)])

    def fitted(name, rows, lengths, n, stream):
        luts = b"".join(bytes(row) for row in rows) + bytes(lengths.get(i, 0) for i in range(256))
        write("group_decode", name, bytes([1, len(rows) - 1]) + luts + struct.pack("<H", n - 1) + stream)
    rng = random.Random(2)
    fitted("fitted_two_codes", [[100] * 128 + [101] * 128], {100: 1, 101: 1}, 3000, rng.randbytes(300))
    fitted("fitted_hole_in_a_code", [[100] * 60 + [101] + [100] * 67 + [102] * 128],
           {100: 1, 101: 8, 102: 1}, 3000, rng.randbytes(300))
    fitted("fitted_lengths_that_are_no_prefix_code", [[i % 7 for i in range(256)]],
           {i: 1 + i for i in range(7)}, 3000, rng.randbytes(900))
    fitted("fitted_links", [[i % 5 for i in range(240)] + [255] * 16, [5 + i % 3 for i in range(256)]],
           {**{i: 3 + i for i in range(5)}, 5: 9, 6: 13, 7: 16}, 5000, rng.randbytes(1200))


def verifies():
    def changes(name, mode, *list_of_changes):
        write("verify", name, bytes([mode]) + b"".join(
            bytes([file, kind]) + at.to_bytes(3, "little") + bytes([value]) for file, kind, at, value in list_of_changes))
    for mode, measure in enumerate(["manifest", "source"]):
        changes(f"intact_{measure}", mode)
        for file in range(4 if mode else 5):
            changes(f"bit_of_file_{file}_{measure}", mode, (file, 0, 100, 3))
            changes(f"truncated_file_{file}_{measure}", mode, (file, 3, 900, 0))
        changes(f"sign_of_a_weight_{measure}", mode, (2 - mode, 0, 4000, 7))
        changes(f"swapped_bytes_{measure}", mode, (2, 2, 3000, 5))
        changes(f"inserted_byte_{measure}", mode, (2, 4, 3000, 0))
        changes(f"twice_the_same_bit_{measure}", mode, (2, 0, 2000, 3), (2, 0, 2000, 3))


if __name__ == "__main__":
    safetensors_headers()
    shard_indexes()
    configs()
    manifests()
    lookup_tables()
    round_trips()
    group_decodes()
    verifies()
