"""What surrounds a run must not change its output: locale, time zone, umask, threads; closed and full
standard streams."""
import json
import os
import resource
import shutil
import subprocess
import unittest

from cli_support import CliTest, gaussian_bf16, program, run, safetensors, tree, write_file

BENCH = ["--cpu", "--elements", "65536", "--rounds", "1", "--threads", "1"]


class Surroundings(CliTest):
    def test_bytes_do_not_depend_on_them(self):
        for number, args in enumerate([[], ["--granularity", "block"], ["--max-shard-size", "6KB", "--base-model", "O/N"]]):
            with self.subTest(args=args):
                self.check_bytes(self.at(f"run{number}"), args)

    def check_bytes(self, directory, args):
        artifact = directory + "/artifact"
        os.mkdir(directory)
        run("df11-compress", self.source, artifact, *args)
        first = tree(artifact)
        self.assertIn("df11_manifest.json", first)
        # Turkish: other case rules, decimal comma. Compiled here if the system has its source.
        if has_localedef():
            subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", f"{directory}/tr_TR.UTF-8"],
                           capture_output=True, check=False)
        turkish = {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}
        if os.path.isdir(f"{directory}/tr_TR.UTF-8"):
            turkish["LOCPATH"] = directory
        for number, (env, options, *threads) in enumerate([
                (turkish, {}), ({"LC_ALL": "C"}, {}), ({"TZ": "Pacific/Kiritimati"}, {}), ({}, {"umask": 0o077}),
                ({"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}, {}), ({"TERM": "dumb", "COLUMNS": "3"}, {}), ({}, {}, "1"), ({}, {}, "2")]):
            with self.subTest(env=env, options=options, threads=threads):
                output, restored = f"{directory}/out{number}", f"{directory}/restored{number}"
                threads = ["--threads", *threads] if threads else []
                done = run("df11-compress", self.source, output, *args, *threads, env=env, **options)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(tree(output), first)
                done = run("df11-decompress", output, restored, *threads, env=env, **options)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(tree(restored), self.source_tree)
        done = run("df11-verify", artifact, "--json", env=turkish)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r'"seconds": \d+\.\d')

    def test_more_files_than_are_open_by_default(self):
        shutil.rmtree(self.source)
        rows = 80
        for layer in range(40):
            name = f"model.layers.{layer}.mlp.up_proj.weight"
            write_file(f"{self.source}/{layer}.safetensors",
                       safetensors({name: ("BF16", [rows, 64], gaussian_bf16(rows * 64, layer))}))
        index = {f"model.layers.{layer}.mlp.up_proj.weight": f"{layer}.safetensors" for layer in range(40)}
        write_file(f"{self.source}/model.safetensors.index.json", json.dumps({"weight_map": index}))
        self.source_tree = tree(self.source)
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        restored = self.at("restored")
        for command in (["df11-compress", self.source, self.output], ["df11-verify", self.output, "--source", self.source],
                        ["df11-decompress", self.output, restored]):
            done = run(*command, preexec_fn=limit)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(len(tree(self.output)), 40)
        self.assertEqual(tree(restored), self.source_tree)

    def test_empty_environment(self):
        done = subprocess.run([program("df11-compress"), self.source, self.output], env={}, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


def has_localedef():
    try:
        subprocess.run(["localedef", "--version"], capture_output=True, check=True)
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


class StandardOutput(CliTest):
    def runs(self):
        self.compress("--quiet")
        return [["df11-compress", self.source, "--dry-run"], ["df11-compress", self.source, "--dry-run", "--json"],
                ["df11-verify", self.output], ["df11-verify", self.output, "--json"], ["df11-inspect", self.output],
                ["df11-inspect", self.source, "--json"], ["df11-bench", *BENCH], ["df11-bench", *BENCH, "--json"]]

    def test_full(self):
        for args in self.runs():
            with self.subTest(args=args), open("/dev/full", "w", encoding="utf-8") as full:
                self.assertEqual(run(*args, stdout=full).returncode, 2)

    def test_closed(self):
        for args in self.runs():
            with self.subTest(args=args):
                self.assertEqual(run(*args, preexec_fn=lambda: os.close(1)).returncode, 2)

    def test_help_into_a_full_disk(self):
        for args in [["df11-compress", "--help"], ["df11-verify", "--version"]]:
            with self.subTest(args=args), open("/dev/full", "w", encoding="utf-8") as full:
                self.assertEqual(run(*args, stdout=full).returncode, 2)

    def test_quiet_needs_no_standard_output(self):
        self.compress("--quiet")
        done = run("df11-verify", self.output, "--quiet", preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 0)

    def test_closed_streams_do_not_end_up_in_files(self):
        """With 0, 1 and 2 closed, files get these descriptors: nothing may be printed into them."""
        def close_all():
            for fd in (0, 1, 2):
                os.close(fd)
        done = run("df11-compress", self.source, self.output, preexec_fn=close_all)
        self.assertEqual(done.returncode, 2)  # the summary could not be printed
        self.assert_source_untouched()
        self.assert_verifies()
        os.remove(self.source + "/config.json")
        with open(self.source + "/config.json", "w", encoding="utf-8") as file:
            file.write("{")
        before = tree(self.source)
        run("df11-compress", self.source, self.at("out2"), preexec_fn=close_all)
        self.assertEqual(tree(self.source), before)


if __name__ == "__main__":
    unittest.main()
