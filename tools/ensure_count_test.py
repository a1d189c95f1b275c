#!/usr/bin/env python3
"""Tests of tools/ensure_count.py."""

import pathlib
import tempfile
import unittest

import ensure_count
from ensure_count import Count, count, raised, shortfalls

SOURCE = """\
namespace sluice {

void first() {
    ENSURE(a <= b);
    ENSURE(b <= c, "a reason");
}

int second(int x) const noexcept {
    return x;
}

auto third() -> int {
}

class inside {
    void declared();
    void in_a_class() {
    }
};

void several_lines(int a,
                   int b) {
}

}  // namespace sluice
"""


class Counting(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def test_functions_begin_in_the_first_column(self):
        found = Count()
        found.add(SOURCE)
        self.assertEqual((found.functions, found.ensures), (3, 2))
        self.assertAlmostEqual(found.per_function, 2 / 3)

    def test_headers_and_tests_do_not_count(self):
        (self.root / "below").mkdir()
        for name in ("a.cpp", "below/b.cpp", "a_test.cpp", "a.hpp"):
            (self.root / name).write_text(SOURCE)
        self.assertEqual(count(self.root), Count(functions=6, ensures=4))

    def test_a_directory_without_functions_has_none_for_each(self):
        self.assertEqual(count(self.root).per_function, 0.0)


class Bounds(unittest.TestCase):
    def test_a_component_below_its_bound_is_named(self):
        few = {"io": Count(functions=10, ensures=1)}
        self.assertEqual(shortfalls(few, {"io": 0.1}), [])
        self.assertIn("sluice/io: 1 ENSURE in 10 functions are 0.100, and 0.2", shortfalls(few, {"io": 0.2})[0])

    def test_raising_rounds_down_stops_at_the_target_and_lowers_nothing(self):
        text = '    "io": 0.0,\n    "fat": 0.0,\n'
        held = dict(ensure_count.BOUNDS)
        self.addCleanup(ensure_count.BOUNDS.update, held)
        ensure_count.BOUNDS.update({"io": 0.0, "fat": 0.0})
        self.assertEqual(raised(text, {"io": Count(functions=3, ensures=1), "fat": Count(functions=1, ensures=2)}),
                         '    "io": 0.33,\n    "fat": 0.5,\n')
        ensure_count.BOUNDS.update({"io": 0.4, "fat": 0.4})
        self.assertIn('"io": 0.4,', raised(text, {"io": Count(functions=3, ensures=1)}))

    def test_no_bound_is_above_the_target(self):
        for component, bound in ensure_count.BOUNDS.items():
            self.assertLessEqual(bound, ensure_count.TARGET, component)


if __name__ == "__main__":
    unittest.main()
