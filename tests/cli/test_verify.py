"""df11-verify: exit codes 0, 1 and 2, text and JSON."""
import json
import os
import unittest

from cli_support import CliTest, run

KEYS = {"report", "report_version", "tool_version", "verdict", "artifact", "source", "has_manifest", "method", "decoder",
        "groups", "tensors", "weight_bytes", "files", "seconds", "ignored_files", "notes", "findings", "findings_dropped"}


class Verify(CliTest):
    def setUp(self):
        super().setUp()
        self.compress()

    def verify(self, *args):
        return run("df11-verify", self.output, *args)

    def flip(self, name, at=-1):
        with open(os.path.join(self.output, name), "r+b") as file:
            file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def test_equal(self):
        for args in [[], ["--source", self.source], ["--threads", "1"]]:
            done = self.verify(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(": EQUAL to", done.stdout)
            self.assertEqual((self.verify("--quiet", *args).stdout), "")
        self.assert_source_untouched()

    def test_json(self):
        report = json.loads(self.verify("--json", "--source", self.source).stdout)
        self.assertEqual(set(report), KEYS)
        self.assertEqual((report["verdict"], report["method"], report["findings"]), ("equal", "decoded_and_compared", []))
        self.assertEqual((report["groups"], report["tensors"]), (1, 3))
        report = json.loads(self.verify("--json").stdout)
        self.assertEqual((report["source"], report["method"]), ("", "decoded_and_hashed"))
        self.flip("model_layers_0.safetensors")
        done = self.verify("--json")
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["verdict"], set(report)), (1, "not_equal", KEYS))
        self.assertEqual(set(report["findings"][0]), {"kind", "file", "tensor", "message"})

    def test_not_equal(self):
        self.flip("model_layers_0.safetensors")
        for args in [[], ["--source", self.source]]:
            done = self.verify(*args)
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            self.assertIn(": NOT EQUAL", done.stdout)
            self.assertIn("model_layers_0.safetensors", done.stdout)
            done = self.verify("--quiet", *args)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", ""))

    def test_corrupt(self):
        path = os.path.join(self.output, "model_layers_0.safetensors")
        with open(path, "r+b") as file:
            file.truncate(100)
        done = self.verify()
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("artifact_malformed", done.stdout)

    def test_cannot_check(self):
        self.assert_error(run("df11-verify", self.at("absent")), "no such directory")
        self.assert_error(self.verify("--source", self.at("absent")), "no such directory")
        self.assert_error(self.verify("--source", self.output), "DF11 artifact already")
        os.remove(os.path.join(self.output, "df11_manifest.json"))
        self.assert_error(self.verify(), "--source")

    def test_a_checkpoint_is_no_artifact(self):
        done = run("df11-verify", self.source)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("dfloat11_config", done.stdout + done.stderr)

    def test_ignored_files_are_named(self):
        self.flip("tokenizer/vocab.json")
        self.assertEqual(self.verify().returncode, 1)
        done = self.verify("--ignore", "tokenizer/*")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not checked (--ignore): tokenizer/vocab.json", done.stdout)
        self.assertEqual(json.loads(self.verify("--ignore", "tokenizer/*", "--json").stdout)["ignored_files"],
                         ["tokenizer/vocab.json"])

    def test_empty_source_argument(self):
        # A variable that a script forgot to set must not turn into the weaker check.
        self.assert_error(self.verify("--source", ""))


if __name__ == "__main__":
    unittest.main()
