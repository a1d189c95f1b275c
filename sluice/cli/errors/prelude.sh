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
