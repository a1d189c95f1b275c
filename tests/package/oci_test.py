"""The OCI image: its layers are unpacked and its command is run in namespaces, as a container runtime does it: as the user of
the image, without privileges, on a read-only root with one writable volume.

    oci_test.py BUILD-DIRECTORY SLUICE-PROGRAM

Packs the program of the build directory. The sluice program of the build is the client. Needs root.
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import unittest

from commands import run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
IMAGE_BYTES_MAX = 25_000_000
PASSWORD = "a-password-of-a-test"
# Arguments: the root, the volume, the user, the client, and the command of the image.
CONTAINER = f"""
set -eu
root=$1 volume=$2 user=$3 client=$4
shift 4
ip link set lo up
mount --bind "$root" "$root"
mount --bind "$volume" "$root/data"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
inside=(setpriv --no-new-privs chroot --userspec="$user" "$root")
export SLUICE_PASSWORD={PASSWORD}
echo {PASSWORD} | "${{inside[@]}}" /usr/bin/sluice user --users-file /data/users add alice
"${{inside[@]}}" "$@" > "$volume/log" 2>&1 &
server=$!
for _ in $(seq 100); do grep -q ^I/O "$volume/log" && break; sleep 0.1; done
head -c 3000000 /dev/urandom > "$volume/sent"
"$client" put --checksum "$volume/sent" smb://alice@127.0.0.1:1445/files/ || {{ cat "$volume/log"; exit 1; }}
"$client" get smb://alice@127.0.0.1:1445/files/sent "$volume/received"
cmp "$volume/sent" "$volume/received"
grep -E '^(Uid|CapEff):' /proc/$server/status
kill $server
wait $server
cat "$volume/log"
"""


class Image(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.directory.chmod(0o755)
        self.path, self.digest = self.built("first")
        with tarfile.open(self.path) as image:
            self.files = {entry.name: image.extractfile(entry).read() for entry in image if entry.isfile()}

    def built(self, name):
        path, digest = run(ROOT / "tools" / "package", "oci", "--build", BUILD, "--output", self.directory / name).split()
        return pathlib.Path(path), digest

    def blob(self, described):
        algorithm, digest = described["digest"].split(":")
        data = self.files[f"blobs/{algorithm}/{digest}"]
        self.assertEqual(hashlib.sha256(data).hexdigest(), digest)
        self.assertEqual(len(data), described["size"])
        return data

    def parts(self):
        """Returns the configuration and the uncompressed layers, after it has checked every digest."""
        self.assertEqual(json.loads(self.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        [described] = json.loads(self.files["index.json"])["manifests"]
        self.assertEqual(described["digest"], self.digest)
        manifest = json.loads(self.blob(described))
        configuration = json.loads(self.blob(manifest["config"]))
        layers = [gzip.decompress(self.blob(layer)) for layer in manifest["layers"]]
        self.assertEqual(configuration["rootfs"]["diff_ids"], [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers])
        return configuration, layers

    def test_the_image_is_small_and_the_same_input_gives_the_same_bytes(self):
        _, layers = self.parts()
        self.assertLess(sum(map(len, layers)), IMAGE_BYTES_MAX)
        again, digest = self.built("second")
        self.assertEqual(digest, self.digest)
        self.assertEqual(again.read_bytes(), self.path.read_bytes())

    def test_every_file_of_the_image_belongs_to_root_except_the_volume(self):
        configuration, layers = self.parts()
        with tarfile.open(fileobj=io.BytesIO(layers[0])) as layer:
            entries = layer.getmembers()
        self.assertEqual({entry.name for entry in entries if entry.uid != 0}, {"data", "data/files"})
        self.assertEqual([entry.name for entry in entries if entry.mode & 0o6022], [])
        self.assertEqual(configuration["config"]["Volumes"], {"/data": {}})

    def test_it_serves_as_an_unprivileged_user_on_a_read_only_root(self):
        configuration, layers = self.parts()
        settings = configuration["config"]
        root, volume = self.directory / "root", self.directory / "volume"
        for layer in layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as packed:
                packed.extractall(root, numeric_owner=True)
        shutil.copytree(root / "data", volume)  # as a runtime fills a new volume
        user = settings["User"]
        for path in (volume, volume / "files"):
            os.chown(path, *map(int, user.split(":")))
        text = run("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", CONTAINER,
                   "container", root, volume, user, CLIENT, *settings["Entrypoint"], *settings["Cmd"])
        uid = user.split(":")[0]
        self.assertRegex(text, rf"Uid:\t{uid}\t{uid}\t{uid}\t{uid}")
        self.assertRegex(text, r"CapEff:\t0+\n")
        self.assertIn("files", text)


def main():
    global BUILD, CLIENT
    BUILD, CLIENT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    del sys.argv[1:3]
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("skipped: only root can create the namespaces of a container")
        sys.exit(SKIPPED)
    unittest.main()


if __name__ == "__main__":
    main()
