"""Runs the programs and looks at what they leave behind. Standard library only.

DF11_BIN: the directory of the programs; DF11_FAULT_SHIM: the library of fault_shim.c.
"""
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

BIN = os.environ["DF11_BIN"]
SHIM = os.environ["DF11_FAULT_SHIM"]
VERSION = os.environ["DF11_VERSION"]
PROGRAMS = ["df11-compress", "df11-decompress", "df11-verify", "df11-inspect", "df11-bench"]
NOBODY = 65534


def program(name):
    return os.path.join(BIN, name)


def run(name, *args, fault=None, env=None, **options):
    """The finished process, with stdout and stderr as text unless `options` redirect them."""
    environment = dict(os.environ)
    if fault is not None or (env and "DF11_FAULT_COUNTS" in env):
        environment["LD_PRELOAD"] = SHIM
        # The shim precedes AddressSanitizer's runtime, which is fine here.
        environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0"
        if fault is not None:
            environment["DF11_FAULT"] = fault
    environment.update(env or {})
    if "stdout" not in options and "capture_output" not in options:
        options["stdout"] = subprocess.PIPE
    if "stderr" not in options:
        options["stderr"] = subprocess.PIPE
    return subprocess.run([program(name), *args], env=environment, timeout=120, text=True,
                          stdin=subprocess.DEVNULL, encoding="utf-8", errors="surrogateescape", **options)


def gaussian_bf16(count, seed=1):
    generator = random.Random(seed)
    return b"".join(struct.pack("<f", generator.gauss(0, 0.02))[2:] for _ in range(count))


def write_file(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def safetensors(tensors):
    """tensors: name -> (dtype, shape, bytes)."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


_weights = gaussian_bf16(64 * 64)


def write_tiny_checkpoint(directory):
    """One coded tensor, two verbatim ones, in two shards; about 10 kB."""
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    coded, norm, final = "model.layers.0.mlp.up_proj.weight", "model.layers.0.norm.weight", "model.norm.weight"
    write_file(f"{directory}/{first}", safetensors({coded: ("BF16", [64, 64], _weights),
                                                    norm: ("BF16", [16], _weights[:32])}))
    write_file(f"{directory}/{second}", safetensors({final: ("F32", [8], _weights[:32])}))
    write_file(f"{directory}/model.safetensors.index.json",
               json.dumps({"weight_map": {coded: first, norm: first, final: second}}))
    write_file(f"{directory}/config.json", '{\n  "model_type": "qwen3"\n}\n')
    write_file(f"{directory}/tokenizer/vocab.json", '{"a": 0}')


def tree(directory):
    """Relative path -> SHA-256 of every file, None for every directory."""
    found = {}
    for parent, directories, files in os.walk(directory):
        for name in directories:
            found[os.path.relpath(os.path.join(parent, name), directory)] = None
        for name in files:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, directory)] = hashlib.sha256(file.read()).hexdigest()
    return found


class CliTest(unittest.TestCase):
    """A directory with a tiny checkpoint "source"; nothing may ever change in there."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="df11-cli-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)
        self.source, self.output = self.at("source"), self.at("output")
        write_tiny_checkpoint(self.source)
        self.source_tree = tree(self.source)

    def at(self, name):
        return os.path.join(self.dir, name)

    def call_counts(self, name, *args):
        """How often a run on one thread, which must succeed, makes each system call that the shim knows."""
        path = self.at("counts")
        done = run(name, *args, "--threads", "1", env={"DF11_FAULT_COUNTS": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            counts = {call: int(count) for call, count in (line.split() for line in file)}
        os.remove(path)
        return counts

    def assert_source_untouched(self):
        self.assertEqual(tree(self.source), self.source_tree)

    def compress(self, *args, **options):
        """A run of df11-compress that must succeed."""
        done = run("df11-compress", self.source, self.output, *args, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_source_untouched()
        return done

    def assert_verifies(self, artifact=None):
        done = run("df11-verify", artifact or self.output, "--source", self.source)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_error(self, done, contains="", code=2):
        """One line "df11-…: error: …" on stderr, nothing on stdout."""
        self.assertEqual(done.returncode, code, f"stdout: {done.stdout}\nstderr: {done.stderr}")
        name = os.path.basename(done.args[0])
        self.assertRegex(done.stderr, rf"\A{re.escape(name)}: error: [^\n]+\n\Z")
        self.assertIn(contains, done.stderr)
        self.assertIn(done.stdout, ("", None))

    def assert_stopped(self, done, number, output):
        """Ended by a signal; what is finished, if anything is, is kept where stderr says. It is removed here."""
        partial = output + ".df11-partial"
        self.assertEqual((done.returncode, done.stdout), (128 + number, ""))
        self.assertRegex(done.stderr, r"\Adf11-[a-z]+: stopped by signal [^\n]+\n\Z")
        self.assertEqual(partial in done.stderr, os.path.exists(partial))
        shutil.rmtree(partial, ignore_errors=True)

    def assert_kept_complete(self, done, output):
        """It could not be given its name. It is removed here."""
        partial = output + ".df11-partial"
        self.assertIn("the output is complete, as " + partial, done.stderr)
        self.assertTrue(os.path.isdir(partial))
        shutil.rmtree(partial)

    def assert_nothing_left(self, names=("source",)):
        """Only these names in the test's directory: no output, no partial output."""
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(names))
        self.assert_source_untouched()


def as_nobody():
    """Options of run() for a process without root's rights; None when there is no way to make one."""
    if os.geteuid() != 0:
        return {}
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        if run("df11-compress", "--version", **options).returncode == 0:
            return options
    except OSError:
        pass
    return None
