"""Group for group, our six tensors are those of upstream's encoder, and we read what it writes.

Modes: groups and slow compare all six tensors over the named inputs, and decode upstream's with our
decoder; codebooks compares luts over more than a thousand exponent counts.
Every difference is listed by input; one more or one less is a failure.
"""

import argparse
import collections
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

import upstream_codec
import upstream_variants

FIRST_SLOT = "first_slot_unassigned"      # upstream raises UnboundLocalError in get_luts
LAST_POSITION = "last_position_missing"   # last code crosses a block border and ends byte-aligned
LINK_ROWS = "over_16_link_rows"           # upstream's tables hold links below 240
SPIN = "filling_would_spin"               # upstream repeats a link into slots that no code reaches
TIE = "tie_in_long_codes"                 # over 32 bits, equal counts: argpartition chooses
EXPECTED = {
    "last_code_crosses_block_by_8": {LAST_POSITION},
    "last_code_crosses_block_by_16": {LAST_POSITION},
    "last_code_crosses_block_by_24": {LAST_POSITION},
    "link_rows_over_16": {LINK_ROWS},
    "all_exponents_ascending": {LINK_ROWS},
    "fibonacci_9_bits": {SPIN},
    "fibonacci_17_bits": {SPIN},
    # One exponent, or an end-of-stream code that begins with eight zeros at most: slot 0 stays empty.
    **{name: {FIRST_SLOT} for name in (
        "single_element", "single_zero", "one_symbol", "one_symbol_full_blocks", "one_symbol_highest",
        "two_symbols_first_rarer", "two_symbols_second_rarer",
        "tiny_1", "tiny_3", "tiny_4", "tiny_7", "tiny_8", "tiny_13", "tiny_24", "tiny_30")},
}
# Among the exponent counts: how often each difference must come up at least, so that each is tested.
LEAST_CODEBOOKS = {"equal": 600, FIRST_SLOT: 20, LINK_ROWS: 50, TIE: 1, SPIN: 3}


def check(problems, condition, text):
    if not condition:
        problems.append(text)


def compare_group(directory, problems):
    """Compares one input; returns how upstream differs."""
    name = directory.name
    theirs, table, error = upstream_codec.encode_group(upstream_codec.read_weights(directory))
    upstream_codec.write_group(directory, theirs)
    ours = {tensor: (directory / "df11" / (tensor + ".bin")).read_bytes() for tensor in upstream_codec.TENSORS}
    words = np.concatenate([np.fromfile(p, dtype="<u2") for p in sorted(directory.glob("words_*.bin"))])
    exponents, counts = np.unique(words >> 7 & 0xff, return_counts=True)
    differences, luts = upstream_variants.expected_luts(dict(zip(exponents.tolist(), counts.tolist())))
    rule = (directory / "rule").read_text()

    check(problems, (LINK_ROWS in differences) == (rule == "length_limited"), f"{name}: rule {rule}")
    if LINK_ROWS in differences:
        check(problems, len(theirs["luts"]) > 18 * 256, f"{name}: upstream has few rows")
        equal = ["sign_mantissa", "split_positions"]
    else:
        check(problems, ours["luts"] == luts, f"{name}: luts differ")
        check(problems, (error == "UnboundLocalError") == (FIRST_SLOT in differences), f"{name}: upstream raised {error}")
        if not differences:
            check(problems, ours["luts"] == theirs["luts"], f"{name}: luts differ from upstream's")
        equal = ["encoded_exponent", "sign_mantissa", "gaps", "split_positions"]
        missing = struct.pack("<I", len(words))
        if ours["output_positions"] == theirs["output_positions"] + missing:
            differences.add(LAST_POSITION)
        else:
            equal.append("output_positions")
    for tensor in equal:
        check(problems, ours[tensor] == theirs[tensor], f"{name}: {tensor} differs")
    return differences


def decode_upstreams(program, root, problems):
    """Our decoder over what upstream wrote: equal words, but where upstream's tables are broken."""
    output = subprocess.run([program, root], check=True, capture_output=True, text=True).stdout
    verdicts = dict(line.split(" ", 1) for line in output.splitlines())
    for directory in sorted(root.iterdir()):
        differences = EXPECTED.get(directory.name, set())
        verdict = verdicts.get(directory.name, "no luts")
        if FIRST_SLOT in differences:
            check(problems, verdict == "no luts", f"{directory.name}: decoding says {verdict}")
        elif LINK_ROWS in differences:
            check(problems, verdict.startswith("refused: luts has"), f"{directory.name}: decoding says {verdict}")
        else:
            check(problems, verdict == "equal", f"{directory.name}: decoding says {verdict}")
    print(f"decoded {sum(v == 'equal' for v in verdicts.values())} groups of upstream's")


def compare_groups(root, args, problems):
    seen = {}
    for directory in sorted(root.iterdir()):
        seen[directory.name] = compare_group(directory, problems)
        expected = EXPECTED.get(directory.name, set())
        check(problems, seen[directory.name] == expected,
              f"{directory.name}: upstream differs in {sorted(seen[directory.name])}, expected {sorted(expected)}")
    if args.mode == "groups":
        check(problems, EXPECTED.keys() <= seen.keys(), f"no such input: {EXPECTED.keys() - seen.keys()}")
    print(f"compared {len(seen)} groups, {sum(not d for d in seen.values())} equal in all six tensors")
    decode_upstreams(args.decode_groups, root, problems)


def compare_codebooks(root, problems):
    tally = collections.Counter()
    for directory in sorted(root.iterdir()):
        counts = np.fromfile(directory / "counts.bin", dtype="<u8")
        counter = {int(e): int(counts[e]) for e in np.flatnonzero(counts)}
        differences, luts = upstream_variants.expected_luts(counter)
        rule = (directory / "rule").read_text()
        check(problems, (LINK_ROWS in differences) == (rule == "length_limited"), f"{directory.name}: rule {rule}")
        check(problems, luts is None or luts == (directory / "luts.bin").read_bytes(),
              f"{directory.name}: luts differ beyond {sorted(differences)}")
        tally.update(differences or {"equal"})
    print("codebooks:", dict(tally))
    for difference, least in LEAST_CODEBOOKS.items():
        check(problems, tally[difference] >= least, f"only {tally[difference]} codebooks: {difference}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["groups", "slow", "codebooks"])
    parser.add_argument("--codec-dump", required=True)
    parser.add_argument("--decode-groups", required=True)
    args = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        subprocess.run([args.codec_dump, args.mode, root], check=True)
        if args.mode == "codebooks":
            compare_codebooks(root, problems)
        else:
            compare_groups(root, args, problems)
    for problem in problems:
        print("FAILED", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
