"""df11-bench --cpu: scaling over threads, and the peers."""
import json
import os
import sys
import unittest

from cli_support import CliTest, run, write_file

BENCH = ["--cpu", "--elements", "65536", "--rounds", "2"]

# A package with ZipNN's interface. `restored` is what decompress() makes of the original.
FAKE_ZIPNN = """
import zlib
class ZipNN:
    def __init__(self, method, input_format, bytearray_dtype, threads, compression_chunk):
        print("noise on stdout")
    def compress(self, data):
        frame = zlib.compress(bytearray(data), 1)
        data[:] = bytes(len(data))  # as ZipNN does
        return frame
    def decompress(self, frame):
        original = zlib.decompress(frame)
        return RESTORED
"""


class Scaling(CliTest):
    def report(self, *args):
        done = run("df11-bench", *BENCH, *args, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)["cpu"]

    def test_a_report_for_each_thread_count(self):
        for args in [["--threads", "1,3"], ["--threads", "1", "--threads", "3"]]:
            one, three = self.report(*args)
            self.assertEqual((one["threads"], three["threads"]), (1, 3))
            self.assertEqual([row["stage"] for row in one["stages"]], [row["stage"] for row in three["stages"]])
            self.assertEqual(one["stages"][1]["stage"], "memory read")
            for a, b in zip(one["stages"], three["stages"]):
                self.assertEqual(set(a), {"stage", "gb_per_s", "best_gb_per_s", "efficiency"})
                self.assertLessEqual(a["gb_per_s"], a["best_gb_per_s"])
                self.assertEqual(a["efficiency"], 1)
                self.assertAlmostEqual(b["efficiency"], b["gb_per_s"] / (3 * a["gb_per_s"]))

    def test_no_efficiency_without_one_thread(self):
        [report] = self.report("--threads", "2")
        self.assertNotIn("efficiency", report["stages"][0])
        self.assertNotIn("peers", report)

    def test_text(self):
        done = run("df11-bench", *BENCH, "--threads", "1,2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        _, one, two = done.stdout.split("\n\n")
        self.assertTrue(one.startswith("1 thread\nstage") and two.startswith("2 threads\nstage"), done.stdout)
        self.assertEqual(("efficiency" in one, "efficiency" in two), (False, True))

    def test_bad_lists(self):
        for threads in ["0", "1,0", "1,x", "4097"]:
            done = run("df11-bench", *BENCH, "--threads", threads)
            self.assertEqual((done.returncode, done.stdout), (2, ""), threads)


class Peers(CliTest):
    def peers(self, *args, path=""):
        done = run("df11-bench", *BENCH, "--threads", "1,2", "--peer", *args, "--json", env={"PYTHONPATH": path})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        one, two = (report["peers"] for report in json.loads(done.stdout)["cpu"])
        self.assertEqual([peer["peer"] for peer in one], ["zstd", "ZipNN"])
        self.assertEqual([set(peer) for peer in one], [set(peer) for peer in two])
        return one

    def fake_zipnn(self, restored):
        packages = self.at("packages")
        write_file(f"{packages}/zipnn/__init__.py", "")
        write_file(f"{packages}/zipnn/zipnn.py", FAKE_ZIPNN.replace("RESTORED", restored))
        write_file(f"{packages}/zipnn-9.8.7.dist-info/METADATA", "Metadata-Version: 2.1\nName: zipnn\nVersion: 9.8.7\n")
        return packages

    def assert_measured(self, peer):
        self.assertEqual(set(peer), {"peer", "version", "settings", "compress_gb_per_s", "best_compress_gb_per_s",
                                     "decompress_gb_per_s", "best_decompress_gb_per_s", "bits_per_weight"})
        self.assertGreater(peer["compress_gb_per_s"], 0)
        self.assertGreater(peer["decompress_gb_per_s"], 0)
        self.assertTrue(10 < peer["bits_per_weight"] < 16, peer)

    def test_both(self):
        zstd, zipnn = self.peers("--peer-python", sys.executable, path=self.fake_zipnn("original"))
        self.assert_measured(zstd)
        self.assert_measured(zipnn)
        self.assertEqual(zipnn["version"], "9.8.7")

    def test_without_zipnn_the_rest_is_measured(self):
        """No interpreter, one that says nothing, one that says nonsense, no package, and one that loses bits."""
        nonsense = self.at("nonsense")
        write_file(nonsense, "#!/bin/sh\necho nonsense\n")
        os.chmod(nonsense, 0o755)
        broken = self.at("broken")
        write_file(f"{broken}/zipnn/__init__.py", "raise ImportError('half\\ninstalled')")
        for python, path, reason in [
            (self.at("absent"), "", "No such file or directory"),
            ("false", "", "it ended without an answer"),
            (nonsense, "", "JSON"),
            (sys.executable, broken, "ImportError: half"),
            (sys.executable, self.fake_zipnn("original[:-1]"), "does not restore"),
        ]:
            with self.subTest(python=python, path=path):
                zstd, zipnn = self.peers("--peer-python", python, path=path)
                self.assert_measured(zstd)
                self.assertEqual(set(zipnn), {"peer", "not_measured"})
                self.assertIn(reason, zipnn["not_measured"])
                self.assertNotIn("\n", zipnn["not_measured"])

    def test_text(self):
        done = run("df11-bench", *BENCH, "--threads", "1", "--peer", "--peer-python", self.at("absent"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\ncodec +compress +decompress +bits a weight")
        self.assertRegex(done.stdout, r"\nzstd [0-9.]+ +[0-9]")
        self.assertRegex(done.stdout, r"\nzstd: level 1, .*\nZipNN: not measured: .*No such file or directory\n\Z")
        for line in done.stdout.splitlines():
            self.assertEqual(line, line.rstrip())


if __name__ == "__main__":
    unittest.main()
