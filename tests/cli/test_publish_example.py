"""examples/publish.yml: its shell steps, run in order as GitHub Actions does. The site, the hub and cosign are
stand-ins that write down how they were called; the programs are the real ones."""
import json
import os
import re
import subprocess
import unittest

from cli_support import BIN, CliTest, run

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/publish.yml")
BUILD = "Build the tools"  # needs a network; the programs under test stand in for what it builds


def steps():
    """(name, shell text or None) of each step. Reads the two forms of `run:` that the example uses."""
    with open(EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    found = []
    for step in re.split(r"^      - name: ", text.split("    steps:\n")[1], flags=re.MULTILINE)[1:]:
        name = step.split("\n")[0]
        block = re.search(r"^        run: \|\n((?:          .*\n?|\n)+)", step, re.MULTILINE)
        line = re.search(r"^        run: (?!\|)(.*)$", step, re.MULTILINE)
        shell = re.sub(r"^ {10}", "", block.group(1), flags=re.MULTILINE) if block else line.group(1) if line else None
        found.append((name, shell))
    return found


class PublishExample(CliTest):
    def setUp(self):
        super().setUp()
        self.calls = self.at("calls")
        os.mkdir(self.at("stubs"))
        self.stub("hf", 'if [ "$1" = download ]; then cp -r "$DF11_TEST_SOURCE" "${@: -1}"; fi')
        self.stub("cosign", "touch df11_manifest.sigstore.json")
        os.mkdir(self.at("work"))
        self.env = {**os.environ, "PATH": f"{self.at('stubs')}:{BIN}:{os.environ['PATH']}",
                    "GITHUB_STEP_SUMMARY": self.at("summary.md"), "DF11_TEST_SOURCE": self.source,
                    "SOURCE_REPO": "owner/model", "REVISION": "main", "TARGET_REPO": "owner/model-DF11"}

    def stub(self, name, body):
        path = os.path.join(self.at("stubs"), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/bash\necho {name} "$@" >> {self.calls}\n{body}\n')
        os.chmod(path, 0o755)

    def run_steps(self, before_step=None):
        """Runs the steps until one fails; returns the names of those that ended well."""
        done = []
        for name, shell in steps():
            if shell is None or name == BUILD:
                continue
            if before_step:
                before_step(name)
            # As `shell: bash` runs a step.
            result = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", shell], cwd=self.at("work"),
                                    env=self.env, capture_output=True, text=True, timeout=120, check=False)
            self.output_of = result.stdout + result.stderr
            if result.returncode != 0:
                return done
            done.append(name)
        return done

    def calls_made(self):
        with open(self.calls, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_a_good_artifact_is_published(self):
        self.assertEqual(self.run_steps(), ["Download", "Compress", "Verify", "Sign", "Publish"], self.output_of)
        self.assertEqual(self.calls_made(), [
            "hf download owner/model --revision main --local-dir source",
            "cosign sign-blob --yes --bundle df11_manifest.sigstore.json artifact/df11_manifest.json",
            "hf upload owner/model-DF11 artifact",
            "hf upload owner/model-DF11 df11_manifest.sigstore.json"])
        with open(self.at("work/df11-verify.json"), encoding="utf-8") as file:
            self.assertTrue(json.load(file)["proven_equal"])
        self.assertTrue(os.path.getsize(self.at("work/df11-verify.xml")) > 0)
        with open(self.at("summary.md"), encoding="utf-8") as file:
            self.assertIn("EQUAL", file.read())

    def test_a_damaged_artifact_is_not(self):
        def damage(step):
            if step == "Verify":
                with open(self.at("work/artifact/model_layers_0.safetensors"), "r+b") as file:
                    file.seek(-1, os.SEEK_END)
                    byte = file.read(1)[0]
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte ^ 1]))

        self.assertEqual(self.run_steps(damage), ["Download", "Compress"])
        self.assertIn("::error ", self.output_of)
        self.assertEqual([call.split()[1] for call in self.calls_made()], ["download"])
        with open(self.at("work/df11-verify.json"), encoding="utf-8") as file:
            self.assertFalse(json.load(file)["passed"])
        with open(self.at("summary.md"), encoding="utf-8") as file:
            self.assertIn("NOT EQUAL", file.read())

    def test_what_the_workflow_relies_on(self):
        names = [name for name, _ in steps()]
        self.assertLess(names.index("Verify"), names.index("Sign"))
        self.assertLess(names.index("Sign"), names.index("Publish"))
        with open(EXAMPLE, encoding="utf-8") as file:
            self.assertEqual(file.read().count("        if: "), 1)  # only the reports are kept after a failure
        for name, shell in steps():
            self.assertNotIn("${{", shell or "", name)  # an input could hold commands


class Manifest(CliTest):
    """What README.md says of the manifest as what is signed."""

    def sha256sum_check(self):
        listing = "jq -r '.files[] | \"\\(.sha256)  \\(.path)\"' df11_manifest.json | sha256sum --check --quiet --strict"
        return subprocess.run(["bash", "-eo", "pipefail", "-c", listing], cwd=self.output, capture_output=True, text=True,
                              timeout=60, check=False)

    def test_files_are_checked_without_our_programs(self):
        if subprocess.run(["which", "jq"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no jq")
        self.compress()
        self.assertEqual(self.sha256sum_check().returncode, 0)
        with open(self.output + "/config.json", "a", encoding="utf-8") as file:
            file.write(" ")
        self.assertNotEqual(self.sha256sum_check().returncode, 0)

    def test_a_signature_in_the_directory_is_named_and_ignored(self):
        self.compress()
        with open(self.output + "/df11_manifest.sigstore.json", "w", encoding="utf-8") as file:
            file.write("{}")
        self.assertEqual(run("df11-verify", self.output).returncode, 1)
        self.assertEqual(run("df11-verify", self.output, "--ignore", "df11_manifest.sigstore.json").returncode, 0)


if __name__ == "__main__":
    unittest.main()
