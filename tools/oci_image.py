"""Writes an OCI image (https://github.com/opencontainers/image-spec) with the program and the libraries that it needs, without
a daemon. The same files and the same time give the same bytes."""

import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile
import time

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
USER = 65532  # not used by distributions, so that it owns nothing on the machine
VOLUME = "/data"
COMMAND = ["serve", "--port", "1445", "--users-file", f"{VOLUME}/users", "--status-socket", f"{VOLUME}/status.sock",
           f"files={VOLUME}/files"]
PASSWD = f"root:x:0:0:root:/:/\nsluice:x:{USER}:{USER}:sluice:{VOLUME}:/\n"
GROUP = f"root:x:0:\nsluice:x:{USER}:\n"


def output_of(*command):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True, text=True).stdout


def libraries_of(program):
    """Returns the paths under which the loader finds the libraries of `program`, the loader included."""
    return sorted(set(re.findall(r"(/\S+) \(0x", output_of("ldd", program))))


def copyright_of(library):
    """Returns the copyright notice of the Debian package that contains a library, or None."""
    real = pathlib.Path(library).resolve()
    for name in (library, real, str(real).removeprefix("/usr"), f"/usr{library}"):
        found = subprocess.run(["dpkg-query", "--search", str(name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if found.returncode == 0:
            notice = pathlib.Path("/usr/share/doc", found.stdout.split(":")[0], "copyright")
            return notice if notice.exists() else None
    return None


class Layer:
    """A tar file with the entries of an image in the order of their names."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._entries = {}

    def add(self, name, data=None, mode=0o755, owner=0):
        """Adds a file with this content, or a directory, and the directories above it."""
        name = name.lstrip("/")
        for parent in list(pathlib.PurePosixPath(name).parents)[:-1]:
            self._entries.setdefault(str(parent), (None, 0o755, 0))
        self._entries[name] = (data, mode, owner)

    def bytes(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, (data, mode, owner) in sorted(self._entries.items()):
                entry = tarfile.TarInfo(name)
                entry.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
                entry.size = 0 if data is None else len(data)
                entry.mode, entry.uid, entry.gid, entry.mtime = mode, owner, owner, self._seconds
                archive.addfile(entry, None if data is None else io.BytesIO(data))
        return packed.getvalue()


def layer_of(program, licence, seconds):
    layer = Layer(seconds)
    layer.add("/usr/bin/sluice", pathlib.Path(program).read_bytes())
    layer.add("/usr/share/doc/sluice/LICENSE", pathlib.Path(licence).read_bytes(), mode=0o644)
    for library in libraries_of(program):
        layer.add(library, pathlib.Path(library).read_bytes())
        if notice := copyright_of(library):
            layer.add(f"/usr/share/doc/{notice.parent.name}/copyright", notice.read_bytes(), mode=0o644)
    layer.add("/etc/passwd", PASSWD.encode(), mode=0o644)
    layer.add("/etc/group", GROUP.encode(), mode=0o644)
    layer.add("/proc")
    layer.add(VOLUME, owner=USER, mode=0o700)
    layer.add(f"{VOLUME}/files", owner=USER, mode=0o700)
    return layer.bytes()


def digest_of(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def json_bytes(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write(program, licence, version, seconds, machine, output):
    """Writes the image as a tar file that `podman load`, `docker load` and `skopeo` read. Returns the digest of its manifest."""
    layer = layer_of(program, licence, seconds)
    compressed = gzip.compress(layer, compresslevel=9, mtime=0)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    labels = {"org.opencontainers.image.title": "sluice", "org.opencontainers.image.version": version,
              "org.opencontainers.image.licenses": "Apache-2.0"}
    config = json_bytes({
        "architecture": ARCHITECTURES[machine], "os": "linux", "created": created,
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/sluice"], "Cmd": COMMAND, "WorkingDir": VOLUME,
                   "Env": ["PATH=/usr/bin", f"HOME={VOLUME}"], "ExposedPorts": {"1445/tcp": {}}, "Volumes": {VOLUME: {}},
                   "StopSignal": "SIGTERM", "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
        "history": [{"created": created, "created_by": "tools/package oci"}]})
    kind = "application/vnd.oci.image"

    def described(data, media_type, **more):
        return {"mediaType": media_type, "digest": digest_of(data), "size": len(data), **more}

    manifest = json_bytes({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
                           "config": described(config, f"{kind}.config.v1+json"),
                           "layers": [described(compressed, f"{kind}.layer.v1.tar+gzip")], "annotations": labels})
    index = json_bytes({"schemaVersion": 2, "mediaType": f"{kind}.index.v1+json", "manifests": [
        described(manifest, f"{kind}.manifest.v1+json",
                  annotations={"org.opencontainers.image.ref.name": f"sluice:{version}",  # podman
                               "io.containerd.image.name": f"localhost/sluice:{version}"},
                  platform={"architecture": ARCHITECTURES[machine], "os": "linux"})]})
    image = Layer(seconds)
    image.add("oci-layout", json_bytes({"imageLayoutVersion": "1.0.0"}), mode=0o644)
    image.add("index.json", index, mode=0o644)
    for blob in (compressed, config, manifest):
        image.add(f"blobs/sha256/{digest_of(blob).removeprefix('sha256:')}", blob, mode=0o644)
    pathlib.Path(output).write_bytes(image.bytes())
    return digest_of(manifest)
