#!/usr/bin/env python3
"""The reference of the API. Run by ctest with the build directory as its argument."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.made = subprocess.run([SOURCE / "tools" / "docs", BUILD, cls.directory.name], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        cls.html = pathlib.Path(cls.directory.name) / "html"

    def test_it_is_generated_without_a_warning(self):
        self.assertEqual(self.made.returncode, 0, self.made.stdout)

    def test_the_main_page_leads_to_classes_of_each_library(self):
        page = (self.html / "index.html").read_text()
        for name in ("classsluice_1_1io_1_1file__handle", "classsluice_1_1sync_1_1basic__range__lock",
                     "classsluice_1_1fsmutex_1_1shared__fs__mutex", "classsluice_1_1error"):
            self.assertIn(f'href="{name}.html"', page)
            self.assertTrue((self.html / f"{name}.html").exists(), name)

    def test_it_shows_only_what_is_installed_and_no_details(self):
        pages = [path.name for path in self.html.glob("*.html")]
        self.assertGreater(len(pages), 100)
        self.assertEqual([name for name in pages if "detail_1_1" in name or "testing_8hpp" in name or "ring_8hpp" in name
                          or "worker__pool" in name or "_1_1uring_1_1" in name], [])

    def test_the_readme_has_the_command_to_generate_it(self):
        readme = (SOURCE / "README.md").read_text()
        self.assertIn("docs/reference/main.md", readme)
        self.assertIn("make docs", readme)


if __name__ == "__main__":
    BUILD = sys.argv.pop()
    if not shutil.which("doxygen"):
        print("skipped: doxygen is missing (Debian package doxygen)")
        sys.exit(77)
    unittest.main()
