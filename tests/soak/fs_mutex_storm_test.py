#!/usr/bin/env python3
"""Kill storms of fsmutex on every kind of volume that this machine can create, in separate mounts.

    fs_mutex_storm_test.py STORM_TEST [--seconds N] [--only NAME]

STORM_TEST is the program sluice_fsmutex_storm_test, run for N seconds per algorithm on each volume: ext4, xfs and btrfs in
images, tmpfs, ext4 through bindfs (FUSE), a volume that is full half of the time, and again with half of the processes in
their own namespaces. Volumes that are not supported here are listed, with the reason. Exits with 77 if none is supported.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
IMAGE_MIB = {"ext4": 64, "xfs": 320, "btrfs": 128}


class NotHere(Exception):
    """A volume that this machine cannot create."""


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise NotHere(f"{command[0]} is not installed") from missing
    if done.returncode != 0:
        raise NotHere(f"{' '.join(map(str, command[:3]))}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


@contextlib.contextmanager
def mounted(where, *arguments):
    where.mkdir()
    run("mount", *arguments, where)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=False)


@contextlib.contextmanager
def image(scratch, kind):
    file = scratch / f"{kind}.img"
    with open(file, "wb") as made:
        made.truncate(IMAGE_MIB[kind] << 20)
    run(f"mkfs.{kind}", "-q", file)
    with mounted(scratch / kind, "-o", "loop", file) as where:
        yield where


@contextlib.contextmanager
def fuse(scratch):
    below = scratch / "below"
    below.mkdir()
    where = scratch / "fuse"
    where.mkdir()
    run("bindfs", below, where)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=False)


@contextlib.contextmanager
def full_at_times(scratch):
    """A volume of 4 MiB that is filled up and emptied again every few milliseconds."""
    ends = threading.Event()
    with mounted(scratch / "full", "-t", "tmpfs", "-o", "size=4m", "tmpfs") as where:
        def fill():
            ballast = where / "ballast"
            while not ends.wait(0.005):
                with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
                    while file.write(bytes(1 << 14)):
                        pass
                ends.wait(0.005)
                ballast.unlink(missing_ok=True)
        filling = threading.Thread(target=fill)
        filling.start()
        try:
            yield where
        finally:
            ends.set()
            filling.join()


class Volume:
    def __init__(self, name, make, environment=None, without=""):
        self.name, self.make, self.environment, self.without = name, make, environment or {}, without


VOLUMES = [
    Volume("ext4", lambda scratch: image(scratch, "ext4")),
    Volume("xfs", lambda scratch: image(scratch, "xfs")),
    Volume("btrfs", lambda scratch: image(scratch, "btrfs")),
    Volume("tmpfs", lambda scratch: mounted(scratch / "tmpfs", "-t", "tmpfs", "tmpfs")),
    # Other hosts may have a FUSE volume mounted, so memory_map refuses it.
    Volume("fuse", fuse, without="*memory_map*"),
    Volume("full", full_at_times, {"SLUICE_STORM_FULL": "1"}),
    Volume("namespaces", lambda scratch: mounted(scratch / "namespaces", "-t", "tmpfs", "tmpfs"),
           {"SLUICE_STORM_NAMESPACES": "1"}),
]


def figures(report):
    for case in json.loads(report.read_text())["testsuites"][0]["testsuite"]:
        yield {key: case[key] for key in ("grants", "kills", "longest_pause_ms", "longest_call_ms", "disk_kib_max",
                                          "value_param", "name") if key in case}


def storm(program, volume, seconds):
    """Returns whether the storm succeeded."""
    with tempfile.TemporaryDirectory(prefix="sluice-storm-") as made:
        scratch = pathlib.Path(made)
        with volume.make(scratch) as where:
            report = scratch / "report.json"
            environment = os.environ | volume.environment | {
                "TMPDIR": str(where), "SLUICE_STORM_SECONDS": str(seconds), "GTEST_OUTPUT": f"json:{report}"}
            done = subprocess.run([program, f"--gtest_filter=*_on_disk-{volume.without}"], env=environment,
                                  capture_output=True, text=True, check=False)
            for each in figures(report):
                print(f"{volume.name:11}{each['name'].split('/')[-1].removesuffix('_on_disk'):14}"
                      f"{each.get('grants', 0):>9} grants {each.get('kills', 0):>6} kills, longest pause "
                      f"{each.get('longest_pause_ms', '?'):>4} ms (a stat took {each.get('longest_call_ms', '?')}), "
                      f"disk at most {each.get('disk_kib_max', 0):>5} KiB",
                      flush=True)
            if done.returncode != 0:
                print(done.stdout[-4000:], done.stderr[-2000:], flush=True)
            return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--only")
    chosen = parser.parse_args()
    program = str(pathlib.Path(chosen.program).resolve())
    if os.geteuid() != 0:
        print("skipped: only root can mount volumes")
        return SKIPPED
    if os.environ.get("SLUICE_STORM_MOUNTS") != "own":
        # Mounts from here on end with this process.
        os.environ["SLUICE_STORM_MOUNTS"] = "own"
        if shutil.which("unshare") is None:
            print("skipped: unshare (util-linux) is not installed")
            return SKIPPED
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv])
    went_well = []
    for volume in VOLUMES:
        if chosen.only in (None, volume.name):
            try:
                went_well.append(storm(program, volume, chosen.seconds))
            except NotHere as reason:
                print(f"{volume.name}: skipped: {reason}", flush=True)
    if not went_well:
        return SKIPPED
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
