"""--help, --version and bad usage of every program."""
import unittest

from cli_support import PROGRAMS, VERSION, CliTest, run


class Arguments(CliTest):
    def test_help(self):
        for name in PROGRAMS:
            done = run(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("Usage:" if "Usage:" in done.stdout else "Options:", done.stdout)
            self.assertIn("--help", done.stdout)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 120, f"{name}: {line}")

    def test_help_names_exit_codes(self):
        for name in ["df11-compress", "df11-decompress", "df11-verify", "df11-inspect"]:
            self.assertIn("Exit codes:", run(name, "--help").stdout, name)

    def test_version(self):
        for name in PROGRAMS:
            done = run(name, "--version")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, VERSION + "\n", ""), name)

    def test_bad_usage(self):
        source, output = self.source, self.output
        for name, *args in [
            ["df11-compress"], ["df11-compress", source], ["df11-compress", source, output, "extra"],
            ["df11-compress", source, output, "--no-such-option"],
            ["df11-compress", source, output, "--threads", "0"],
            ["df11-compress", source, output, "--threads", "-1"],
            ["df11-compress", source, output, "--threads", "x"],
            ["df11-compress", source, output, "--threads"],
            ["df11-compress", source, output, "--granularity", "layer"],
            ["df11-compress", source, output, "--granularity", "block", "--pattern-dict", "f.json"],
            ["df11-compress", source, output, "--include", "*", "--pattern-dict", "f.json"],
            ["df11-verify"], ["df11-verify", source, output], ["df11-verify", source, "--source"],
            ["df11-inspect"], ["df11-inspect", source, output],
            ["df11-bench"], ["df11-bench", "--elements", "65536"], ["df11-bench", "--cpu", "--elements", "1"],
            ["df11-bench", "--cpu", "--rounds", "0"],
        ]:
            with self.subTest(program=name, args=args):
                done = run(name, *args)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertNotEqual(done.stderr, "")
                self.assertNotIn("terminate", done.stderr)
                self.assert_nothing_left()

    def test_bad_usage_is_said_like_every_error(self):
        for name in PROGRAMS:
            with self.subTest(program=name):
                self.assertTrue(run(name, "--no-such-option").stderr.startswith(f"{name}: error: "))

    def test_double_dash_ends_options(self):
        done = run("df11-compress", "--dry-run", "--", self.source)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
