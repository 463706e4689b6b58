"""tools/plot_bench.py, on committed reports and on one of this df11-bench."""
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

from cli_support import CliTest, run, tree, write_file

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "tools", "plot_bench.py")
REPORTS = os.path.join(HERE, "bench_reports")
SVG = "{http://www.w3.org/2000/svg}"


class Plot(CliTest):
    def plot(self, *files, directory="figures"):
        return subprocess.run([sys.executable, SCRIPT, self.at(directory), *files], capture_output=True, text=True,
                              timeout=60)

    def figures(self, *files):
        """File name -> its texts; each figure is well-formed, and nothing is drawn outside of it."""
        done = self.plot(*files)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = {}
        for path in done.stdout.splitlines():
            root = ElementTree.parse(path).getroot()
            self.assertEqual(root.tag, SVG + "svg")
            _, _, width, height = map(float, root.get("viewBox").split())
            for bar in root.iter(SVG + "rect"):
                self.assertLessEqual(float(bar.get("x")) + float(bar.get("width")), width)
                self.assertLessEqual(float(bar.get("y")) + float(bar.get("height")), height)
                self.assertGreater(float(bar.get("width")), 0)
            found[os.path.basename(path)] = [element.text for element in root.iter() if (element.text or "").strip()]
        self.assertEqual(sorted(found), sorted(os.listdir(self.at("figures"))))
        return found

    def test_values_are_in_the_figures(self):
        figures = self.figures(f"{REPORTS}/cpu.json", f"{REPORTS}/end_to_end.json")
        self.assertEqual(set(figures), {"cpu-stages.svg", "cpu-peers.svg", "cpu-scaling.svg", "end_to_end.svg"})
        for name, texts in {
            "cpu-stages.svg": ["memory copy", "8.25", "28.88", "histogram + encode", "2.03", "7.11", "1 thread",
                               "4 threads"],
            "cpu-peers.svg": ["df11: 10.92 bits a weight", "zstd 1.5.4: 12.56 bits a weight", "compress, 1 thread",
                              "0.79", "decompress, 4 threads", "3.51", "10.74"],
            "cpu-scaling.svg": ["memory copy: 3.5 x", "memory copy, 2: 1.88 x", "decode + join + check, 4: 3.50 x"],
            "end_to_end.svg": ["Whole commands on 0.94 GB, 2 cores: seconds", "cp -r, synced", "0.50 s",
                               "df11-compress", "1.26 s, 2.52 x cp"],
        }.items():
            for text in texts:
                self.assertIn(text, figures[name], name)
        self.assertNotIn("ZipNN", " ".join(figures["cpu-peers.svg"]))  # it was not measured

    def test_the_same_bytes_every_time(self):
        for directory in ["one", "two"]:
            self.plot(f"{REPORTS}/cpu.json", f"{REPORTS}/end_to_end.json", directory=directory)
        self.assertEqual(tree(self.at("one")), tree(self.at("two")))

    def test_report_of_this_bench(self):
        done = run("df11-bench", "--cpu", "--elements", "65536", "--rounds", "1", "--threads", "1", "--json")
        write_file(self.at("now.json"), done.stdout)
        [(name, texts)] = self.figures(self.at("now.json")).items()
        self.assertEqual(name, "now-stages.svg")
        self.assertIn("SHA-256", texts)

    def test_errors(self):
        write_file(self.at("other.json"), '{"report": "df11-verify"}')
        write_file(self.at("text.json"), "nonsense")
        for file in ["other.json", "text.json", "absent.json"]:
            done = self.plot(self.at(file))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Aplot_bench.py: error: .*" + file)


if __name__ == "__main__":
    unittest.main()
