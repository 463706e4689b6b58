"""df11-inspect and df11-bench."""
import json
import os
import unittest

from cli_support import CliTest, run

BENCH = ["--cpu", "--elements", "65536", "--rounds", "1", "--threads", "1"]


class Inspect(CliTest):
    def test_checkpoint_and_artifact_agree(self):
        self.compress()
        before = json.loads(run("df11-inspect", self.source, "--json").stdout)
        after = json.loads(run("df11-inspect", self.output, "--json").stdout)
        self.assertEqual(set(after), {"report", "schema_version", "tool_version", "directory", "kind", "groups", "verbatim"})
        self.assertEqual((before["kind"], after["kind"]), ("checkpoint", "artifact"))
        self.assertEqual(before["groups"], after["groups"])
        self.assertEqual(before["verbatim"], after["verbatim"])
        self.assertEqual(set(after["groups"][0]), {"module", "elements", "bits_per_weight", "exponent_entropy_bits",
                                                   "longest_code_bits", "source_bytes", "stored_bytes"})
        self.assertEqual(set(after["verbatim"][0]), {"name", "dtype", "shape", "bytes", "reason"})

    def test_text(self):
        for prepare, word in [(lambda: self.source, "checkpoint, as it would be compressed"),
                              (lambda: (self.compress(), self.output)[1], "artifact:")]:
            done = run("df11-inspect", prepare())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("model.layers.0.mlp.up_proj", done.stdout)
            self.assertIn(word, done.stdout)
            for line in done.stdout.splitlines():
                self.assertEqual(line, line.rstrip())

    def test_nothing_is_written(self):
        run("df11-inspect", self.source)
        self.assert_nothing_left()

    def test_errors(self):
        self.assert_error(run("df11-inspect", self.at("absent")), "no such directory")
        self.compress()
        path = self.output + "/model_layers_0.safetensors"
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 1)
        self.assert_error(run("df11-inspect", self.output), "model_layers_0.safetensors")


class Bench(CliTest):
    def test_text(self):
        done = run("df11-bench", *BENCH)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("65,536 weights", done.stdout)
        self.assertIn("memory copy", done.stdout)

    def test_json(self):
        done = run("df11-bench", *BENCH, "--json")
        report = json.loads(done.stdout)
        self.assertEqual(set(report), {"report", "schema_version", "tool_version", "cpu"})
        stages = {row["stage"]: row["gb_per_s"] for row in report["cpu"][0]["stages"]}
        self.assertLessEqual({"memory copy", "histogram", "encode", "decode + join + check", "XXH3-128", "SHA-256"},
                             set(stages))
        for rate in stages.values():
            self.assertGreater(rate, 0)


if __name__ == "__main__":
    unittest.main()
