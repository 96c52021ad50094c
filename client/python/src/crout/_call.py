# SPDX-License-Identifier: Apache-2.0
"""A call as plain data: the request, and the handler of the reply.

This module does not use gRPC: `crout._transport` and `crout._aio_transport` transfer the bytes.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from crout import _messages, _wire
from crout._payload import CHUNK, Bytes, Opener
from crout._retry import RetryClass
from crout.errors import CroutError
from crout.results import Progress

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

ProgressCallback = Callable[[Progress], object]

# Limit of the first message of a call that may have to wait for another with its request_id.
_WAITING_CHUNK = 32 << 10


class Reply(Protocol[T_co]):
    """Assembles the messages of one attempt."""

    @property
    def repeatable(self) -> bool:
        """Whether another attempt is possible; false once the input was overwritten."""

    def feed(self, message: bytes) -> Any | None:
        """Take the next message; return its Progress, if it has one. Raises ProtocolError."""

    def finish(self) -> T_co:
        """The result, after a status of OK. Raises ProtocolError if something is missing."""

    def explain(self, error: CroutError) -> None:
        """Add the messages received so far to the error of the attempt."""


class RoundReply(Reply[T_co], Protocol[T_co]):
    """The reply of one round of a longer call; detects when it is complete."""

    @property
    def done(self) -> bool:
        """Whether the round's last message has arrived."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call.

    Attributes
    ----------
    method : str
        Name in the service.
    first : bytes
        The first message, without payload.
    reply : callable
        Makes a Reply for each attempt.
    retry : RetryClass
        Effect of another attempt.
    payloads : tuple of (int, Opener)
        The streamed payloads: the number of a `bytes` field and its bytes.
    unary : bool
        Whether the reply is one message, too.
    waits : bool
        Whether it has a request_id.
    timeout : float or None
        Seconds for all attempts; None for the client's.
    progress : callable or bool
        Receives progress; True shows a progress bar.
    file : str
        Path of the matrix, which errors name in place of the argument A; "" for an array.
    """

    method: str
    first: bytes
    reply: Callable[[], Reply[T]]
    retry: RetryClass = RetryClass.IDEMPOTENT
    payloads: tuple[tuple[int, Opener], ...] = ()
    unary: bool = False
    waits: bool = False
    timeout: float | None = None
    progress: ProgressCallback | bool = False
    file: str = ""

    def name_file(self, error: CroutError) -> None:
        """Put the path of the matrix in place of the argument A at the start of the message."""
        text = str(error)
        if self.file and text.startswith("A:"):
            error.args = (self.file + text[1:], *error.args[1:])

    def messages(self) -> Iterator[tuple[bytes, int]]:
        """The messages, each with the payload bytes sent so far.

        The first message holds as much payload as fits, so that a small request is one message.
        """
        parts: list[Bytes] = [self.first]
        room = _WAITING_CHUNK if self.waits else CHUNK
        sent = filled = 0
        for number, open_pieces in self.payloads:
            for piece in open_pieces():
                if filled + len(piece) > room:
                    yield b"".join(parts), sent
                    parts, filled, room = [], 0, CHUNK
                parts += [_wire.bytes_field(number, len(piece)), piece]
                filled += len(piece)
                sent += len(piece)
        yield b"".join(parts), sent


@dataclass(frozen=True)
class RoundCall(Call[T]):
    """One round of a longer call."""

    reply: Callable[[], RoundReply[T]]


class ProgressReport:
    """Reports both sent bytes and the server's progress to a callback, one at a time.

    A context manager: at its end the callback's ``close`` is called, if it has one.
    """

    def __init__(self, callback: ProgressCallback | None) -> None:
        self._callback = callback
        self._lock = threading.Lock()
        self._last = Progress(bytes_sent=0)

    def __enter__(self) -> ProgressReport:
        return self

    def __exit__(self, *error: object) -> None:
        close = getattr(self._callback, "close", None)
        if close is not None:
            close()

    def on_sent(self, count: int) -> None:
        """Report that `count` payload bytes in total were passed to gRPC."""
        if self._callback is not None:
            with self._lock:
                self._last = dataclasses.replace(self._last, bytes_sent=count)
                self._callback(self._last)

    def on_phase(self, message: Any) -> None:
        """Report a Progress message of the server."""
        if self._callback is not None:
            with self._lock:
                self._last = _messages.progress(message, self._last.bytes_sent)
                self._callback(self._last)
