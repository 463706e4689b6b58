"""Killed at any moment, a run goes on with --resume and ends in the bytes of an uninterrupted one, using
nothing that it has not checked."""
import errno
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from cli_support import SHIM, CliTest, gaussian_bf16, program, run, safetensors, tree, write_file

BOUNDARIES = ["open", "pwrite", "fallocate", "fsync", "rename"]
RANDOM_KILLS = 200


def write_layers(directory, n_layers=12, rows=96):
    """A checkpoint of two shards and several files to be made of it; a coded and two verbatim tensors each."""
    shards = [{}, {}]
    for layer in range(n_layers):
        name, weights = f"model.layers.{layer}.mlp.up_proj", gaussian_bf16(rows * 64, layer)
        shards[layer % 2][f"{name}.weight"] = ("BF16", [rows, 64], weights)
        shards[layer % 2][f"{name}.bias"] = ("F32", [16], weights[:64])
        shards[layer % 2][f"model.layers.{layer}.norm.weight"] = ("BF16", [32], weights[:64])
    names = [f"model-0000{i + 1}-of-00002.safetensors" for i in (0, 1)]
    for name, tensors in zip(names, shards):
        write_file(f"{directory}/{name}", safetensors(tensors))
    weight_map = {tensor: name for name, tensors in zip(names, shards) for tensor in tensors}
    write_file(f"{directory}/model.safetensors.index.json", json.dumps({"weight_map": weight_map}))
    write_file(f"{directory}/config.json", '{"model_type": "llama"}')
    write_file(f"{directory}/tokenizer/vocab.json", '{"a": 0}')


class ResumeTest(CliTest):
    """One program, from `self.input` to `self.target`, whose uninterrupted result is `self.expected`."""
    name = "df11-compress"

    def prepare(self):
        self.input, self.target = self.source, self.output

    def setUp(self):
        super().setUp()
        shutil.rmtree(self.source)
        write_layers(self.source)
        self.source_tree = tree(self.source)
        self.prepare()
        self.partial = self.target + ".df11-partial"
        self.finish()
        self.expected = tree(self.target)
        self.clear()

    def clear(self):
        for path in (self.target, self.partial):
            shutil.rmtree(path, ignore_errors=True)

    def start(self, *args, **options):
        return run(self.name, self.input, self.target, *args, **options)

    def finish(self, *args):
        """A run that must succeed; its report."""
        done = self.start("--json", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(os.path.exists(self.partial))
        self.assert_source_untouched()
        return json.loads(done.stdout)

    def finish_as_expected(self, *args):
        """--resume where there is no result yet, which then is the expected one."""
        report = None
        if not os.path.exists(self.target):
            report = self.finish("--resume", *args)
        self.assertEqual(tree(self.target), self.expected)
        return report

    def counts(self, *args):
        return self.call_counts(self.name, self.input, self.target, *args)

    def interrupt(self, signal_number=signal.SIGKILL, part=0.7):
        """A run that got so far, in writes."""
        n_writes = self.counts()["pwrite"]
        self.clear()
        done = self.start("--threads", "1", fault=f"pwrite:{int(part * n_writes)}:SIG{int(signal_number)}")
        self.assertTrue(os.path.exists(self.partial))
        return done


class KilledAnywhere:
    def test_at_every_boundary(self):
        counts = self.counts()
        self.clear()
        for call in BOUNDARIES:
            self.assertGreater(counts[call], 0, call)
            for n in range(1, counts[call] + 1):
                with self.subTest(call=call, n=n):
                    done = self.start("--threads", "1", fault=f"{call}:{n}:SIG9")
                    self.assertEqual(done.returncode, -signal.SIGKILL)
                    self.finish_as_expected()
                    self.clear()

    def test_at_random_moments(self):
        begin = time.monotonic()
        self.finish()
        seconds = time.monotonic() - begin
        self.clear()
        generator = random.Random(2011)
        n_killed = 0
        for i in range(RANDOM_KILLS):
            with self.subTest(i=i):
                # Some are killed again while they resume.
                for _ in range(generator.choice([1, 1, 2, 3])):
                    child = subprocess.Popen([program(self.name), self.input, self.target, "--resume", "--quiet",
                                              "--threads", str(generator.randint(1, 3))], stderr=subprocess.DEVNULL)
                    try:
                        child.wait(generator.uniform(0, seconds))
                    except subprocess.TimeoutExpired:
                        child.kill()
                        child.wait()
                    n_killed += child.returncode == -signal.SIGKILL
                    if os.path.exists(self.target):
                        break
                self.finish_as_expected()
                self.clear()
        self.assertGreater(n_killed, 0)

    def test_without_resume_it_starts_over(self):
        self.interrupt()
        report = self.finish()
        self.assertEqual((report["reused_files"], tree(self.target)), (0, self.expected))

    def test_with_nothing_to_go_on_from(self):
        self.assertEqual(self.finish_as_expected()["reused_files"], 0)
        self.assert_error(self.start("--resume"), "exists")

    def test_signal_says_how_to_go_on(self):
        done = self.interrupt(signal.SIGTERM)
        self.assertEqual((done.returncode, done.stdout), (128 + signal.SIGTERM, ""))
        self.assertEqual(done.stderr, f"{self.name}: stopped by signal 15; what is finished is in {self.partial}: "
                         "--resume goes on from there, a run without it starts over\n")
        self.assertFalse(os.path.exists(self.target))
        self.assertGreater(self.finish_as_expected()["reused_files"], 0)

    def test_what_changed_on_disk_is_not_used(self):
        self.interrupt()
        all_good = self.finish_as_expected()["reused_files"]
        self.clear()
        self.interrupt()
        with open(sorted(glob.glob(self.partial + "/*.safetensors"))[0], "r+b") as file:
            file.seek(-1, os.SEEK_END)
            byte = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))
        self.assertEqual(self.finish_as_expected()["reused_files"], all_good - 1)

    def test_links_and_strangers_are_removed(self):
        self.interrupt()
        precious = self.at("precious")
        write_file(precious, "not to be touched")
        for name in ("stranger.txt", "config.json"):
            if os.path.exists(f"{self.partial}/{name}"):
                os.remove(f"{self.partial}/{name}")
            os.symlink(precious, f"{self.partial}/{name}")
        write_file(f"{self.partial}/sub/stranger", "x")
        shard = sorted(glob.glob(self.partial + "/*.safetensors"))[0]
        os.rename(shard, self.at("moved"))
        os.symlink(self.at("moved"), shard)
        self.finish_as_expected()
        with open(precious, encoding="utf-8") as file:
            self.assertEqual(file.read(), "not to be touched")
        self.assertFalse(os.path.islink(f"{self.target}/config.json"))


class Compress(KilledAnywhere, ResumeTest):
    def test_finished_shards_are_kept(self):
        whole = self.counts()["pwrite"]
        self.clear()
        self.interrupt()
        records = len(glob.glob(self.partial + "/*.df11-done"))
        self.assertGreater(records, 3)
        report = self.finish_as_expected()
        self.assertEqual(report["reused_files"], records)
        self.clear()
        self.interrupt()
        self.assertLess(self.counts("--resume")["pwrite"], whole)

    def test_records_that_are_not_whole(self):
        self.interrupt()
        records = sorted(glob.glob(self.partial + "/*.df11-done"))
        os.truncate(records[0], 10)
        write_file(records[1], "")
        os.remove(records[2])
        self.assertEqual(self.finish_as_expected()["reused_files"], len(records) - 3)

    def test_another_source(self):
        self.interrupt()
        n_kept = len(glob.glob(self.partial + "/*.df11-done"))
        write_layers(self.source, rows=97)
        self.source_tree = tree(self.source)
        self.assertEqual(self.finish("--resume")["reused_files"], 0)
        self.assert_verifies()
        self.clear()
        # The same shapes, one bit of one verbatim tensor.
        write_layers(self.source)
        path = glob.glob(self.source + "/*1-of*.safetensors")[0]
        with open(path, "rb") as file:
            content = file.read()
        at = content.index(gaussian_bf16(96 * 64, 0)[:64] + gaussian_bf16(96 * 64, 0)[:64])
        write_file(path, content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
        self.source_tree = tree(self.source)
        write_layers(self.at("source-before"))
        self.input = self.at("source-before")
        self.interrupt()
        self.input = self.source
        self.assertEqual(self.finish("--resume")["reused_files"], n_kept - 1)
        self.assert_verifies()

    def test_other_options(self):
        for args in (["--granularity", "block"], ["--max-shard-size", "40KB"], ["--exclude", "*.3.*"]):
            with self.subTest(args=args):
                self.finish(*args)
                expected = tree(self.target)
                self.clear()
                self.interrupt()
                self.finish("--resume", *args)
                self.assertEqual(tree(self.target), expected)
                self.clear()

    def test_signal_while_the_disk_is_waited_for(self):
        """All is written, hashed and recorded, but a slow disk has not taken it."""
        whole = self.finish()
        n_shards = sum(path.endswith(".safetensors") for path in self.expected)
        self.clear()
        environment = {**os.environ, "LD_PRELOAD": SHIM, "DF11_FAULT": "shardsync:1:SLEEP3",
                       "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        child = subprocess.Popen([program(self.name), self.input, self.target, "--threads", "1"], env=environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while len(glob.glob(self.partial + "/*.df11-done")) < n_shards and child.poll() is None:
            time.sleep(0.01)
        child.terminate()
        self.assertIn("--resume goes on from there", child.communicate()[1])
        self.assertEqual(child.returncode, 128 + signal.SIGTERM)
        self.assertFalse(os.path.exists(self.target))
        self.assertEqual(self.finish_as_expected()["reused_files"], n_shards)
        self.assertEqual(whole["reused_files"], 0)

    def test_failing_again_loses_nothing(self):
        self.interrupt()
        left = self.at("left")
        shutil.copytree(self.partial, left)
        records = len(glob.glob(left + "/*.df11-done"))
        n_opens = self.counts("--resume")["open"]
        for n in range(1, n_opens + 1):
            with self.subTest(n=n):
                self.clear()
                shutil.copytree(left, self.partial)
                done = self.start("--resume", "--threads", "1", fault=f"open:{n}:{errno.EMFILE}")
                self.assert_error(done, os.strerror(errno.EMFILE))
                if os.path.exists(f"{self.partial}/df11_manifest.json") or os.path.exists(self.target):
                    continue  # only the name was still to come
                self.assertGreaterEqual(len(glob.glob(self.partial + "/*.df11-done")), records)
                self.assertGreaterEqual(self.finish_as_expected()["reused_files"], records)

    def test_forced_replacement(self):
        self.finish("--exclude", "*")
        old = tree(self.target)
        done = self.start("--threads", "1", "--force", fault="pwrite:30:SIG15")
        self.assertEqual(done.returncode, 128 + signal.SIGTERM)
        self.assertEqual(tree(self.target), old)
        self.assertGreater(self.finish("--force", "--resume")["reused_files"], 0)
        self.assertEqual(tree(self.target), self.expected)


class Decompress(KilledAnywhere, ResumeTest):
    name = "df11-decompress"

    def prepare(self):
        self.input, self.target = self.output, self.at("restored")
        self.compress("--quiet")

    def test_finished_files_are_kept(self):
        self.interrupt()
        self.assertGreater(self.finish_as_expected()["reused_files"], 0)

    def test_tensors_only_starts_over(self):
        self.interrupt()
        self.assertEqual(self.finish("--resume", "--tensors-only")["reused_files"], 0)
        self.assertIn("model.safetensors", tree(self.target))


if __name__ == "__main__":
    unittest.main()
