"""Failing disks: whatever system call fails, and however often it was called before, the run ends with one
line on stderr, exit code 2 and nothing left behind."""
import errno
import os
import resource
import subprocess
import unittest

from cli_support import CliTest, run, tree

TRANSFERS = ["pread", "pwrite"]


class Faults(CliTest):
    def test_every_call_of_compress(self):
        counts = self.call_counts("df11-compress", self.source, self.output)
        subprocess.run(["rm", "-r", self.output], check=True)
        for call, value in [("pwrite", errno.ENOSPC), ("pwrite", errno.EIO), ("fallocate", errno.ENOSPC),
                            ("fsync", errno.EIO), ("rename", errno.EIO), ("open", errno.EMFILE), ("pread", errno.EIO)]:
            self.assertGreater(counts[call], 0, call)
            for n in range(1, counts[call] + 1):
                with self.subTest(call=call, n=n, errno=errno.errorcode[value]):
                    done = run("df11-compress", self.source, self.output, "--threads", "1", fault=f"{call}:{n}:{value}")
                    self.assert_error(done, os.strerror(value))
                    if call == "rename":
                        self.assert_kept_complete(done, self.output)
                    if call in ("fsync", "open") and n == counts[call] and os.path.exists(self.output):
                        # The directory's name is on disk or not after its parent could not be synced; if
                        # the output is there, it is complete.
                        self.assert_verifies()
                        subprocess.run(["rm", "-r", self.output], check=True)
                    self.assert_nothing_left()
                    if os.path.exists(self.output):
                        subprocess.run(["rm", "-r", self.output], check=True)

    def test_every_call_of_a_forced_replacement(self):
        """The old artifact or the new one, never none or half of one."""
        self.compress("--exclude", "*")
        old = tree(self.output)
        counts = self.call_counts("df11-compress", self.source, self.output, "--force")
        new = tree(self.output)
        self.assertNotEqual(new, old)
        for call in ["pwrite", "fsync", "rename", "open"]:
            for n in range(1, counts[call] + 1):
                with self.subTest(call=call, n=n):
                    subprocess.run(["rm", "-r", self.output], check=True)
                    self.compress("--exclude", "*")
                    done = run("df11-compress", self.source, self.output, "--force", "--threads", "1",
                               fault=f"{call}:{n}:{errno.EIO}")
                    self.assert_error(done, os.strerror(errno.EIO))
                    self.assertIn(tree(self.output), (old, new))
                    if call == "rename":
                        self.assert_kept_complete(done, self.output)
                    self.assert_nothing_left(["source", "output"])

    def test_file_system_without_renameat2(self):
        """NFS and others know no flags: a new name and an exchange are then made of plain renames."""
        no_flags = f"rename:1:{errno.EINVAL}"
        self.compress("--exclude", "*", fault=no_flags)
        self.assert_verifies()
        self.compress("--force", fault=no_flags)
        self.assert_verifies()
        self.assert_nothing_left(["source", "output"])
        old = tree(self.output)
        for n in (2, 3):  # the old one is not moved away, or is put back
            with self.subTest(n=n):
                done = run("df11-compress", self.source, self.output, "--force", "--exclude", "*",
                           fault=f"{no_flags},rename:{n}:{errno.EIO}")
                self.assert_error(done, "the output is complete, as " + self.output + ".df11-partial")
                self.assertEqual(tree(self.output), old)
                self.assert_verifies(self.output + ".df11-partial")
                subprocess.run(["rm", "-r", self.output + ".df11-partial"], check=True)
                self.assert_nothing_left(["source", "output"])

    def test_every_read_of_verify_and_inspect(self):
        self.compress("--quiet")
        listing = self.at("SHA256SUMS")
        with open(listing, "w", encoding="utf-8") as file:
            file.writelines(f"{digest}  {path}\n" for path, digest in self.source_tree.items() if digest)
        for name, *args in [["df11-verify", self.output], ["df11-verify", self.output, "--level", "structure"],
                            ["df11-verify", self.output, "--lint", "--expect-source-sha256", listing],
                            ["df11-verify", self.output, "--source", self.source],
                            ["df11-inspect", self.output]]:
            counts = self.call_counts(name, *args)
            for call in ["pread", "open"]:
                for n in range(1, counts[call] + 1):
                    with self.subTest(args=args, call=call, n=n):
                        done = run(name, *args, "--threads", "1", fault=f"{call}:{n}:{errno.EIO}")
                        self.assert_error(done, os.strerror(errno.EIO))

    def test_interrupted_and_short_transfers_are_retried(self):
        self.compress()
        expected = tree(self.output)
        for number, fault in enumerate([f"{call}:{n}:{errno.EINTR}" for call in [*TRANSFERS, "fsync", "fallocate", "open"]
                                        for n in (1, 2, 3)] + [f"{call}:*:SHORT" for call in TRANSFERS]):
            with self.subTest(fault=fault):
                output = self.at(f"out{number}")
                done = run("df11-compress", self.source, output, fault=fault)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(tree(output), expected)

    def test_file_system_without_fallocate(self):
        self.compress(fault=f"fallocate:*:{errno.EOPNOTSUPP}")
        self.assert_verifies()

    def test_file_size_limit(self):
        """ulimit -f: the signal that comes with it must not kill the program half-way."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        done = run("df11-compress", self.source, self.output, preexec_fn=limit)
        self.assert_error(done, os.strerror(errno.EFBIG))
        self.assert_nothing_left()

    def test_full_file_system(self):
        os.mkdir(self.at("small"))
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", self.at("small")],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("no right to mount a tmpfs")
        try:
            done = run("df11-compress", self.source, self.at("small/output"))
            self.assert_error(done, os.strerror(errno.ENOSPC))
            self.assertEqual(os.listdir(self.at("small")), [])
        finally:
            subprocess.run(["umount", self.at("small")], check=True)


if __name__ == "__main__":
    unittest.main()
