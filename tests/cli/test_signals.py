"""SIGINT and SIGTERM at every stage: exit 130 or 143, nothing left that looks finished. The shim raises the signal inside the
program just before a chosen system call, so that nothing depends on timing."""
import os
import signal
import subprocess
import unittest

from cli_support import SHIM, CliTest, program, run, tree


class Signals(CliTest):
    def test_compress(self):
        n_writes = self.call_counts("df11-compress", self.source, self.output)["pwrite"]
        subprocess.run(["rm", "-r", self.output], check=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            for n in range(1, n_writes + 1):
                with self.subTest(signal=number.name, n=n):
                    done = run("df11-compress", self.source, self.output, "--threads", "1",
                               fault=f"pwrite:{n}:SIG{int(number)}")
                    if done.returncode == 0:
                        # After the last tensor there is nothing left to stop: complete is as good.
                        self.assertGreater(n, n_writes - 4)
                        self.assert_verifies()
                        subprocess.run(["rm", "-r", self.output], check=True)
                    else:
                        self.assert_stopped(done, number, self.output)
                    self.assert_nothing_left()

    def test_forced_replacement_keeps_the_old_artifact(self):
        self.compress()
        before = tree(self.output)
        done = run("df11-compress", self.source, self.output, "--force", "--exclude", "*", fault="pwrite:3:SIG15")
        self.assert_stopped(done, signal.SIGTERM, self.output)
        self.assertEqual(tree(self.output), before)
        self.assert_nothing_left(["source", "output"])

    def test_verify_and_inspect(self):
        self.compress()
        for name in ("df11-verify", "df11-inspect"):
            n_reads = self.call_counts(name, self.output)["pread"]
            for number, n in [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, n_reads), (signal.SIGTERM, n_reads // 2)]:
                with self.subTest(program=name, signal=number.name, n=n):
                    done = run(name, self.output, "--threads", "1", fault=f"pread:{n}:SIG{int(number)}")
                    self.assertEqual((done.returncode, done.stdout), (128 + number, ""))

    def test_reader_that_goes_away(self):
        """As in `df11-inspect DIR | head -1`: no message, no hang."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = run("df11-inspect", self.source, stdout=write_end)
        os.close(write_end)
        self.assertIn(done.returncode, (-signal.SIGPIPE, 2))
        self.assertEqual(done.stderr, "")


class SourceChanges(CliTest):
    """The program is stopped in the middle of reading, its source is changed, and it goes on."""

    def compress_while(self, change, n):
        environment = {**os.environ, "LD_PRELOAD": SHIM, "DF11_FAULT": f"pwrite:{n}:SIG{int(signal.SIGSTOP)}",
                       "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        child = subprocess.Popen([program("df11-compress"), self.source, self.output, "--threads", "1"], env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pid, status = os.waitpid(child.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        change()
        os.kill(pid, signal.SIGCONT)
        stdout, stderr = child.communicate(timeout=60)
        self.source_tree = tree(self.source)
        return subprocess.CompletedProcess(child.args, child.returncode, stdout, stderr)

    def test_shard_shrinks(self):
        for n in (1, 2):
            done = self.compress_while(lambda: os.truncate(self.source + "/model-00001-of-00002.safetensors", 500), n)
            self.assert_error(done, "model-00001-of-00002.safetensors")
            self.assert_nothing_left()
            self.setUp()

    def test_shard_is_rewritten(self):
        def rewrite():
            path = self.source + "/model-00001-of-00002.safetensors"
            with open(path, "r+b") as file:
                file.seek(-50, os.SEEK_END)
                file.write(b"\x3c" * 50)
            # A clock that is too coarse to tell must not decide this test.
            os.utime(path, ns=(0, os.stat(path).st_mtime_ns + 1_000_000_000))
        done = self.compress_while(rewrite, 2)
        self.assert_error(done, "changed")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
