# Functions for the commands of the transcripts. Each case runs in a directory of its own, which is also HOME.

# Starts a server, and waits for the end of its banner. Creates the directory `share`.
serve() {
    mkdir -p share
    : >banner
    sluice serve --listen 127.0.0.1:0 --users-file users "$@" >banner 2>log &
    server=$!
    until grep -q '^I/O' banner || ! kill -0 $server 2>/dev/null; do sleep 0.02; done
}

# Makes the server read its files again, and waits for the end of that.
reload() {
    set -- "$(reloads)"
    kill -HUP $server
    until [ "$(reloads)" != "$1" ]; do sleep 0.02; done
}

reloads() {
    grep -c -e 'cannot reload shares' -e 'configuration reloaded' log
}

# Prints the log, except for lines about clients. Returns the exit status of the server.
stop() {
    kill -TERM $server
    wait $server
    set -- $?
    grep -v -e 'msg="user logged on"' -e 'msg="connection closed"' log >&2
    return $1
}

# Runs a command as an account without privileges.
unprivileged() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}

# patch FILE OFFSET BYTES: overwrites bytes of a file. BYTES: with escapes, as \x1f.
patch() {
    env printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# Waits until a file exists.
await() {
    until [ -e "$1" ]; do sleep 0.02; done
}

# without_call NUMBER COMMAND ARGUMENT...: runs a command to which a system call is denied with ENOSYS, as systemd and the
# seccomp profiles of containers do.
without_call() {
    python3 -c '
import ctypes, os, struct, sys
code = b"".join(struct.pack("=HBBI", *each) for each in [
    (0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7FFF0000)])
memory = ctypes.create_string_buffer(code)
rules = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(memory)))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, rules):
    sys.exit("prctl failed")
os.execvp(sys.argv[2], sys.argv[2:])' "$@"
}
