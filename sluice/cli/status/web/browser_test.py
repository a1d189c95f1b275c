"""The web page of `sluice serve --web` in a browser, headless Chromium. Run by ctest with the program as the last
argument. With `--screenshot FILE` before it, it also takes the picture of docs/guide/status.md."""

import html
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import web_test  # noqa: E402  (found through the line above)

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PROGRAM = SCREENSHOT = None


class Browser(web_test.Page):
    def run_browser(self, path, *arguments):
        """Opens a page with an empty profile and without network, and returns the standard output of the browser."""
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
             f"--user-data-dir={self.scratch / 'profile'}", "--virtual-time-budget=2000", *arguments,
             f"http://127.0.0.1:{self.web_port}{path}"], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_browser_shows_sessions_files_and_charts(self):
        if SCREENSHOT:  # the page shows the path as it was given
            os.chdir(self.scratch)
            self.directory = pathlib.Path("Public")
            self.directory.mkdir()
        name = "&lt;img src=x onerror=alert(1)&gt;.txt"
        (self.scratch / "large").write_bytes(b"x" * 3_000_000)
        with self.server() as (port, _), self.client(port, ("put large", "putting"), ("get large back", "getting")) as client:
            if SCREENSHOT:
                self.take_screenshot(port)
            client.stdin.write(f'put "{self.held_pipe()}" "{name}"\n')
            client.stdin.flush()
            with open(self.scratch / "pipe", "wb", buffering=0) as writer:
                writer.write(b"x" * 100_000)
                deadline = time.monotonic() + 60
                while "onerror" not in self.ask("/files")[2]:
                    self.assertLess(time.monotonic(), deadline, "the client opens the file")
                    time.sleep(0.05)
                files = self.run_browser("/files", "--dump-dom")
                self.assertIn(html.escape(name, quote=False), files)
                self.assertNotIn("<img", files)
                self.assertIn("<td>u</td>", self.run_browser("/sessions", "--dump-dom"))
            overview = self.run_browser("/?refresh=5", "--dump-dom")
            self.assertIn("aria-current", overview)
            self.assertEqual(overview.count("<polyline"), 4)
            picture = self.scratch / "page.png"
            self.run_browser("/", f"--screenshot={picture}", "--window-size=390,844")
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def held_pipe(self):
        """Returns the name of a pipe: a client that sends it keeps its file open until the pipe has a writer and ends."""
        os.mkfifo(self.scratch / "pipe")
        return "pipe"

    def take_screenshot(self, port):
        """Reads and writes for a while, so that the charts have a form."""
        for seconds in ("2", "4", "3"):
            for workload in ("read", "put"):
                subprocess.run([PROGRAM, "bench", "smb", f"smb://u@127.0.0.1:{port}/files", "--workload", workload,
                                "--seconds", seconds], env=self.environment | {"SLUICE_PASSWORD": "p"}, timeout=120,
                               stdout=subprocess.DEVNULL, check=False)
                time.sleep(2)
        self.run_browser("/", f"--screenshot={SCREENSHOT}", "--window-size=1100,1300", "--blink-settings=preferredColorScheme=1")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    web_test.PROGRAM = PROGRAM
    if "--screenshot" in sys.argv:
        at = sys.argv.index("--screenshot")
        SCREENSHOT = os.path.abspath(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    if BROWSER is None or shutil.which("smbclient") is None:
        print("skipped: chromium or smbclient is not installed (Debian packages of these names)")
        sys.exit(77)
    unittest.main()
