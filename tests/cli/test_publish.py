"""df11-compress as a publisher uses it: model card, sizes of files, downloads with published hashes."""
import hashlib
import json
import os
import unittest

from cli_support import CliTest, gaussian_bf16, run, safetensors, tree, write_file

REVISION = "0123456789abcdef0123456789abcdef01234567"


def git_blob_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Card(CliTest):
    def card(self, *args):
        self.compress("--force", *args)
        with open(self.output + "/README.md", encoding="utf-8") as file:
            return file.read()

    def test_base_model(self):
        text = self.card("--base-model", "Org/Name")
        self.assertIn("base_model:\n  - Org/Name\nbase_model_relation: quantized\n", text)
        self.assert_verifies()
        self.assert_error(run("df11-compress", self.source, self.at("other"), "--base-model", "a/b/c"), "ORG/NAME")
        self.assert_nothing_left(["source", "output"])

    def test_summary_says_what_became_of_the_sources_card(self):
        write_file(self.source + "/README.md", "---\nlicense: [\n---\n")
        done = run("df11-compress", self.source, self.output)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("note: the source's README.md is kept as README.source.md", done.stdout)
        self.assertIn("nothing is taken from it", done.stdout)
        self.assert_verifies()

    def test_restored_directory_has_the_sources_card(self):
        write_file(self.source + "/README.md", "---\nlicense: mit\n---\n# Mine\n")
        for options in ([], ["--no-card"], ["--max-shard-size", "7KiB"]):
            with self.subTest(options=options):
                done = run("df11-compress", self.source, self.output, "--force", *options)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                done = run("df11-decompress", self.output, self.at("restored"), "--force", "--quiet")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(tree(self.at("restored")), tree(self.source))

    def test_no_card(self):
        self.compress("--no-card")
        self.assertFalse(os.path.exists(self.output + "/README.md"))
        self.assert_verifies()

    def test_nothing_to_compress(self):
        source = self.at("half")
        write_file(source + "/model.safetensors", safetensors({"layers.0.up.weight": ("F16", [64, 64], bytes(8192))}))
        done = run("df11-compress", source, self.output)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("note: nothing to compress", done.stdout)
        self.assertIn("dtype F16, not BF16", done.stdout)
        self.assertEqual(run("df11-verify", self.output, "--source", source).returncode, 0)


class MaxShardSize(CliTest):
    def shards(self, size):
        self.compress("--force", "--max-shard-size", size)
        self.assert_verifies()
        return sorted(name for name in os.listdir(self.output) if name.endswith(".safetensors"))

    def test_sizes(self):
        for size in ("5GB", "500MiB", "1TB", "100KB", "1000000"):
            with self.subTest(size=size):
                self.assertEqual(self.shards(size), ["model.safetensors"])
        self.assertEqual(self.shards("7KiB"), ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"])
        for name in self.shards("7500"):
            self.assertLessEqual(os.path.getsize(os.path.join(self.output, name)), 7500)

    def test_dry_run_names_nothing_and_predicts(self):
        done = run("df11-compress", self.source, "--dry-run", "--json", "--max-shard-size", "7KiB")
        self.shards("7KiB")
        size = sum(os.path.getsize(os.path.join(parent, name)) for parent, _, names in os.walk(self.output)
                   for name in names)
        self.assertEqual(json.loads(done.stdout)["artifact_bytes"], size)

    def test_sizes_that_are_none(self):
        for size in ("", "GB", "0", "0GB", "-1", "1.5GB", "5Gb", "5gb", "5 GB", "5GBx", "99999999999999999999",
                     "99999999999TB"):
            with self.subTest(size=size):
                done = run("df11-compress", self.source, self.output, f"--max-shard-size={size}")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("df11-compress: error: ", done.stderr)
                self.assert_nothing_left()


class Downloads(CliTest):
    def make_download(self):
        """The source as `hf download --local-dir` leaves it."""
        for parent, _, names in os.walk(self.source):
            for name in names:
                path = os.path.relpath(os.path.join(parent, name), self.source)
                with open(os.path.join(parent, name), "rb") as file:
                    content = file.read()
                tag = hashlib.sha256(content).hexdigest() if name.endswith(".safetensors") else git_blob_sha1(content)
                write_file(f"{self.dir}/records/{path}.metadata", f"{REVISION}\n{tag}\n1700000000.0\n")
        os.makedirs(self.source + "/.cache/huggingface")
        os.rename(self.at("records"), self.source + "/.cache/huggingface/download")

    def test_confirmed(self):
        self.make_download()
        done = run("df11-compress", self.source, "--dry-run")
        self.assertIn("5 of 5 files have a published hash to compare with", done.stdout)
        done = run("df11-compress", self.source, self.output)
        self.assertIn("5 of 5 files confirmed by their published hash", done.stdout)
        self.assert_verifies()
        with open(self.output + "/df11_manifest.json", encoding="utf-8") as file:
            files = json.load(file)["source_files"]
        for file in files:
            self.assertEqual((file["published"]["recorded_in"], file["published"]["revision"]),
                             ("download record", REVISION))
        self.assertFalse(os.path.exists(self.output + "/.cache"))

    def test_some_confirmed(self):
        self.make_download()
        os.remove(self.source + "/.cache/huggingface/download/config.json.metadata")
        write_file(self.source + "/mine.txt", "added")
        report = json.loads(run("df11-compress", self.source, self.output, "--json").stdout)
        self.assertEqual((report["published_files"], report["source_files"]), (4, 6))

    def test_damaged(self):
        self.make_download()
        for path in ("model-00001-of-00002.safetensors", "tokenizer/vocab.json", "config.json",
                     "model.safetensors.index.json"):
            with self.subTest(path=path):
                whole = f"{self.source}/{path}"
                with open(whole, "rb") as file:
                    content = file.read()
                at = content.rindex(b"\n") if content.endswith(b"\n") else len(content)
                write_file(whole, content[:-1] + b"\x01" if path.endswith("s") else content[:at] + b" " + content[at:])
                self.assert_error(run("df11-compress", self.source, self.output), "damaged, or changed after its download")
                self.assertEqual(os.listdir(self.dir), ["source"])
                write_file(whole, content)
        self.compress_again()

    def compress_again(self):
        done = run("df11-compress", self.source, self.output)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_large_file_is_hashed_whole(self):
        write_file(self.source + "/weights.bin", gaussian_bf16(1 << 20) + b"tail")
        self.make_download()
        self.compress_again()


if __name__ == "__main__":
    unittest.main()
