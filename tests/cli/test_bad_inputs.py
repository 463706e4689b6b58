"""Inputs that cannot be compressed: exit 2, one line on stderr, nothing anywhere else."""
import json
import os
import shutil
import unittest

from cli_support import CliTest, as_nobody, gaussian_bf16, run, safetensors, write_file

FIRST = "model-00001-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


class BadInputs(CliTest):
    def refused(self, contains, *args):
        """Both the dry run and the real one refuse; df11-inspect, too."""
        self.source_tree = {}
        self.assert_error(run("df11-compress", self.source, self.output, *args), contains)
        self.assert_error(run("df11-compress", self.source, "--dry-run", *args), contains)
        if not args:
            self.assert_error(run("df11-inspect", self.source), contains)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("output")], [])

    def edit_index(self, edit):
        path = os.path.join(self.source, INDEX)
        with open(path, encoding="utf-8") as file:
            index = json.load(file)
        edit(index["weight_map"])
        write_file(path, json.dumps(index))

    def test_missing_directory(self):
        shutil.rmtree(self.source)
        self.refused("no such directory")

    def test_empty_directory(self):
        shutil.rmtree(self.source)
        os.mkdir(self.source)
        self.refused("no .safetensors file")

    def test_file_instead_of_directory(self):
        shutil.rmtree(self.source)
        write_file(self.source, "x")
        self.refused("no such directory")

    def test_truncated_shard(self):
        path = os.path.join(self.source, FIRST)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 1)
        self.refused(FIRST)

    def test_not_safetensors(self):
        for content in [b"", b"PK\x03\x04", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", b"\xff" * 100]:
            write_file(os.path.join(self.source, FIRST), content)
            self.refused(FIRST)

    def test_unknown_dtype(self):
        write_file(os.path.join(self.source, FIRST), safetensors({"a.weight": ("BF17", [2], b"1234")}))
        self.refused("BF17")

    def test_index_names_absent_shard(self):
        os.remove(os.path.join(self.source, FIRST))
        self.refused(FIRST)

    def test_index_leaves_the_directory(self):
        for name in ["../" + FIRST, "/etc/passwd", "a/../../x.safetensors"]:
            self.edit_index(lambda weight_map: weight_map.update({"model.norm.weight": name}))
            self.refused("leaves the directory")

    def test_index_and_shards_disagree(self):
        self.edit_index(lambda weight_map: weight_map.update({"ghost.weight": FIRST}))
        self.refused("ghost.weight")

    def test_stray_safetensors(self):
        write_file(os.path.join(self.source, "adapter.safetensors"), safetensors({}))
        self.refused("adapter.safetensors")

    def test_config_is_no_json(self):
        write_file(os.path.join(self.source, "config.json"), "{")
        self.refused("config.json")

    def test_source_is_df11_already(self):
        self.compress()
        os.rename(self.source, self.at("original"))
        os.rename(self.output, self.source)
        self.source_tree = {}
        done = run("df11-compress", self.source, self.output)
        self.assert_error(done, "DF11 artifact already")

    def test_include_of_what_no_group_can_hold(self):
        self.refused("rank 1", "--include", "*norm*")

    def test_pattern_dict(self):
        path = self.at("patterns.json")
        for content, message in [("{", "not valid JSON"), ("[]", "is no object"), ('{"a": 1}', "are no list"),
                                 ('{"a": [1]}', "is no string"), ('{"pattern_dict": []}', "is no object"),
                                 ('{"visual": []}', 'pattern "visual" matches no module'),
                                 ('{"(": []}', "does not compile"),
                                 ('{"model.layers.0": ["mlp.down_proj"]}', "does not have")]:
            with self.subTest(content=content):
                write_file(path, content)
                self.assert_error(run("df11-compress", self.source, self.output, "--pattern-dict", path), message)
        self.assert_error(run("df11-compress", self.source, self.output, "--pattern-dict", self.at("none")), "none")

    def test_root_of_a_pipeline(self):
        pipeline = self.at("pipeline")
        write_file(pipeline + "/model_index.json", "{}")
        self.assert_error(run("df11-compress", pipeline, self.output), "without .safetensors files")
        for component in ("transformer", "text_encoder"):
            shutil.copytree(self.source, os.path.join(pipeline, component))
        shutil.copy(os.path.join(self.source, FIRST), pipeline)  # as some pipelines have beside them
        done = run("df11-compress", pipeline, self.output)
        self.assert_error(done, "text_encoder, transformer")
        self.assertIn(f"df11-compress {pipeline}/transformer OUTPUT", done.stderr)
        shutil.rmtree(pipeline + "/transformer")
        self.assert_error(run("df11-compress", pipeline, self.output), "/text_encoder OUTPUT")

    def test_existing_output(self):
        for make in [os.mkdir, lambda path: write_file(path, "x"), lambda path: os.symlink("nowhere", path)]:
            make(self.output)
            self.assert_error(run("df11-compress", self.source, self.output), "the output exists")
            self.assert_error(run("df11-compress", self.source, self.output, "--force"), "this is none")
            self.assert_nothing_left(["source", "output"])
            (os.rmdir if os.path.isdir(self.output) else os.remove)(self.output)

    def test_output_that_cannot_be_made(self):
        write_file(self.at("file"), "x")
        for path in [self.at("file/output"), "/proc/output", self.at("a" * 300), self.at("a" * 250), ""]:
            with self.subTest(path=path):
                self.assert_error(run("df11-compress", self.source, path))
        self.assert_nothing_left(["source", "file"])

    def test_errors_are_one_line_whatever_the_names(self):
        name = self.at("no\nsuch\x1b[31mdirectory")
        self.assert_error(run("df11-compress", name, self.output))
        write_file(os.path.join(self.source, FIRST),
                   safetensors({"a\nb\x1b[31m.weight": ("BF16", [2, 2], gaussian_bf16(3))}))
        done = run("df11-compress", self.source, self.output)
        self.assert_error(done)
        self.assertNotIn("\x1b", done.stderr)

    def test_tensor_name_that_is_an_absolute_path(self):
        name = self.at("escaped") + ".0.x.weight"
        shutil.rmtree(self.source)
        write_file(self.at("source/model.safetensors"), safetensors({name: ("BF16", [64, 64], gaussian_bf16(4096))}))
        done = run("df11-compress", self.source, self.output)
        self.assertIn(done.returncode, (0, 2))
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("escaped")], [])


class Permissions(CliTest):
    def setUp(self):
        super().setUp()
        self.nobody = as_nobody()
        if self.nobody is None:
            self.skipTest("the programs cannot be run without root's rights here")
        self.open_dir = self.at("open")
        os.mkdir(self.open_dir)
        os.chmod(self.open_dir, 0o777)

    def test_unreadable_file(self):
        for name in [FIRST, "config.json", "tokenizer/vocab.json", INDEX]:
            path = os.path.join(self.source, name)
            os.chmod(path, 0)
            done = run("df11-compress", self.source, self.open_dir + "/output", **self.nobody)
            self.assert_error(done, "Permission denied")
            self.assertIn(os.path.basename(name), done.stderr)
            os.chmod(path, 0o644)
        self.assertEqual(os.listdir(self.open_dir), [])

    def test_unreadable_directory(self):
        os.chmod(self.source + "/tokenizer", 0)
        self.assert_error(run("df11-compress", self.source, self.open_dir + "/output", **self.nobody), "Permission denied")
        os.chmod(self.source + "/tokenizer", 0o755)
        os.chmod(self.source, 0)
        self.assert_error(run("df11-compress", self.source, self.open_dir + "/output", **self.nobody))
        os.chmod(self.source, 0o755)

    def test_output_in_a_directory_without_rights(self):
        closed = self.at("closed")
        os.makedirs(closed + "/output")
        for mode in [0o555, 0o700, 0]:
            os.chmod(closed, mode)
            os.chown(closed, 0, 0) if os.geteuid() == 0 else None
            with self.subTest(mode=oct(mode)):
                done = run("df11-compress", self.source, closed + "/new", **self.nobody)
                self.assert_error(done, "Permission denied")
        os.chmod(closed, 0o755)
        os.chmod(closed + "/output", 0o700 if os.geteuid() == 0 else 0)
        self.assert_error(run("df11-compress", self.source, closed + "/output", "--force", **self.nobody))
        os.chmod(closed + "/output", 0o755)

    def test_read_only_source(self):
        os.chmod(self.source, 0o555)
        done = run("df11-compress", self.source, self.open_dir + "/output", **self.nobody)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_verifies(self.open_dir + "/output")
        os.chmod(self.source, 0o755)


if __name__ == "__main__":
    unittest.main()
