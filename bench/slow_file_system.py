"""A file system for benchmarks with a delay that a file sets: `slow_file_system.py SOURCE MOUNTPOINT CONTROL`.

It shows the directory SOURCE. Before each call, it reads CONTROL: the duration of the call in seconds, or `hang`, which
blocks the call until CONTROL has another content. Needs Debian's packages python3-fusepy and fuse (or fuse3).
"""

import os
import pathlib
import sys
import time

try:
    from fuse import FUSE, FuseOSError, Operations
except ImportError:  # the module name of Debian's python3-fusepy
    from fusepy import FUSE, FuseOSError, Operations

STATUS = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")
SPACE = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag", "f_frsize", "f_namemax")


class SlowFileSystem(Operations):
    """A file system that forwards each operation to the source directory, after the delay."""

    def __init__(self, source, control):
        self._source, self._control = source, pathlib.Path(control)

    def __call__(self, operation, *arguments):
        self._delay()
        try:
            return super().__call__(operation, *arguments)
        except FuseOSError:
            raise
        except OSError as error:
            raise FuseOSError(error.errno) from None

    def _delay(self):
        wanted = self._control.read_text(encoding="utf-8").strip()
        while wanted == "hang":
            time.sleep(0.1)
            wanted = self._control.read_text(encoding="utf-8").strip()
        time.sleep(float(wanted or 0))

    def getattr(self, path, fh=None):
        status = os.lstat(self._source + path)
        return {name: getattr(status, name) for name in STATUS}

    def statfs(self, path):
        space = os.statvfs(self._source + path)
        return {name: getattr(space, name) for name in SPACE}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self._source + path)]

    def open(self, path, flags):
        return os.open(self._source + path, flags)

    def create(self, path, mode, fi=None):
        return os.open(self._source + path, os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self._source + path, length)

    def flush(self, path, fh):
        return 0

    def fsync(self, path, datasync, fh):
        return os.fsync(fh)

    def release(self, path, fh):
        return os.close(fh)

    def unlink(self, path):
        os.unlink(self._source + path)

    def rename(self, old, new):
        os.rename(self._source + old, self._source + new)

    def mkdir(self, path, mode):
        os.mkdir(self._source + path, mode)

    def rmdir(self, path):
        os.rmdir(self._source + path)

    def chmod(self, path, mode):
        os.chmod(self._source + path, mode)

    def utimens(self, path, times=None):
        os.utime(self._source + path, times)


if __name__ == "__main__":
    FUSE(SlowFileSystem(sys.argv[1], sys.argv[3]), sys.argv[2], foreground=True, nothreads=False, attr_timeout=0,
         entry_timeout=0, allow_other=os.geteuid() == 0)
