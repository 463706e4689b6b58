"""Writes upstream_groups/NAME: small groups as upstream's encoder makes them. Run once; the files are kept.

    make_upstream_groups.py CODEC_DUMP      under a Python with tests/interop/requirements.txt

The C++ test needs neither upstream nor Python.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "interop"))
import upstream_codec  # noqa: E402

NAMES = ("all_exponents_once", "ends_on_byte", "several_members_empty_between", "two_symbols_equal")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run([sys.argv[1], "groups", temporary], check=True)
        for name in NAMES:
            source, target = pathlib.Path(temporary) / name, HERE / "upstream_groups" / name
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for path in source.glob("words_*.bin"):
                shutil.copy(path, target)
            tensors, _, error = upstream_codec.encode_group(upstream_codec.read_weights(source))
            if error:
                raise SystemExit(f"{name}: upstream raises {error}")
            for tensor, content in tensors.items():
                (target / (tensor + ".bin")).write_bytes(content)


if __name__ == "__main__":
    main()
