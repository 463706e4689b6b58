"""df11-compress where it succeeds: what it prints and what it writes."""
import json
import os
import unittest

from cli_support import CliTest, gaussian_bf16, run, safetensors, tree, write_file, write_tiny_checkpoint

KEYS = {"report", "schema_version", "tool_version", "dry_run", "source", "output", "source_bytes", "artifact_bytes",
        "source_weight_bytes", "grouped_weight_bytes", "stored_group_bytes", "seconds", "groups", "verbatim",
        "omitted_files", "lint", "source_files", "published_files", "reused_files",
        "notes"}


class Compress(CliTest):
    def size_of_output(self):
        return sum(os.path.getsize(os.path.join(self.output, path))
                   for path, digest in tree(self.output).items() if digest)

    def test_text(self):
        done = self.compress()
        self.assertIn("1 tensors in 1 groups", done.stdout)
        self.assertIn("rank 1, not a matrix", done.stdout)
        self.assert_verifies()
        self.assert_nothing_left(["source", "output"])

    def test_quiet(self):
        self.assertEqual(self.compress("--quiet").stdout, "")
        self.assertEqual(json.loads(self.compress("--quiet", "--json", "--force").stdout)["report"], "df11-compress")

    def test_json(self):
        done = self.compress("--json")
        report = json.loads(done.stdout)
        self.assertEqual(set(report), KEYS)
        self.assertEqual((report["report"], report["schema_version"], report["dry_run"]), ("df11-compress", 1, False))
        self.assertEqual(report["artifact_bytes"], self.size_of_output())
        self.assertEqual([group["module"] for group in report["groups"]], ["model.layers.0.mlp.up_proj"])
        self.assertEqual(set(report["groups"][0]), {"module", "file", "elements", "code_bytes", "exponent_entropy_bits",
                                                    "longest_code_bits"})
        self.assertEqual([entry["name"] for entry in report["verbatim"]],
                         ["model.layers.0.norm.weight", "model.norm.weight"])

    def test_dry_run(self):
        done = run("df11-compress", self.source, "--dry-run", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_nothing_left()
        report = json.loads(done.stdout)
        self.assertEqual((set(report), report["dry_run"]), (KEYS, True))
        self.compress()
        self.assertEqual(report["artifact_bytes"], self.size_of_output())
        self.assertIn("nothing was written", run("df11-compress", self.source, "--dry-run").stdout)

    def test_what_the_dfloat11_package_cannot_load_is_said(self):
        config = self.source + "/config.json"
        write_file(config, '{"tie_word_embeddings": true}')
        weights = safetensors({"lm_head.weight": ("BF16", [64, 64], gaussian_bf16(64 * 64))})
        for name in os.listdir(self.source):
            if "safetensors" in name:
                os.remove(os.path.join(self.source, name))
        write_file(self.source + "/model.safetensors", weights)
        self.source_tree = tree(self.source)
        args = [self.source, self.output, "--include", "lm_head*", "--force"]
        done = run("df11-compress", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("for the dfloat11 package: error: tied_weight_coded: lm_head.safetensors: 'lm_head':", done.stdout)
        done = run("df11-compress", *args, "--quiet")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertRegex(done.stderr, r"\Adf11-compress: warning: [^\n]*tied_weight_coded[^\n]*\n\Z")
        done = run("df11-compress", *args, "--quiet", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([(f["rule"], f["severity"]) for f in json.loads(done.stdout)["lint"]],
                         [("tied_weight_coded", "error")])
        dry = run("df11-compress", self.source, "--dry-run", "--include", "lm_head*", "--json")
        self.assertEqual(json.loads(dry.stdout)["lint"], json.loads(done.stdout)["lint"])
        self.assert_nothing_left(["source", "output"])

    def test_force(self):
        self.compress()
        before = tree(self.output)
        self.assert_error(run("df11-compress", self.source, self.output), "--force")
        self.compress("--force", "--quiet")
        self.assertEqual(tree(self.output), before)
        self.assert_nothing_left(["source", "output"])

    def test_include_exclude_omit(self):
        done = self.compress("--exclude", "*up_proj*", "--omit", "tokenizer/*", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["groups"], [])
        self.assertEqual(report["omitted_files"], ["tokenizer/vocab.json"])
        self.assertFalse(os.path.exists(self.output + "/tokenizer"))
        done = run("df11-verify", self.output, "--source", self.source, "--json")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(json.loads(done.stdout)["notes"], ["left out when it was compressed: tokenizer/vocab.json"])

    def make_model(self):
        self.source = self.at("model")
        made = run("df11-make-checkpoint", self.source, "--layers", "2", "--hidden", "128", "--vocab", "1024")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.source_tree = tree(self.source)

    def groups_and_patterns(self):
        with open(self.output + "/config.json", encoding="utf-8") as file:
            patterns = json.load(file)["dfloat11_config"]["pattern_dict"]
        done = run("df11-inspect", self.output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {group["module"]: group["elements"] for group in json.loads(done.stdout)["groups"]}, patterns

    def test_granularity_block(self):
        self.make_model()
        self.compress("--granularity", "block")
        self.assert_verifies()
        self.assertEqual(run("df11-verify", self.output).returncode, 0)
        groups, patterns = self.groups_and_patterns()
        self.assertEqual(groups, {"lm_head": 131072, "model.embed_tokens": 131072,
                                  "model.layers.0": 393216, "model.layers.1": 393216})
        self.assertEqual(list(patterns), ["lm_head", "model.embed_tokens", "model.layers.\\d+"])
        with open(self.output + "/df11_manifest.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["settings"]["granularity"], "block")

    def test_pattern_dict(self):
        self.make_model()
        patterns = {"model\\.layers\\.\\d++": ["mlp.down_proj", "mlp.up_proj"]}
        for name, content in [("plain", patterns), ("wrapped", {"pattern_dict": patterns}),
                              ("config", {"dfloat11_config": {"pattern_dict": patterns}})]:
            with self.subTest(form=name):
                write_file(self.at(name + ".json"), json.dumps(content))
                done = self.compress("--pattern-dict", self.at(name + ".json"), "--force")
                self.assertIn("in no pattern of --pattern-dict", done.stdout)
                self.assert_verifies()
                self.assertEqual(self.groups_and_patterns(),
                                 ({"model.layers.0": 196608, "model.layers.1": 196608}, patterns))

    def test_dry_run_names_what_stays_verbatim(self):
        self.make_model()
        lines = run("df11-compress", self.source, "--dry-run").stdout.splitlines()
        self.assertIn("    9 tensors, 1.79 kB: rank 1, not a matrix", lines)
        self.assertIn("      model.layers.*.input_layernorm.weight (2)", lines)
        self.assertIn("      model.norm.weight", lines)

    def test_sub_directories_and_permissions_of_files(self):
        os.chmod(self.source + "/tokenizer/vocab.json", 0o600)
        self.compress()
        mode = os.stat(self.output + "/config.json").st_mode & 0o777
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual(mode, 0o666 & ~umask)

    def test_larger_model(self):
        made = run("df11-make-checkpoint", self.at("model"), "--layers", "3", "--hidden", "128", "--vocab", "1024",
                   "--max-shard-bytes", "1000000")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.source = self.at("model")
        self.source_tree = tree(self.source)
        self.compress()
        self.assert_verifies()
        self.assertEqual(run("df11-verify", self.output).returncode, 0)


class Paths(CliTest):
    def test_relative_trailing_slash_space_and_unicode(self):
        odd = self.at("with space/caf\u00e9 \u6f22 'quoted' --x")
        write_tiny_checkpoint(odd)
        for source, output in [("source", "out1"), ("./source/", "out2/"), ("source//", "./out3//"),
                               (os.path.relpath(odd, self.dir), "out 4 \u6f22"), ("source/../source", "new/out5")]:
            with self.subTest(source=source, output=output):
                done = run("df11-compress", source, output, cwd=self.dir)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assert_verifies(os.path.join(self.dir, output))
                self.assertEqual([n for n in os.listdir(self.dir) if "partial" in n], [])

    def test_directory_as_current_directory(self):
        done = run("df11-compress", ".", "../output", cwd=self.source)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run("df11-verify", ".", cwd=self.output)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_name_that_is_not_utf8(self):
        output = os.fsencode(self.dir) + b"/out\xe9"
        done = run("df11-compress", self.source, output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout)

    def test_symbolic_links(self):
        os.symlink("source", self.at("link"))
        done = run("df11-compress", self.at("link"), self.output)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        os.mkdir(self.at("real"))
        os.symlink("real", self.at("parent"))
        self.assertEqual(run("df11-compress", self.source, self.at("parent/out")).returncode, 0)
        self.assertTrue(os.path.isdir(self.at("real/out")))


if __name__ == "__main__":
    unittest.main()
