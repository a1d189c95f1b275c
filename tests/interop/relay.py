"""A relay between a client and a server that acts at an exact request of a copy: it changes a file, or cuts the line."""

import socket
import struct
import threading
import time

CREATE, READ, WRITE = 5, 8, 9
HEADER_BYTES = 64


class Cut(Exception):
    """Raised by `on_request`: the connection ends before this request."""


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
                threading.Thread(target=self._forward_replies, args=(client, server), daemon=True).start()
                threading.Thread(target=self._forward_requests, args=(client, server), daemon=True).start()
        except OSError:
            pass

    def _forward_replies(self, client, server):
        try:
            while piece := server.recv(1 << 20):
                client.sendall(piece)
        except OSError:
            pass
        self._end(client, server)

    def _forward_requests(self, client, server):
        try:
            stream = client.makefile("rb")
            while prefix := stream.read(4):
                frame = stream.read(int.from_bytes(prefix, "big"))
                for command in commands_of(frame):
                    self._on_request(command)
                server.sendall(prefix + frame)
        except Cut:
            time.sleep(0.3)  # the replies to earlier requests pass before the end
        except OSError:
            pass
        self._end(client, server)


def commands_of(frame):
    """The commands of the messages in a frame; none of an encrypted one."""
    at = 0
    while frame[at:at + 4] == b"\xfeSMB" and len(frame) >= at + HEADER_BYTES:
        yield struct.unpack_from("<H", frame, at + 12)[0]
        following = struct.unpack_from("<I", frame, at + 20)[0]
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
