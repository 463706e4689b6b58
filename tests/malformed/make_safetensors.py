"""Writes safetensors/*.safetensors: one file per defect, named for it. Run once; the files are kept.

The C++ test pins the message for each; the interop test shows them to the safetensors package.
"""

import pathlib
import struct

OUT = pathlib.Path(__file__).parent / "safetensors"


def t(dtype='"U8"', shape="[2]", offsets="[0,2]"):
    return '{"dtype":%s,"shape":%s,"data_offsets":%s}' % (dtype, shape, offsets)


def one(**fields):
    return '{"a":%s}' % t(**fields)


GOOD = one()
# name: header as text or bytes, bytes of data, declared length of the header (None: the true one)
HEADERS = {
    "json_not_closed": ('{"a":', 2),
    "json_array": ("[]", 0),
    "json_string": ('"a"', 0),
    "json_null": ("null", 0),
    "json_begins_with_space": (" " + GOOD, 2),
    "json_begins_with_byte_order_mark": (b"\xef\xbb\xbf" + GOOD.encode(), 2),
    "json_trailing_letter": (GOOD + "x", 2),
    "json_trailing_object": (GOOD + "{}", 2),
    "json_trailing_nul": (GOOD + "\0\0\0", 2),
    "json_nul_then_other_object": (GOOD + '\0{"b":1}', 2),
    "json_nul_between_tokens": (GOOD.replace(",", ",\0", 1), 2),
    "json_comment": ("{/**/" + GOOD[1:], 2),
    "json_single_quotes": (GOOD.replace('"', "'"), 2),
    "json_trailing_comma": (GOOD[:-1] + ",}", 2),
    "json_nan": (one(shape="[NaN]"), 2),
    "json_name_not_utf8": (GOOD.encode().replace(b"a", b"\xff", 1), 2),
    "json_name_overlong_utf8": (GOOD.encode().replace(b"a", b"\xc0\xaf", 1), 2),
    "json_name_lone_surrogate": (GOOD.replace('"a"', '"\\ud800"', 1), 2),
    "json_name_raw_control_character": (GOOD.replace('"a"', '"\n"', 1), 2),
    "json_very_deep": ('{"a":' + "[" * 100000, 0),
    "name_twice": ("{%s,%s}" % (GOOD[1:-1], GOOD[1:-1].replace("[0,2]", "[2,4]")), 4),
    "name_twice_by_escape": ("{%s,%s}" % (GOOD[1:-1], GOOD[1:-1].replace('"a"', '"\\u0061"').replace("[0,2]", "[2,4]")), 4),
    "tensor_is_number": ('{"a":1}', 0),
    "tensor_is_string": ('{"a":"b"}', 0),
    "tensor_is_array": ('{"a":[]}', 0),
    "tensor_is_null": ('{"a":null}', 0),
    "tensor_is_empty": ('{"a":{}}', 0),
    "tensor_dtype_missing": ('{"a":{"shape":[2],"data_offsets":[0,2]}}', 2),
    "tensor_shape_missing": ('{"a":{"dtype":"U8","data_offsets":[0,2]}}', 2),
    "tensor_offsets_missing": ('{"a":{"dtype":"U8","shape":[2]}}', 2),
    "tensor_unknown_key": (GOOD.replace('"shape"', '"extra":1,"shape"'), 2),
    "tensor_dtype_twice": (GOOD.replace('"shape"', '"dtype":"U8","shape"'), 2),
    "tensor_shape_twice": (GOOD.replace('"dtype"', '"shape":[2],"dtype"'), 2),
    "tensor_offsets_twice": (GOOD.replace('"dtype"', '"data_offsets":[0,2],"dtype"'), 2),
    "dtype_unknown": (one(dtype='"U9"'), 2),
    "dtype_lower_case": (one(dtype='"u8"'), 2),
    "dtype_empty": (one(dtype='""'), 2),
    "dtype_number": (one(dtype="8"), 2),
    "dtype_null": (one(dtype="null"), 2),
    "dtype_array": (one(dtype='["U8"]'), 2),
    "shape_number": (one(shape="2"), 2),
    "shape_string": (one(shape='"[2]"'), 2),
    "shape_null": (one(shape="null"), 2),
    "shape_object": (one(shape="{}"), 2),
    "shape_of_strings": (one(shape='["2"]'), 2),
    "shape_of_booleans": (one(shape="[true]"), 2),
    "shape_of_nulls": (one(shape="[null]"), 2),
    "shape_nested": (one(shape="[[2]]"), 2),
    "shape_negative": (one(shape="[-2]"), 2),
    "shape_minus_zero": (one(shape="[-0]", offsets="[0,0]"), 0),
    "shape_float": (one(shape="[2.0]"), 2),
    "shape_exponent": (one(shape="[2e0]"), 2),
    "shape_leading_zero": (one(shape="[02]"), 2),
    "shape_over_64_bits": (one(shape="[18446744073709551616]"), 2),
    "shape_product_overflows": (one(shape="[4294967296,4294967296]", offsets="[0,0]"), 0),
    "shape_product_overflows_before_zero": (one(shape="[9223372036854775808,4,0]", offsets="[0,0]"), 0),
    "shape_bits_overflow": (one(dtype='"U64"', shape="[288230376151711744]", offsets="[0,0]"), 0),
    "shape_rank_65": (one(shape="[" + ",".join(["1"] * 64 + ["2"]) + "]"), 2),
    "offsets_number": (one(offsets="2"), 2),
    "offsets_null": (one(offsets="null"), 2),
    "offsets_object": (one(offsets="{}"), 2),
    "offsets_none": (one(offsets="[]"), 2),
    "offsets_one": (one(offsets="[0]"), 2),
    "offsets_three": (one(offsets="[0,2,2]"), 2),
    "offsets_of_strings": (one(offsets='["0","2"]'), 2),
    "offsets_nested": (one(offsets="[[0,2]]"), 2),
    "offsets_negative": (one(offsets="[-2,0]"), 2),
    "offsets_float": (one(offsets="[0.0,2.0]"), 2),
    "offsets_exponent": (one(offsets="[0,2E0]"), 2),
    "offsets_over_64_bits": (one(offsets="[0,18446744073709551618]"), 2),
    "offsets_swapped": (one(offsets="[2,0]"), 2),
    "offsets_huge": (one(offsets="[0,18446744073709551615]"), 2),
    "offsets_begin_after_start": (one(offsets="[1,3]"), 3),
    "offsets_leave_hole": ('{"a":%s,"b":%s}' % (t(), t(offsets="[3,5]")), 5),
    "offsets_overlap": ('{"a":%s,"b":%s}' % (t(), t(offsets="[1,3]")), 3),
    "offsets_shared": ('{"a":%s,"b":%s}' % (t(), t()), 2),
    "offsets_empty_tensor_inside_another": ('{"a":%s,"b":%s}' % (t(), t(shape="[0]", offsets="[1,1]")), 2),
    "offsets_empty_tensor_past_end": ('{"a":%s,"b":%s}' % (t(), t(shape="[0]", offsets="[9,9]")), 2),
    "size_below_shape": (one(shape="[3]"), 2),
    "size_above_shape": (one(shape="[1]"), 2),
    "size_of_other_dtype": (one(dtype='"BF16"'), 2),
    "size_rank_0_is_one_element": (one(shape="[]"), 2),
    "size_f4_odd": (one(dtype='"F4"', shape="[3]"), 2),
    "size_f6_not_whole_bytes": (one(dtype='"F6_E2M3"', shape="[3]", offsets="[0,3]"), 3),
    "metadata_number": ('{"__metadata__":1}', 0),
    "metadata_null": ('{"__metadata__":null}', 0),
    "metadata_array": ('{"__metadata__":[]}', 0),
    "metadata_value_number": ('{"__metadata__":{"a":1}}', 0),
    "metadata_value_null": ('{"__metadata__":{"a":null}}', 0),
    "metadata_value_object": ('{"__metadata__":{"a":{}}}', 0),
    "metadata_key_twice": ('{"__metadata__":{"a":"1","a":"2"}}', 0),
    "metadata_twice": ('{"__metadata__":{},"__metadata__":{}}', 0),
    "data_missing": (GOOD, 0),
    "data_truncated": (GOOD, 1),
    "data_trailing_byte": (GOOD, 3),
    "data_without_tensors": ("{}", 1),
    "length_0": ("", 0),
    "length_0_with_data": (GOOD, 2, 0),
    "length_beyond_file": (GOOD, 2, len(GOOD) + 3),
    "length_cuts_header": (GOOD, 2, len(GOOD) - 1),
    "length_takes_data": (GOOD, 2, len(GOOD) + 2),
    "length_over_limit": (GOOD, 2, 100_000_001),
    "length_max": (GOOD, 2, 2**64 - 1),
}
FILES = {
    "file_empty": b"",
    "file_of_7_bytes": b"\2\0\0\0\0\0\0",
    "file_of_8_bytes": b"\2\0\0\0\0\0\0\0",
    "file_is_text": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
}


def main():
    OUT.mkdir(exist_ok=True)
    for name, (header, n_data, *declared) in HEADERS.items():
        header = header if isinstance(header, bytes) else header.encode()
        length = declared[0] if declared else len(header)
        FILES[name] = struct.pack("<Q", length) + header + bytes(n_data)
    for name, content in FILES.items():
        (OUT / (name + ".safetensors")).write_bytes(content)


if __name__ == "__main__":
    main()
