"""What smbtorture.py sets up for each suite: time limits, options of the server and of smbtorture, shares and files."""

import pathlib
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent

SUITE_SECONDS_MAX = 150
# They wait for the timeout of breaks, 35 seconds each, or for notifications that must not be sent.
SLOW_SUITE_SECONDS_MAX = {"lease": 400, "multichannel": 300, "notify": 300, "oplock": 300, "replay": 400}
# They wait for a key press, count descriptors for minutes, or measure.
LEFT_OUT = ("bench", "hold-oplock", "hold-sharemode", "maxfid", "scan")
# Seconds each, with the same result in each run, so that `make test` can run them: the usual
# operations of clients.
QUICK = ("acls", "async_dosmode", "charset", "check-sharemode", "compound", "compound_async", "connect", "create",
         "credits", "delete-on-close-perms", "deny", "durable-open", "durable-open-disconnect", "durable-v2-open",
         "fileid", "getinfo", "ioctl", "ioctl-on-stream", "lock", "mkdir", "openattr", "read", "rename", "rw",
         "session", "session-id", "session-require-signing", "sharemode", "tcon", "winattr")
REQUIRES_SIGNING = "session-require-signing"  # a suite about servers that require signing

USER = "walker"
OTHER_USER = ("guest-walker", "Stone-Bridge-8")


@dataclass(frozen=True)
class Release:
    """A release of smbtorture: the way to run its suites, and the expected results."""

    name: str
    ledgers: dict  # kind of signing -> the list of failing tests
    reference: pathlib.Path  # the results of Samba of this release
    # Each suite has a network namespace: the server has port 445, and smbtorture can block connections with iptables.
    needs_namespaces: bool = False
    server_options: tuple = ()  # for each server
    is_full: bool = False  # with SETTINGS, ONE_BY_ONE and ALONE


# 4.17 is that of Debian 12, which `make test` runs. 4.22 is that of Debian 13, with all that its tests need.
RELEASES = {
    "4.17": Release("4.17", {"required": HERE / "ledger-signed.txt", "optional": HERE / "ledger.txt"},
                    HERE / "samba-4.17.txt"),
    # The tests open audit lists, and expect files to have short names.
    "4.22": Release("4.22", {"required": HERE / "ledger-4.22.txt"}, HERE / "samba-4.22.txt", needs_namespaces=True,
                    server_options=("--short-names", "on", "--auditor", USER), is_full=True),
}
# Kind of signing -> the server's options. `required` is the server's default.
SIGNING = {"required": [], "optional": ["--no-signing"]}
# Suite -> options of its server, with each kind of signing. smbtorture numbers its messages from 0 on each connection. With
# AES-GMAC, it would repeat nonces on the third channel of a session, so that the server rejects that channel.
AES_CMAC = ["--signing-algorithms", "aes-cmac"]
SERVER_OPTIONS = {"multichannel": AES_CMAC, "replay": AES_CMAC}
# Suite -> the name of a second share that smbtorture connects to, and its setting in the configuration file.
SECOND_SHARES = {"acls": ("hideunread", "hide-unreadable = true"), "ioctl": ("noperm", "")}


@dataclass(frozen=True)
class Settings:
    """What the tests of a suite expect to find."""

    torture: tuple = ()  # smbtorture's own options, NAME=VALUE
    server: tuple = ()
    files: tuple = ()  # empty files in the share
    is_fat: bool = False  # the share is a FAT image


WITH_OTHER_USER = Settings(torture=(f"user2name={OTHER_USER[0]}", f"user2password={OTHER_USER[1]}"),
                           server=("--user", "%".join(OTHER_USER)))
# Suite -> what it needs, with Release.is_full. Only with `smbd=no` does smbtorture not expect Samba's interim replies;
# only FAT volumes have no named streams; a break takes up to 36 seconds with the second that the test waits for it.
SETTINGS = {
    "compound_async": Settings(torture=("smbd=no",)),
    "create_no_streams": Settings(is_fat=True),
    "durable-open": WITH_OTHER_USER,
    "durable-v2-delay": WITH_OTHER_USER,
    "durable-v2-open": WITH_OTHER_USER,
    "ea": Settings(torture=("acl_xattr_name=sluice.security",)),
    "lock": Settings(torture=("open_brlock_deadlock_timemout=5",)),
    "oplock": Settings(torture=("oplocktimeout=36",)),
    "replay": WITH_OTHER_USER,
    "session": Settings(torture=WITH_OTHER_USER.torture, server=(*WITH_OTHER_USER.server, "--guest", "--guest-write")),
    "set-sparse-ioctl": Settings(torture=("filename=f",)),
    "twrp": Settings(torture=("twrp_file=f", "twrp_snapshot=@GMT-2025.01.31-12.00.00"),
                     server=("--previous-versions", ".snapshots/%Y-%m-%d_%H%M%S"),
                     files=("f", "subdir/hardlink", ".snapshots/2025-01-31_120000/f",
                            ".snapshots/2025-01-31_120000/subdir/hardlink")),
    "zero-data-ioctl": Settings(torture=("filename=f", "offset=0", "beyond_final_zero=4096"), files=("f",)),
}
# Suite -> seconds for each of its tests, which have a server each: one that fails leaves connections with breaks behind
# (multichannel), or may hang. smbtorture cancels a request by message ID 0 if it has no interim reply yet, and then waits
# for the reply without end (notify, replay). So a test that hangs is repeated, ATTEMPTS_MAX in all.
ONE_BY_ONE = {"dirlease": 60, "multichannel": 120, "notify": 40, "replay": 120}
ATTEMPTS_MAX = 4
# Test -> options of the server with which it is repeated on its own if it fails, for the reason of SERVER_OPTIONS. The other
# tests of the suite are skipped without AES-GMAC.
ALONE = {f"session.{name}": AES_CMAC for name in ("bind1", "bind2", "bind_different_user", "bind_invalid_auth")}
