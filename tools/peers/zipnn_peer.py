"""Times ZipNN on behalf of df11-bench --peer, which has this text compiled in.

    python3 -c TEXT N_BYTES

stdin: N_BYTES bytes of BF16 weights, then a line with a number of threads for each round to time.
stdout: a line of JSON at once, {"version", "settings"}, and one for each round, {"compress_s", "decompress_s",
"compressed_bytes"}. A line {"error"} says why there is none, and is the last.

ZipNN gets the settings with which it is fastest, and what our own stages have:
- Memory is reused. glibc gives large buffers back at once, and the page faults of getting them anew take ZipNN half
  of its speed.
- Weights come in pieces of 2 MiB a thread: small enough for the cache, and large enough for its threads, which it
  starts anew for each piece. Chunks are of 128 KiB; from 512 KiB on it compresses nothing.
- Its compress() begins with a copy of the input that nothing reads; here it makes none. (It changes its input, which
  is therefore restored before each round.)
"""
import builtins
import ctypes
import json
import os
import sys
import time
import warnings

PIECE_BYTES = 2 << 20
CHUNK_BYTES = 128 << 10


def keep_freed_memory():
    m_trim_threshold, m_mmap_max = -1, -4  # of mallopt(3)
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return  # not glibc
    mallopt(m_trim_threshold, -1)
    mallopt(m_mmap_max, 0)


def load_zipnn():
    """The class and its version."""
    from importlib.metadata import version

    import zipnn.zipnn as module

    module.bytearray = lambda data=b"": data if isinstance(data, bytearray) else builtins.bytearray(data)
    return module.ZipNN, version("zipnn")


class Round:
    """The weights in pieces for one number of threads."""

    def __init__(self, zipnn_class, weights, threads):
        self.weights = weights
        self.piece_bytes = PIECE_BYTES * threads
        self.codec = zipnn_class(method="HUFFMAN", input_format="byte", bytearray_dtype="bfloat16", threads=threads,
                                 compression_chunk=CHUNK_BYTES)
        self.pieces = [bytearray(piece) for piece in self.slices()]
        self.compressed = [self.codec.compress(piece) for piece in self.pieces]
        for compressed, piece in zip(self.compressed, self.slices()):
            if self.codec.decompress(compressed) != piece:
                raise ValueError("decompress() does not restore what compress() was given")

    def slices(self):
        return (self.weights[i:i + self.piece_bytes] for i in range(0, len(self.weights), self.piece_bytes))

    def run(self):
        for piece, original in zip(self.pieces, self.slices()):
            piece[:] = original
        begin = time.perf_counter()
        for piece in self.pieces:
            self.codec.compress(piece)
        middle = time.perf_counter()
        for compressed in self.compressed:
            self.codec.decompress(compressed)
        end = time.perf_counter()
        return {"compress_s": middle - begin, "decompress_s": end - middle,
                "compressed_bytes": sum(map(len, self.compressed))}


def main():
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    try:
        keep_freed_memory()
        weights = memoryview(sys.stdin.buffer.read(int(sys.argv[1])))
        zipnn_class, version = load_zipnn()
        answer({"version": version, "settings": f"Huffman, chunks of {CHUNK_BYTES >> 10} KiB, pieces of "
                                                f"{PIECE_BYTES >> 20} MiB a thread, memory reused"})
        rounds = {}
        for line in sys.stdin.buffer:
            threads = int(line)
            if threads not in rounds:
                rounds[threads] = Round(zipnn_class, weights, threads)
            answer(rounds[threads].run())
    except Exception as error:  # whatever a package of others may raise
        answer({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


main()
