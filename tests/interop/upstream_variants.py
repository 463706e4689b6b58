"""How our tables may differ from upstream's, each as upstream's own code with one named change.

A difference counts as expected only if upstream, changed in exactly this way, gives our bytes.
"""

import numpy as np

import upstream_codec
from upstream_codec import UPSTREAM, replace_once

MAX_LINK_ROWS = 16
FILL = """            if i in bytes_dict:
                curr_val = bytes_dict[i]
            luts[pi, i] = curr_val
"""
FILL_SYMBOLS = """            if i in bytes_dict and bytes_dict[i] >= 240:
                luts[pi, i] = bytes_dict[i]
                continue
            if i in bytes_dict:
                curr_val = bytes_dict[i]
            luts[pi, i] = curr_val
"""


def with_first_value(fill):
    """get_luts that begins with a given value where upstream has an unassigned variable."""
    def edit(source):
        source = replace_once(source, FILL, fill)
        return replace_once(source, "    luts = np.zeros((len(prefixes), 256)", "    curr_val = FIRST\n    luts = np.zeros((len(prefixes), 256)")
    return upstream_codec.load(edit)


CARRY_ALL = with_first_value(FILL)
CARRY_SYMBOLS = with_first_value(FILL_SYMBOLS)


def filled_from_first_entry(utils, table):
    """The leading slots get the first value that is carried at all: try two first values, see where they agree."""
    utils.FIRST = 0
    zeros = utils.get_luts(table).numpy()
    utils.FIRST = 1
    ones = utils.get_luts(table).numpy()
    leading = (zeros != ones).reshape(-1)
    n_leading = int(leading.sum())
    flat = zeros.reshape(-1).copy()
    if n_leading:
        # Links may stand between leading slots when only symbols are carried.
        last = int(np.flatnonzero(leading)[-1])
        flat[leading] = next(v for v in flat[last + 1:] if utils is CARRY_ALL or v < 240)
    return flat.tobytes()


def n_prefixes(table):
    prefixes = {""}
    for symbol, (bits, value) in table.items():
        if isinstance(symbol, int):
            prefixes.add(bin(value)[2:].rjust(bits, "0")[:(bits - 1) // 8 * 8])
    return len(prefixes)


def always_progresses(luts):
    """Whether upstream's kernel finds a symbol with a length within four lookups, whatever bits it is fed."""
    rows = np.frombuffer(luts, dtype=np.uint8).reshape(-1, 256)
    lengths = rows[-1]

    def row_progresses(row, level):
        if level == 4 or row >= len(rows) - 1:
            return False
        entries = set(rows[row].tolist())
        return all(row_progresses(256 - e, level + 1) if e >= 240 else lengths[e] > 0 for e in entries)

    return row_progresses(0, 0)


class StableNumpy:
    """numpy, but the k smallest counts are chosen by count and then by exponent."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def argpartition(values, _k):
        return np.argsort(values, kind="stable")


STABLE = upstream_codec.load()
STABLE.np = StableNumpy()


def expected_luts(counter):
    """(differences, luts we must write; None where ours has no model in upstream's code)."""
    differences = set()
    _, _, table = UPSTREAM.get_32bit_codec(counter)
    _, _, stable_table = STABLE.get_32bit_codec(counter)
    if table != stable_table:
        differences.add("tie_in_long_codes")
        table = stable_table
    if n_prefixes(table) > 1 + MAX_LINK_ROWS:
        return {"over_16_link_rows"}, None
    luts = filled_from_first_entry(CARRY_ALL, table)
    try:
        unchanged = UPSTREAM.get_luts(table).numpy().tobytes()
        if unchanged != luts:
            raise SystemExit("the variant of get_luts is not upstream's where that works")
    except UnboundLocalError:
        differences.add("first_slot_unassigned")
    if not always_progresses(luts):
        differences.add("filling_would_spin")
        luts = filled_from_first_entry(CARRY_SYMBOLS, table)
    return differences, luts
