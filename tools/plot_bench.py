#!/usr/bin/env python3
"""SVG plots of measurements. Standard library only.

    plot_bench.py OUTPUT_DIR FILE.json...

From FILE.json of df11-bench --cpu --json: FILE-stages.svg, FILE-peers.svg (with --peer) and FILE-scaling.svg (with
three thread counts or more); of bench_end_to_end.py --json: FILE.svg. The background is transparent, and the colours
are readable on light and dark ones.
"""
import json
import math
import os
import sys
import xml.etree.ElementTree as ElementTree

WIDTH, MARGIN = 760, 16
TEXT = "#768089"
YARDSTICK = "#9098a1"
COLOURS = ["#2f81f7", "#e0823d", "#3fa45b", "#a371f7", "#d1537a", "#b59a1f"]
FONT_SIZE, LINE = 13, 18


class Svg:
    def __init__(self, title):
        self.root = ElementTree.Element("svg", {
            "xmlns": "http://www.w3.org/2000/svg", "font-family": "system-ui, sans-serif", "font-size": str(FONT_SIZE),
            "fill": TEXT})
        ElementTree.SubElement(self.root, "title").text = title
        self.text(MARGIN, 26, title, **{"font-size": "15", "font-weight": "bold"})

    def add(self, tag, parent=None, **attributes):
        values = {name.replace("_", "-"): f"{value:.6g}" if isinstance(value, float) else str(value)
                  for name, value in attributes.items()}
        return ElementTree.SubElement(self.root if parent is None else parent, tag, values)

    def text(self, x, y, content, **attributes):
        self.add("text", x=x, y=y, **attributes).text = content

    def legend(self, y, entries):
        """entries: (text, colour). Returns the y below it."""
        x = MARGIN
        for content, colour in entries:
            width = 36 + 7.2 * len(content)  # about: fonts differ
            if x > MARGIN and x + width > WIDTH - MARGIN:
                x, y = MARGIN, y + LINE
            self.add("rect", x=x, y=y - 10, width=11, height=11, rx=2, fill=colour)
            self.text(x + 16, y, content)
            x += width
        return y + LINE

    def write(self, path, height):
        self.root.set("viewBox", f"0 0 {WIDTH} {height:g}")
        self.root.set("width", str(WIDTH))
        self.root.set("height", f"{height:g}")
        ElementTree.indent(self.root)
        with open(path, "w", encoding="utf-8") as file:
            file.write(ElementTree.tostring(self.root, encoding="unicode") + "\n")


def bar_chart(path, title, legend, groups):
    """groups: (label, bars); a bar is (value, text, colour)."""
    svg = Svg(title)
    y = svg.legend(52, legend) if legend else 40
    left = MARGIN + 180
    right = WIDTH - MARGIN - 9 * max(len(text) for _, bars in groups for _, text, _ in bars)
    scale = (right - left) / max(value for _, bars in groups for value, _, _ in bars)
    bar_height = 15
    for label, bars in groups:
        middle = y + bar_height * len(bars) / 2
        svg.text(left - 8, middle + 4, label, text_anchor="end")
        for value, text, colour in bars:
            svg.add("rect", x=left, y=y, width=value * scale, height=bar_height - 2, rx=2, fill=colour)
            svg.text(left + value * scale + 5, y + 11, text)
            y += bar_height
        y += 9
    svg.write(path, y + 4)


def log_line_chart(path, title, x_label, series):
    """series: (name, colour, points); both axes are logarithmic and begin at 1."""
    svg = Svg(title)
    top = svg.legend(52, [(f"{name}: {points[-1][1]:.1f} x", colour) for name, colour, points in series]) + 4
    left, bottom, right = MARGIN + 44, top + 300, WIDTH - MARGIN - 60
    most = math.log2(max(x for _, _, points in series for x, _ in points))
    highest = max(most, math.log2(max(y for _, _, points in series for _, y in points)))

    def place(x, y):
        return left + math.log2(x) / most * (right - left), bottom - math.log2(max(y, 1)) / highest * (bottom - top)

    for x, _ in series[0][2]:
        at, above = place(x, x)
        svg.add("line", x1=at, y1=bottom, x2=at, y2=top, stroke=TEXT, stroke_opacity=0.25)
        svg.text(at, bottom + 18, f"{x:g}", text_anchor="middle")
        svg.add("line", x1=left, y1=above, x2=right, y2=above, stroke=TEXT, stroke_opacity=0.25)
        svg.text(left - 8, above + 4, f"{x:g} x", text_anchor="end")
    svg.text((left + right) / 2, bottom + 38, x_label, text_anchor="middle")
    (x1, y1), (x2, y2) = place(1, 1), place(2**most, 2**most)
    svg.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=TEXT, stroke_dasharray="4 4")
    for name, colour, points in series:
        places = [place(x, y) for x, y in points]
        svg.add("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), fill="none", stroke=colour,
                stroke_width=2)
        for (x, y), (n, value) in zip(places, points):
            point = svg.add("circle", cx=x, cy=y, r=3.5, fill=colour)
            svg.add("title", point).text = f"{name}, {n:g}: {value:.2f} x"
    svg.write(path, bottom + 50)


def threads_text(report):
    return f"{report['threads']} thread" + ("" if report["threads"] == 1 else "s")


def is_yardstick(stage):
    return stage.startswith("memory ")


def plot_stages(path, reports):
    """One thread and the most, in this order."""
    shown = [reports[0]] if len(reports) == 1 else [reports[0], reports[-1]]
    groups = []
    for row, stage in enumerate(shown[0]["stages"]):
        bars = []
        for report, colour in zip(shown, COLOURS):
            rate = report["stages"][row]["gb_per_s"]
            bars.append((rate, f"{rate:.2f}", YARDSTICK if is_yardstick(stage["stage"]) else colour))
        groups.append((stage["stage"], bars))
    legend = [(threads_text(report), colour) for report, colour in zip(shown, COLOURS)]
    bar_chart(path, "Stages in memory, GB/s of BF16 weights", legend + [("what the machine can do", YARDSTICK)], groups)


def plot_peers(path, reports):
    groups, legend = [], []
    for report in reports if len(reports) < 3 else [reports[0], reports[-1]]:
        rates = {stage["stage"]: stage["gb_per_s"] for stage in report["stages"]}
        codecs = [("df11", rates["histogram + encode"], rates["decode + join + check"], report["bits_per_weight"])]
        codecs += [(f"{peer['peer']} {peer['version']}", peer["compress_gb_per_s"], peer["decompress_gb_per_s"],
                    peer["bits_per_weight"]) for peer in report["peers"] if "not_measured" not in peer]
        for column, direction in [(1, "compress"), (2, "decompress")]:
            groups.append((f"{direction}, {threads_text(report)}",
                           [(codec[column], f"{codec[column]:.2f}", colour) for codec, colour in zip(codecs, COLOURS)]))
        legend = legend or [(f"{name}: {bits:.2f} bits a weight", colour)
                            for (name, _, _, bits), colour in zip(codecs, COLOURS)]
    bar_chart(path, "The same weights, the same run: GB/s of BF16 weights", legend, groups)


def plot_scaling(path, reports):
    shown = ["memory copy", "histogram + encode", "decode + join + check", "XXH3-128", "SHA-256"]
    series = []
    for row, stage in enumerate(reports[0]["stages"]):
        name = stage["stage"]
        if name in shown:
            colour = YARDSTICK if is_yardstick(name) else COLOURS[len(series) - 1]
            series.append((name, colour, [(report["threads"], report["stages"][row]["gb_per_s"] / stage["gb_per_s"])
                                          for report in reports]))
    log_line_chart(path, f"Speed of up to {reports[-1]['threads']} threads over one's; dashed: ideal", "threads", series)


def plot_end_to_end(path, report):
    groups = []
    for row in report["commands"]:
        ours = row["command"].startswith("df11-")
        text = f"{row['seconds']:.2f} s" + (f", {row['times_cp']:.2f} x cp" if ours else "")
        groups.append((row["command"], [(row["seconds"], text, COLOURS[0] if ours else YARDSTICK)]))
    title = f"Whole commands on {report['source_bytes'] / 1e9:.2f} GB, {report['cores']} cores: seconds"
    bar_chart(path, title, [], groups)


def plot(output_directory, file):
    """Paths of the figures made from the report `file`."""
    with open(file, encoding="utf-8") as stream:
        report = json.load(stream)
    stem = os.path.join(output_directory, os.path.splitext(os.path.basename(file))[0])
    made = {}
    if report.get("report") == "df11-bench-end-to-end":
        made[f"{stem}.svg"] = (plot_end_to_end, report)
    elif report.get("report") == "df11-bench" and report.get("cpu"):
        reports = sorted(report["cpu"], key=lambda entry: entry["threads"])
        made[f"{stem}-stages.svg"] = (plot_stages, reports)
        if "peers" in reports[0]:
            made[f"{stem}-peers.svg"] = (plot_peers, reports)
        if len(reports) > 2 and reports[0]["threads"] == 1:
            made[f"{stem}-scaling.svg"] = (plot_scaling, reports)
    else:
        raise ValueError("a report of neither df11-bench --cpu nor bench_end_to_end.py")
    for path, (make, data) in made.items():
        make(path, data)
    return list(made)


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:2] == ["--help"] else 2)
    output_directory, *files = sys.argv[1:]
    os.makedirs(output_directory, exist_ok=True)
    for file in files:
        try:
            print("\n".join(plot(output_directory, file)))
        except (OSError, ValueError, KeyError) as error:
            print(f"plot_bench.py: error: {file}: {error}", file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
