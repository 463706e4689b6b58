"""df11-decompress: the source back, byte for byte; what it prints; what it refuses; nothing half-written."""
import errno
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import unittest

from cli_support import SHIM, CliTest, program, run, tree, write_file

KEYS = {"report", "schema_version", "tool_version", "artifact", "output", "tensors_only", "read_back", "decoder",
        "total_bytes", "tensors", "seconds", "reused_files", "files", "omitted_files", "flat_tensors"}
LAYER = "model_layers_0.safetensors"


class DecompressTest(CliTest):
    def setUp(self):
        super().setUp()
        self.compress("--quiet")
        self.artifact, self.output = self.output, self.at("restored")
        self.artifact_tree = tree(self.artifact)

    def decompress(self, *args, **options):
        """A run of df11-decompress that must succeed."""
        done = run("df11-decompress", self.artifact, self.output, *args, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(tree(self.artifact), self.artifact_tree)
        return done

    def assert_restored(self):
        subprocess.run(["diff", "-r", self.source, self.output], check=True)
        self.assertEqual(tree(self.output), self.source_tree)

    def assert_nothing_left(self, names=("source", "output")):
        super().assert_nothing_left(sorted(names))


class Decompress(DecompressTest):
    def test_text(self):
        done = self.decompress("--verify")
        self.assert_restored()
        self.assertIn("every file has the SHA-256 of the source's", done.stdout)
        self.assertIn("read back from disk", done.stdout)
        self.assert_nothing_left(["source", "output", "restored"])

    def test_quiet(self):
        self.assertEqual(self.decompress("--quiet").stdout, "")
        self.assert_restored()

    def test_json(self):
        report = json.loads(self.decompress("--json", "--quiet", "--device", "cpu").stdout)
        self.assertEqual(set(report), KEYS)
        self.assertEqual((report["report"], report["schema_version"], report["decoder"], report["read_back"],
                          report["tensors_only"], report["tensors"]), ("df11-decompress", 1, "cpu", False, False, 3))
        self.assertEqual({file["path"]: file["sha256"] for file in report["files"]},
                         {path: digest for path, digest in self.source_tree.items() if digest})
        self.assertEqual(report["total_bytes"], sum(file["size_bytes"] for file in report["files"]))

    def test_omitted_files_are_named(self):
        shutil.rmtree(self.artifact)
        self.assertEqual(run("df11-compress", self.source, self.artifact, "--omit", "tokenizer/*").returncode, 0)
        self.artifact_tree = tree(self.artifact)
        self.assertIn("tokenizer/vocab.json", self.decompress().stdout)
        self.assertFalse(os.path.exists(self.output + "/tokenizer"))

    def test_force(self):
        self.decompress()
        self.assert_error(run("df11-decompress", self.artifact, self.output), "the output exists")
        write_file(self.output + "/config.json", "{}")
        self.decompress("--force")
        self.assert_restored()
        write_file(self.output + "/mine", "x")
        self.assert_error(run("df11-decompress", self.artifact, self.output, "--force"), "mine")
        self.assertTrue(os.path.exists(self.output + "/mine"))

    def test_larger_model_on_any_number_of_threads(self):
        made = run("df11-make-checkpoint", self.at("model"), "--layers", "3", "--hidden", "128", "--vocab", "9000",
                   "--max-shard-bytes", "3000000")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.source, self.artifact = self.at("model"), self.at("model-df11")
        self.source_tree = tree(self.source)
        self.assertEqual(run("df11-compress", self.source, self.artifact).returncode, 0)
        self.artifact_tree = tree(self.artifact)
        for n in ("1", "2"):
            self.decompress("--threads", n)
            self.assert_restored()
            shutil.rmtree(self.output)

    def test_tensors_only(self):
        os.remove(self.artifact + "/df11_manifest.json")
        self.artifact_tree = tree(self.artifact)
        self.assert_error(run("df11-decompress", self.artifact, self.output), "--tensors-only")
        done = run("df11-decompress", self.artifact, self.output, "--tensors-only", "--quiet")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("nothing tells the shape of 1 tensors", done.stderr)
        self.assertIn("model.layers.0.mlp.up_proj.weight", done.stderr)
        self.assertEqual(sorted(os.listdir(self.output)), ["README.md", "config.json", "model.safetensors", "tokenizer"])
        self.assertEqual(tree(self.output)["config.json"], self.source_tree["config.json"])


class Refusals(DecompressTest):
    def test_bad_usage(self):
        for args in [[], [self.artifact], [self.artifact, self.output, "extra"], [self.artifact, self.output, "--threads", "0"],
                     [self.artifact, self.output, "--device", "tpu"]]:
            done = run("df11-decompress", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assert_nothing_left()

    def test_no_artifact(self):
        self.assert_error(run("df11-decompress", self.source, self.output), "no DF11 artifact")
        self.assert_error(run("df11-decompress", self.at("nowhere"), self.output), "no such directory")
        self.assert_error(run("df11-decompress", self.source + "/config.json", self.output), "no such directory")
        self.assert_nothing_left()

    def test_output_inside_the_artifact(self):
        for output in [self.artifact + "/restored", self.artifact, self.dir]:
            self.assert_error(run("df11-decompress", self.artifact, output, "--force"), "contain each other")
        self.assertEqual(tree(self.artifact), self.artifact_tree)

    def test_damage_ends_in_1(self):
        path = os.path.join(self.artifact, LAYER)
        with open(path, "rb") as file:
            content = file.read()
        # In sign_mantissa, the last tensor, every byte matters.
        for damaged in [content[:-1], *(content[:at] + bytes([content[at] ^ 4]) + content[at + 1:]
                                        for at in range(len(content) - 4096, len(content), 601))]:
            write_file(path, damaged)
            self.assert_error(run("df11-decompress", self.artifact, self.output), code=1)
            self.assert_nothing_left()
        write_file(path, content)
        os.remove(self.artifact + "/tokenizer/vocab.json")
        self.assert_error(run("df11-decompress", self.artifact, self.output), "vocab.json", code=1)
        self.assert_nothing_left()


class Interruptions(DecompressTest):
    def counts(self, *args):
        counts = self.call_counts("df11-decompress", self.artifact, self.output, *args)
        shutil.rmtree(self.output)
        return counts

    def test_every_call(self):
        counts = self.counts("--verify")
        for call, value in [("pwrite", errno.ENOSPC), ("fallocate", errno.ENOSPC), ("fsync", errno.EIO),
                            ("rename", errno.EIO), ("open", errno.EMFILE), ("pread", errno.EIO)]:
            self.assertGreater(counts[call], 0, call)
            for n in range(1, counts[call] + 1):
                with self.subTest(call=call, n=n):
                    done = run("df11-decompress", self.artifact, self.output, "--verify", "--threads", "1",
                               fault=f"{call}:{n}:{value}")
                    self.assert_error(done, os.strerror(value))
                    if call == "rename":
                        self.assert_kept_complete(done, self.output)
                    if call in ("fsync", "open") and n == counts[call] and os.path.exists(self.output):
                        self.assert_restored()  # only its name may not be on disk
                        shutil.rmtree(self.output)
                    self.assert_nothing_left()

    def test_signals(self):
        n_writes = self.counts()["pwrite"]
        for number in (signal.SIGINT, signal.SIGTERM):
            for n in range(1, n_writes + 1):
                with self.subTest(signal=number.name, n=n):
                    done = run("df11-decompress", self.artifact, self.output, "--threads", "1",
                               fault=f"pwrite:{n}:SIG{int(number)}")
                    if done.returncode == 0:  # nothing was left to stop: complete is as good
                        self.assertEqual(n, n_writes)
                        self.assert_restored()
                        shutil.rmtree(self.output)
                    else:
                        self.assert_stopped(done, number, self.output)
                    self.assert_nothing_left()

    def test_killed(self):
        """What SIGKILL leaves has another name, and the next run removes it."""
        n_writes = self.counts()["pwrite"]
        done = run("df11-decompress", self.artifact, self.output, "--threads", "1", fault=f"pwrite:{n_writes}:SIG9")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assert_nothing_left(["source", "output", "restored.df11-partial"])
        self.decompress()
        self.assert_restored()
        self.assert_nothing_left(["source", "output", "restored"])

    def test_what_is_read_back_is_compared(self):
        """A disk that loses a write: the file is there, with zeros in it."""
        n_reads = self.counts("--verify")["pread"]
        environment = {**os.environ, "LD_PRELOAD": SHIM, "DF11_FAULT": f"pread:{n_reads}:SIG{int(signal.SIGSTOP)}",
                       "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        child = subprocess.Popen([program("df11-decompress"), self.artifact, self.output, "--verify", "--threads", "1"],
                                 env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        with open(self.output + ".df11-partial/tokenizer/vocab.json", "r+b") as file:  # the last one by path
            file.write(b"\0")
        os.kill(child.pid, signal.SIGCONT)
        stdout, stderr = child.communicate(timeout=60)
        self.assert_error(subprocess.CompletedProcess(child.args, child.returncode, stdout, stderr), "read back")
        self.assert_nothing_left()

    def test_file_size_limit(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        done = run("df11-decompress", self.artifact, self.output, preexec_fn=limit)
        self.assert_error(done, os.strerror(errno.EFBIG))
        self.assert_nothing_left()


class Surroundings(DecompressTest):
    def test_full_standard_output(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(run("df11-decompress", self.artifact, self.output, stdout=full).returncode, 2)

    def test_links_of_a_hub_cache(self):
        """snapshots/REV/name -> ../../blobs/HASH, as huggingface_hub keeps downloads."""
        snapshot = self.at("cache/snapshots/0123")
        for path, digest in self.source_tree.items():
            if digest is None:
                continue
            blob = os.path.join(self.at("cache/blobs"), digest)
            with open(os.path.join(self.source, path), "rb") as file:
                content = file.read()
            self.assertEqual(hashlib.sha256(content).hexdigest(), digest)
            write_file(blob, content)
            os.makedirs(os.path.dirname(os.path.join(snapshot, path)), exist_ok=True)
            os.symlink(os.path.relpath(blob, os.path.dirname(os.path.join(snapshot, path))), os.path.join(snapshot, path))
        shutil.rmtree(self.artifact)
        self.assertEqual(run("df11-compress", snapshot, self.artifact).returncode, 0)
        self.artifact_tree = tree(self.artifact)
        self.decompress()
        self.assert_restored()


if __name__ == "__main__":
    unittest.main()
