"""A relay between a client and a server that acts at a chosen request of a copy: it changes a file, or closes the connection."""

import socket
import struct
import threading

CREATE, READ, WRITE = 5, 8, 9
HEADER_BYTES = 64
STATUS_PENDING = 0x103
NOTIFICATION = 0xffffffffffffffff  # the message ID of a message that is not a reply
REPLIES_SECONDS_MAX = 30


class Cut(Exception):
    """Raised by `on_request`: the connection ends before this request, and after the replies to earlier ones."""


class Relay:
    """Forwards the bytes of one connection at a time unchanged while the `with` block runs.

    Calls `on_request(command)` for each request that is not encrypted, before the request reaches the server.
    """

    def __init__(self, port, on_request):
        self._to, self._on_request = ("127.0.0.1", port), on_request
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self.port = self._listening.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._end(self._listening, *self._open)

    @staticmethod
    def _end(*sockets):
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def _accept(self):
        try:
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._to)
                self._open += [client, server]
                unanswered = Unanswered()
                for forward in (self._forward_replies, self._forward_requests):
                    threading.Thread(target=forward, args=(client, server, unanswered), daemon=True).start()
        except OSError:
            pass

    def _forward_replies(self, client, server, unanswered):
        try:
            for frame in frames_of(server):
                client.sendall(frame)
                for _, message, status in headers_of(frame):
                    if status != STATUS_PENDING and message != NOTIFICATION:
                        unanswered.change(-1)
        except OSError:
            pass
        self._end(client, server)

    def _forward_requests(self, client, server, unanswered):
        try:
            for frame in frames_of(client):
                headers = list(headers_of(frame))
                for command, _, _ in headers:
                    self._on_request(command)
                unanswered.change(len(headers))
                server.sendall(frame)
        except Cut:
            unanswered.wait_for_none()
            self._end_after_its_bytes(client)
        except OSError:
            pass
        self._end(client, server)

    @staticmethod
    def _end_after_its_bytes(client):
        """Ends the connection without a reset, which would discard the replies that the client has not read."""
        try:
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 20):
                pass
        except OSError:
            pass


class Unanswered:
    """The number of requests of a connection whose replies were not forwarded yet."""

    def __init__(self):
        self._count, self._changed = 0, threading.Condition()

    def change(self, by):
        with self._changed:
            self._count += by
            self._changed.notify_all()

    def wait_for_none(self):
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0, REPLIES_SECONDS_MAX)


def frames_of(connection):
    """Yields the frames that arrive, with their prefixes."""
    stream = connection.makefile("rb")
    while prefix := stream.read(4):
        yield prefix + stream.read(int.from_bytes(prefix, "big"))


def headers_of(frame):
    """Yields command, message ID and status of the messages in a frame; nothing for an encrypted one."""
    at = 4
    while frame[at:at + 4] == b"\xfeSMB" and len(frame) >= at + HEADER_BYTES:
        status, command, _, _, following, message = struct.unpack_from("<IHHIIQ", frame, at + 8)
        yield command, message, status
        if not following:
            return
        at += following


class at_request:
    """An `on_request` that calls `act` at the `number`-th request of a command."""

    def __init__(self, command, number, act):
        self._command, self._number, self._act = command, number, act
        self.seen = 0

    def __call__(self, command):
        self.seen += command == self._command
        if command == self._command and self.seen == self._number:
            self._act()


def cut():
    raise Cut
