"""tools/bench_end_to_end.py, on a tiny checkpoint."""
import json
import os
import subprocess
import sys
import unittest

from cli_support import BIN, CliTest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench_end_to_end.py")


class EndToEnd(CliTest):
    def bench(self, *args):
        return subprocess.run([sys.executable, SCRIPT, self.source, "--bin", BIN, "--rounds", "2", *args],
                              capture_output=True, text=True, timeout=120)

    def test_json(self):
        done = self.bench("--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual((report["report"], report["schema_version"], report["rounds"]), ("df11-bench-end-to-end", 1, 2))
        self.assertEqual(report["source_files"], len([name for name in self.source_tree.values() if name]))
        self.assertEqual([row["command"] for row in report["commands"]],
                         ["cp -r, synced", "openssl dgst -sha256", "df11-compress", "df11-verify",
                          "df11-verify --source", "df11-decompress"])
        for row in report["commands"]:
            self.assertEqual(set(row), {"command", "seconds", "best_seconds", "gb_per_s", "times_cp", "times_openssl",
                                        "peak_rss_bytes"})
            self.assertLessEqual(row["best_seconds"], row["seconds"])
            self.assertGreater(row["peak_rss_bytes"], 1 << 20)
        self.assertEqual(report["commands"][0]["times_cp"], 1)
        self.assert_nothing_left()

    def test_table(self):
        done = self.bench()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), 2 + 6)
        self.assertRegex(done.stdout, r"\ndf11-verify --source +[0-9.]+ +[0-9.]+ +[0-9.]+ x +[0-9.]+ x +[0-9]+ MB\n")

    def test_a_command_that_fails_ends_it(self):
        with open(self.at("source/config.json"), "w") as file:
            file.write("nonsense")
        done = self.bench()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Abench_end_to_end.py: error: .*df11-compress.*config\.json.*\n\Z")
        self.assertEqual(os.listdir(self.dir), ["source"])


if __name__ == "__main__":
    unittest.main()
