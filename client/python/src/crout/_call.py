"""A call as plain data: what is sent, and what becomes of what arrives.

No gRPC here: `crout._transport` and `crout._aio_transport` move the bytes.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from crout import _wire, results
from crout._payload import CHUNK, Bytes, Opener
from crout._retry import RetryClass
from crout.errors import CroutError
from crout.results import Progress

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

ProgressCallback = Callable[[Progress], object]

# The first message of a call that may have to wait for another with its request_id has no more.
_WAITING_CHUNK = 32 << 10


class Reply(Protocol[T_co]):
    """Puts the messages of one attempt together."""

    @property
    def repeatable(self) -> bool:
        """False once a further attempt would find its input overwritten."""

    def feed(self, message: bytes) -> Any | None:
        """Take the next message; its Progress, if it has one. Raises ProtocolError."""

    def finish(self) -> T_co:
        """The result, after a status of OK. Raises ProtocolError where something is missing."""

    def explain(self, error: CroutError) -> None:
        """Add to the error of the attempt what had arrived before it."""


class RoundReply(Reply[T_co], Protocol[T_co]):
    """The reply of one round of a call that goes on: it knows when it is whole."""

    @property
    def done(self) -> bool:
        """Whether the round's last message has come."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call.

    Attributes
    ----------
    method : str
        Its name in the service.
    first : bytes
        The first message, without payload.
    reply : callable
        A new Reply for each attempt.
    retry : RetryClass
        What another attempt could do.
    payloads : tuple of (int, Opener)
        What is streamed after it: the number of a `bytes` field each, and the bytes that it carries.
    unary : bool
        The reply is one message, too.
    waits : bool
        It has a request_id.
    timeout : float or None
        Seconds for all attempts; None for the client's.
    progress : callable or bool
        Is told how far the call is; True: a progress bar.
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

    def messages(self) -> Iterator[tuple[bytes, int]]:
        """What is sent, and how many payload bytes have been with each message.

        What fits rides in the first, so that a small call is one message.
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
    """One round of a call that goes on."""

    reply: Callable[[], RoundReply[T]]


class ProgressReport:
    """Tells a callback of both what is sent and what the server reports, one at a time.

    A context manager: at its end the callback's ``close``, if it has one, is called.
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
        """Payload bytes were handed to gRPC, `count` in all."""
        if self._callback is not None:
            with self._lock:
                self._last = dataclasses.replace(self._last, bytes_sent=count)
                self._callback(self._last)

    def on_phase(self, message: Any) -> None:
        """The server sent a Progress message."""
        if self._callback is not None:
            with self._lock:
                self._last = results.progress(message, self._last.bytes_sent)
                self._callback(self._last)
