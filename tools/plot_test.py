#!/usr/bin/env python3
"""Tests of tools/plot through its command line."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

TOOL = pathlib.Path(__file__).with_name("plot")
SVG = "{http://www.w3.org/2000/svg}"


def row(subject, median, bench="read", workload="pipe, 1 B", **more):
    return {"bench": bench, "workload": workload, "subject": subject, "metric": "time", "unit": "ns/op",
            "better": "lower", "median": median, "min": median * 0.9, "max": median * 1.2, "n": 9,
            "cpu_ns_per_op": median, **more}


class Plot(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def run_tool(self, *lines):
        results = self.directory / "results.jsonl"
        results.write_text("".join(line + "\n" for line in lines))
        return subprocess.run([sys.executable, TOOL, results, self.directory / "plots"], capture_output=True, text=True)

    def drawn(self, *rows):
        done = self.run_tool(*(json.dumps(each) for each in rows))
        self.assertEqual(done.returncode, 0, done.stderr)
        return {path.name: ElementTree.parse(path).getroot() for path in sorted((self.directory / "plots").iterdir())}

    def texts(self, root):
        return [element.text for element in root.iter(SVG + "text")]

    def test_there_is_one_plot_per_benchmark(self):
        plots = self.drawn(row("limit", 10), row("limit", 10, bench="echo"))
        self.assertEqual(list(plots), ["echo.svg", "read.svg"])

    def test_a_bar_is_as_long_as_its_median(self):
        root = self.drawn(row("limit", 10), row("sluice.read", 20))["read.svg"]
        widths = [float(bar.get("width")) for bar in root.iter(SVG + "rect") if bar.get("rx")]
        self.assertAlmostEqual(widths[1] / widths[0], 2, places=2)

    def test_labels_give_the_median_and_the_ratio(self):
        root = self.drawn(row("limit", 1000), row("sluice.read", 1234.5, ratio_to_limit=1.2345))["read.svg"]
        self.assertIn("1,000", self.texts(root))
        self.assertIn("1,234  ·  1.23× limit", self.texts(root))

    def test_a_ratio_to_a_peer_names_the_peer(self):
        root = self.drawn(row("sluice.read", 50, ratio_to_samba=0.5), row("samba", 100))["read.svg"]
        self.assertIn("50.0  ·  0.50× samba", self.texts(root))

    def test_ours_stand_out(self):
        root = self.drawn(row("sluice.read", 10), row("asio", 20))["read.svg"]
        css = {element.text: element.get("class") for element in root.iter(SVG + "text")}
        self.assertEqual((css["sluice.read"], css["asio"]), ("ours", ""))

    def test_names_are_escaped(self):
        root = self.drawn(row("a<b>&", 10))["read.svg"]
        self.assertIn("a<b>&", self.texts(root))

    def test_everything_stays_on_the_page(self):
        root = self.drawn(row("limit", 1), row("sluice.with_a_rather_long_name", 1e6, ratio_to_limit=1e6),
                          row("x", 0.0, workload="nothing"))["read.svg"]
        width, height = float(root.get("width")), float(root.get("height"))
        for element in root.iter(SVG + "text"):
            self.assertTrue(0 <= float(element.get("x")) <= width, element.text)
            self.assertTrue(0 <= float(element.get("y")) <= height, element.text)

    def series(self, subject, medians):
        return [row(subject, median, workload=f"w1_{value}", series="w1", parameter="threads", value=value)
                for value, median in medians.items()]

    def lines(self, root):
        """Returns the points of each line."""
        return [[tuple(map(float, point.split())) for point in path.get("d")[1:].split("L")]
                for path in root.iter(SVG + "path") if path.get("class") == "series"]

    def test_a_series_is_a_line_per_subject_in_order_of_its_number(self):
        root = self.drawn(*self.series("limit", {8: 40, 1: 10, 2: 20}), *self.series("sluice.x", {1: 10, 2: 10, 8: 10}))
        limit, ours = self.lines(root["read.svg"])
        self.assertEqual(len(limit), 3)
        self.assertEqual([x for x, _ in limit], sorted(x for x, _ in limit))
        self.assertEqual([y for _, y in limit], sorted((y for _, y in limit), reverse=True))
        self.assertEqual(len({y for _, y in ours}), 1)
        self.assertEqual([text for text in self.texts(root["read.svg"]) if text == "w1"], ["w1"])

    def test_values_far_apart_are_drawn_logarithmically(self):
        root = self.drawn(*self.series("x", {1: 10, 2: 1000, 4: 100_000}))["read.svg"]
        (line,) = self.lines(root)
        heights = [y for _, y in line]
        self.assertAlmostEqual(heights[0] - heights[1], heights[1] - heights[2], places=0)
        self.assertTrue(any(text.endswith("logarithmic") for text in self.texts(root)))

    def test_labels_of_lines_that_end_together_do_not_cover_each_other(self):
        rows = [each for i in range(25) for each in self.series(f"subject_{i}", {1: 10, 2: 10})]
        root = self.drawn(*rows)["read.svg"]
        heights = sorted(float(text.get("y")) for text in root.iter(SVG + "text") if text.text.startswith("subject_"))
        self.assertTrue(all(below - above > 12 for above, below in zip(heights, heights[1:])))
        self.assertLess(heights[-1], float(root.get("height")))
        self.assertGreater(heights[0], 0)

    def test_a_line_that_is_no_result_is_named(self):
        done = self.run_tool(json.dumps(row("limit", 10)), '{"bench":"read"}')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("results.jsonl:2:", done.stderr)


if __name__ == "__main__":
    unittest.main()
