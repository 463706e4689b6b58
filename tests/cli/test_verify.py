"""df11-verify: exit codes 0, 1 and 2, text and JSON."""
import json
import os
import re
import subprocess
import unittest
import xml.etree.ElementTree

from cli_support import CliTest, run, safetensors, write_file

SPEC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../spec/verify_report.md")


def documented_keys():
    """Keys of the first table of the specification."""
    with open(SPEC, encoding="utf-8") as file:
        table = file.read().split("| key | value |")[1].split("\n\n")[0]
    return {key for line in table.splitlines() if line.startswith("| `")
            for key in re.findall(r"`(\w+)`", line.split("|")[1])}


def documented_kinds():
    with open(SPEC, encoding="utf-8") as file:
        table = file.read().split("| kind | meaning |")[1].split("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))


KEYS = documented_keys()


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
        self.assertLessEqual({finding["kind"] for finding in report["findings"]}, documented_kinds())
        self.assertEqual((report["passed"], report["proven_equal"]), (False, False))

    def test_json_of_every_kind_of_run(self):
        for args in [["--level", "structure"], ["--level", "structure", "--source", self.source], ["--lint"],
                     ["--ignore", "*"], ["--source", self.source, "--lint", "--threads", "1"]]:
            with self.subTest(args=args):
                done = self.verify("--json", *args)
                report = json.loads(done.stdout)
                self.assertEqual(set(report), KEYS)
                self.assertEqual((done.returncode, report["passed"]), (0, True))
                self.assertEqual(report["proven_equal"], "structure" not in args and "--ignore" not in args)
                self.assertEqual(report["lint"] is not None, "--lint" in args)

    def test_words_of_the_first_difference(self):
        path = os.path.join(self.source, "model-00002-of-00002.safetensors")
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0x80]))
        first = json.loads(self.verify("--json", "--source", self.source).stdout)["first_difference"]
        self.assertEqual((first["tensor"], first["element"], first["offset_bytes"]), ("model.norm.weight", 7, 28))
        self.assertEqual(int(first["artifact_word"], 16) ^ int(first["source_word"], 16), 0x80000000)
        self.assertRegex(first["source_word"], r"\A0x[0-9a-f]{8}\Z")

    def test_level_structure(self):
        done = self.verify("--level", "structure")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(": STRUCTURE OK, weights not checked: 3 tensors, 1 groups", done.stdout)
        self.assertIn("not checked (level structure): weights", done.stdout)
        self.assertNotIn("EQUAL", done.stdout)
        self.flip("model_layers_0.safetensors")  # a weight: only the full level looks at it
        self.assertEqual(self.verify("--level", "structure").returncode, 0)
        self.assertEqual(self.verify("--level", "full").returncode, 1)
        self.flip("df11_manifest.json", 100)  # the seal
        done = self.verify("--level", "structure")
        self.assertEqual(done.returncode, 1)
        self.assertIn(": STRUCTURE BROKEN", done.stdout)
        os.remove(os.path.join(self.output, "df11_manifest.json"))
        done = self.verify("--level", "structure")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not checked (no manifest and no source)", done.stdout)
        self.assert_error(self.verify("--level", "none"), "--level")

    def test_lint(self):
        done = self.verify("--lint")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("warning: verbatim_converted: model.safetensors: 'model.norm.weight'", done.stdout)
        self.assertIn("loader lint: 0 errors, 1 warnings", done.stdout)
        write_file(self.output + "/stray.safetensors", safetensors({"x": ("U8", [1], b"0")}))
        os.remove(os.path.join(self.output, "df11_manifest.json"))
        done = self.verify("--lint", "--level", "structure")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: stray_shard: stray.safetensors", done.stdout)
        report = json.loads(self.verify("--lint", "--level", "structure", "--json").stdout)
        self.assertEqual(sorted(report["lint"][0]), ["file", "message", "module", "rule", "severity"])
        with open(SPEC, encoding="utf-8") as file:
            text = file.read()
        for finding in report["lint"]:
            self.assertIn(f"| `{finding['rule']}` |", text)

    def test_published_hashes(self):
        listing = self.at("SHA256SUMS")
        with open(listing, "wb") as file:
            subprocess.run("find . -type f -print0 | xargs -0 sha256sum", shell=True, cwd=self.source, stdout=file, check=True)
        done = self.verify("--expect-source-sha256", listing)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("recomputed from the artifact: 5 of 5", done.stdout)
        report = json.loads(self.verify("--expect-source-sha256", listing, "--json").stdout)
        self.assertEqual((set(report), report["proven_equal"]), (KEYS, True))
        self.assertEqual(report["expected_source_sha256"], {"listed": 5, "equal": 5, "bytes": sum(
            os.path.getsize(os.path.join(self.source, path)) for path, digest in self.source_tree.items() if digest)})
        with open(listing, "a", encoding="utf-8") as file:
            file.write("0" * 64 + "  .gitattributes\n")
        self.assertEqual(self.verify("--expect-source-sha256", listing).returncode, 1)
        done = self.verify("--expect-source-sha256", listing, "--ignore", ".gitattributes")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not checked (--ignore): .gitattributes", done.stdout)
        self.flip("model_layers_0.safetensors")
        done = self.verify("--expect-source-sha256", listing)
        self.assertEqual(done.returncode, 1)
        self.assertIn("source_sha256_differs: model-00001-of-00002.safetensors: ", done.stdout)
        self.assert_error(self.verify("--expect-source-sha256", listing, "--level", "structure"), "level full")
        self.assert_error(self.verify("--expect-source-sha256", self.source + "/config.json"), "line 1")
        self.assert_error(self.verify("--expect-source-sha256", self.at("absent")), "absent")

    def test_junit(self):
        path = self.at("report.xml")
        for damaged in (False, True):
            if damaged:
                self.flip("model_layers_0.safetensors")
            done = self.verify("--junit", path, "--quiet", "--lint")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (int(damaged), "", ""))
            suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
            cases = suite.findall("testcase")
            self.assertEqual(len(cases), int(suite.get("tests")))
            self.assertEqual(len(suite.findall("testcase/failure")), int(suite.get("failures")))
            self.assertEqual(int(suite.get("failures")) > 0, damaged)
            self.assertEqual(len(suite.findall("testcase/skipped")), int(suite.get("skipped")))
        self.assert_error(self.verify("--quiet", "--junit", self.at("absent/report.xml")), "cannot write")
        self.assert_error(self.verify("--junit", ""), "--junit")

    def test_github(self):
        path = self.at("summary.md")
        env = {"GITHUB_STEP_SUMMARY": path}
        write_file(path, "before\n")
        done = run("df11-verify", self.output, "--github", "--lint", env=env)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"\A::warning title=[^\n]*::loader lint: [^\n]*\n\Z")
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"\Abefore\n### \S+ [^\n]*: EQUAL\n")
        for i in range(30):
            write_file(f"{self.output}/new {i}%,:\r\n|<b>.txt", "x")
        done = run("df11-verify", self.output, "--github", "--json", env=env)
        self.assertEqual(done.returncode, 1)
        json.loads(done.stdout)  # the annotations are on the other stream
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 10)
        for line in lines[:9]:
            self.assertRegex(line, r"\A::error title=[^:,]*::file_unlisted: new \d+%25,:\\x0d\\x0a\|<b>.txt: ")
        self.assertIn("and 21 more", lines[9])
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(": NOT EQUAL\n", text)
        self.assertNotIn("<b>", text)
        self.assert_error(run("df11-verify", self.output, "--github", env={"GITHUB_STEP_SUMMARY": ""}),
                          "GITHUB_STEP_SUMMARY")

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
