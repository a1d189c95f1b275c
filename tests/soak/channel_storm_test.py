#!/usr/bin/env python3
"""One client reads and writes over several channels of a server on two loops, while the channels are killed.

    tests/soak/channel_storm_test.py build/release/sluice/cli/sluice build/release/tests/soak/sluice_channel_storm
    … --seconds 180 --channels 8

All data read must be the data written last, during the run and at the end (tests/smb_client/channel_storm.hpp). A server
that holds resources of the client at its end reports this and fails.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
import served  # noqa: E402  (found through the line above)


def storm(options, multiplexer, protection):
    with tempfile.TemporaryDirectory(prefix="sluice-storm-") as directory, \
            served.Server(options.program, directory, multiplexer, ["--loops", "2"]) as server:
        done = subprocess.run([options.storm, str(server.port), server.share, served.USER, served.PASSWORD,
                               str(options.seconds), str(options.channels), str(options.seed), protection],
                              capture_output=True, text=True, timeout=options.seconds + 120, check=False)
        print(f"{multiplexer}, {protection}: {done.stdout.strip()}", flush=True)
        if done.returncode != 0:
            print(f"{done.stderr.strip()}\n{server.log_tail()}", file=sys.stderr)
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("storm", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcomes = [storm(options, multiplexer, protection)
                for multiplexer in served.MULTIPLEXERS for protection in ("signed", "encrypted")]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
