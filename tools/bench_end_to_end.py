#!/usr/bin/env python3
"""Times whole commands on one checkpoint, beside cp and openssl, with the page cache warm. Standard library only.

Each round runs every command once, so that drift of the machine hits all. Outside of the times, what they wrote is
deleted as soon as no other command needs it, and what the next one reads is read once: the page cache need not hold
more than checkpoint, artifact and one output. Free memory is touched before each command, for a virtual machine may
have to get back from its host what it has not used for some seconds, which can take as long as all the rest. Work
happens beside the checkpoint, on its file system. cp's files
are synced within its time, as df11-compress and df11-decompress sync theirs.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class CommandFailed(Exception):
    pass


def run(*command):
    """Peak memory in bytes. The system counts from the fork on: less than this script has, about 17 MB, is not seen."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise CommandFailed(f"{' '.join(command)}: {output.read().decode(errors='replace').strip()}")
    return usage.ru_maxrss * 1024


def files_below(directory):
    return sorted(os.path.join(parent, name) for parent, _, names in os.walk(directory) for name in names)


def sync(directory):
    for parent, _, names in os.walk(directory):
        for path in [os.path.join(parent, name) for name in names] + [parent]:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def copy(source, target):
    peak = run("cp", "-r", source, target)
    sync(target)
    return peak


def hash_files(paths, processes):
    """One openssl at a time on each core, the largest files first."""
    paths = sorted(paths, key=os.path.getsize, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        return max(pool.map(lambda path: run("openssl", "dgst", "-sha256", path), paths))


def warm(*directories):
    for directory in directories:
        for path in files_below(directory):
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


TOUCH = """
import contextlib, mmap, sys
block, n_blocks = bytes(1 << 20), (int(sys.argv[1]) >> 20) + 1
with mmap.mmap(-1, n_blocks << 20) as memory:
    with contextlib.suppress(OSError):  # not every kernel has them
        memory.madvise(mmap.MADV_HUGEPAGE)
    for _ in range(n_blocks):
        memory.write(block)
"""


def touch_free_memory(n_bytes):
    """As much of it as is free, but for a tenth. In another process, for the peak memory of this one counts in run(), and
    a container's limit may end it."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free_bytes = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemFree:"))
    subprocess.run([sys.executable, "-c", TOUCH, str(min(n_bytes, free_bytes // 10 * 9))], check=False)


def commands(arguments, work):
    """Name -> what runs it and returns its peak memory, directories it reads, one to delete after it; in order."""
    def program(name, *rest):
        return lambda: run(os.path.join(arguments.bin, name), *rest)

    source = arguments.checkpoint
    copied, artifact, restored = (os.path.join(work, name) for name in ("copy", "artifact", "restored"))
    return {
        "cp -r, synced": (lambda: copy(source, copied), [source], copied),
        "openssl dgst -sha256": (lambda: hash_files(files_below(source), os.cpu_count()), [source], None),
        "df11-compress": (program("df11-compress", source, artifact), [source], None),
        "df11-verify": (program("df11-verify", artifact), [artifact], None),
        "df11-verify --source": (program("df11-verify", artifact, "--source", source), [artifact, source], None),
        "df11-decompress": (program("df11-decompress", artifact, restored), [artifact], restored),
    }


def measure(arguments):
    """Name -> seconds of each round; name -> peak memory; bytes of the artifact."""
    seconds, peaks = {}, {}
    source_bytes = sum(map(os.path.getsize, files_below(arguments.checkpoint)))
    for number in range(arguments.rounds):
        work = tempfile.mkdtemp(prefix="df11-bench-", dir=os.path.dirname(os.path.abspath(arguments.checkpoint)))
        try:
            for name, (command, read, written) in commands(arguments, work).items():
                show_progress(f"round {number + 1} of {arguments.rounds}: {name}")
                warm(*read)
                touch_free_memory(2 * source_bytes)
                begin = time.monotonic()
                peak = command()
                seconds.setdefault(name, []).append(time.monotonic() - begin)
                peaks[name] = max(peak, peaks.get(name, 0))
                if written is not None:
                    shutil.rmtree(written)
                    os.sync()  # so that the next command's disk is idle
            artifact_bytes = sum(map(os.path.getsize, files_below(os.path.join(work, "artifact"))))
        finally:
            shutil.rmtree(work)
            os.sync()  # so that the next round's disk is idle
    show_progress("")
    return seconds, peaks, artifact_bytes


def show_progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def make_report(arguments):
    seconds, peaks, artifact_bytes = measure(arguments)
    paths = files_below(arguments.checkpoint)
    median = {name: statistics.median(times) for name, times in seconds.items()}
    copy_name, hash_name = list(median)[:2]
    source_bytes = sum(map(os.path.getsize, paths))
    return {
        "report": "df11-bench-end-to-end", "schema_version": 1, "cores": os.cpu_count(), "rounds": arguments.rounds,
        "source_files": len(paths), "source_bytes": source_bytes, "artifact_bytes": artifact_bytes,
        "commands": [{"command": name, "seconds": median[name], "best_seconds": min(seconds[name]),
                      "gb_per_s": source_bytes / median[name] / 1e9,
                      "times_cp": median[name] / median[copy_name],
                      "times_openssl": median[name] / median[hash_name],
                      "peak_rss_bytes": peaks[name]} for name in median]}


def print_table(report):
    print(f"{report['source_bytes'] / 1e9:.3f} GB in {report['source_files']} files -> "
          f"{report['artifact_bytes'] / 1e9:.3f} GB ({report['artifact_bytes'] / report['source_bytes']:.1%}); "
          f"{report['cores']} cores, median of {report['rounds']}")
    print(f"{'command':22}{'seconds':>9}{'GB/s':>8}{'of cp':>9}{'of openssl':>12}{'peak memory':>13}")
    for row in report["commands"]:
        print(f"{row['command']:22}{row['seconds']:9.2f}{row['gb_per_s']:8.2f}{row['times_cp']:7.2f} x"
              f"{row['times_openssl']:10.2f} x{row['peak_rss_bytes'] / 1e6:10.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", help="a directory, such as df11-make-checkpoint writes")
    parser.add_argument("--bin", default=os.path.join(REPOSITORY, "build", "bin"), help="where the programs are")
    parser.add_argument("--rounds", type=int, default=5, help="rounds to take the median of (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be 1 or more")
    if not os.path.isdir(arguments.checkpoint):
        parser.error(f"{arguments.checkpoint}: no such directory")
    try:
        report = make_report(arguments)
    except (CommandFailed, OSError) as error:
        sys.exit(f"bench_end_to_end.py: error: {error}")
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        print_table(report)


if __name__ == "__main__":
    main()
