# SPDX-License-Identifier: Apache-2.0
"""A relay between a client and a server that counts the client's pings and can stop relaying."""

import contextlib
import socket
import threading

_PREFACE = 24  # length of the connection preface
_HEADER = 9
_PING, _ACK = 6, 1


class Relay:
    """Relays one connection to `address`.

    Attributes
    ----------
    address : str
    """

    def __init__(self, address):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        host, port = address.split(":")
        self._server = socket.create_connection((host, int(port)))
        self._client = None
        self._pings = 0
        self._pinged = threading.Condition()
        self._silent = threading.Event()
        threading.Thread(target=self._relay, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._silent.set()
        for one in (self._listener, self._server, self._client):
            if one is not None:
                with contextlib.suppress(OSError):  # the peer has closed it
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def await_pings(self, count, timeout):
        """Return whether the client has sent `count` pings."""
        with self._pinged:
            return self._pinged.wait_for(lambda: self._pings >= count, timeout)

    def fall_silent(self):
        """Stop relaying, as if the server had stopped."""
        self._silent.set()

    def _relay(self):
        self._client, _ = self._listener.accept()
        threading.Thread(target=self._forward, args=(self._server, self._client), daemon=True).start()
        self._forward(self._client, self._server, self._count())

    def _forward(self, source, target, watcher=None):
        if watcher is not None:
            next(watcher)
        with contextlib.suppress(OSError):  # a peer or the end of the test has closed the socket
            while data := source.recv(1 << 16):
                if self._silent.is_set():
                    return
                if watcher is not None:
                    watcher.send(data)
                target.sendall(data)

    def _count(self):
        """Coroutine that counts the pings in the data sent to it."""
        pending, skip = b"", _PREFACE
        while True:
            pending += yield
            while len(pending) >= skip + _HEADER:
                frame = pending[skip:]
                if frame[3] == _PING and not frame[4] & _ACK:
                    with self._pinged:
                        self._pings += 1
                        self._pinged.notify_all()
                pending, skip = frame, _HEADER + int.from_bytes(frame[:3], "big")
