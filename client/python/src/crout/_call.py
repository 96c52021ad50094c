# SPDX-License-Identifier: Apache-2.0
"""Calls as data: the request, the handler of the reply, and retries. Does not use gRPC."""

from __future__ import annotations

import abc
import enum
import random
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from crout import _wire
from crout._device import DeviceArray
from crout._device_memory import DeviceReply
from crout._memory import Loan
from crout._payload import CHUNK, Bytes, Opener
from crout._progress import ProgressCallback
from crout._replicas import OTHER_REPLICA
from crout._wire import Range
from crout.errors import CroutError, Singular
from crout.records import FactorRecord

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
R = TypeVar("R")

# Largest payload of the first message of a call with a request_id. Such a call may have to wait for another
# call with this id; the server limits its first message to 64 KiB.
_WAITING_CHUNK = 32 << 10

_MAX_TIMEOUT = 1e9  # seconds; gRPC cannot represent much longer deadlines


class RetryClass(enum.Enum):
    """Effect of a second attempt."""

    # A second attempt could repeat the effect. The call is retried only if the server refused it before any
    # effect: RESOURCE_EXHAUSTED or ABORTED with the server's delay, or OTHER_REPLICA.
    REFUSED_ONLY = enum.auto()
    # A second attempt is safe: it only reads, or a request_id makes it idempotent. The call is also retried
    # after UNAVAILABLE.
    IDEMPOTENT = enum.auto()


@dataclass(frozen=True)
class RetryPolicy:
    """Policy of retries.

    A call is retried if the server refused it before any effect (RESOURCE_EXHAUSTED or ABORTED with a delay)
    or, if it is safe to repeat, after UNAVAILABLE. Retries end at the call's timeout.

    The delay before a retry is the server's, if it sent one; up to 20 % of jitter is added. Otherwise it is
    between 50 % and 100 % of an exponential backoff.

    If another server has the factor of the call, the first retry has no delay.

    A client that has reached its server waits for a restart of the server: a call that is safe to repeat is
    retried beyond `max_attempts` until `restart` seconds have passed since its first UNAVAILABLE.

    Attributes
    ----------
    max_attempts : int
        Largest number of attempts, the first one included; 1: no retries.
    initial_backoff, max_backoff : float
        First and largest backoff, in seconds; the backoff doubles after each attempt.
    max_server_delay : float
        Limit of the server's delay, in seconds.
    restart : float
        Seconds to wait for a restart of the server; without effect if `max_attempts` is 1.
    """

    max_attempts: int = 4
    initial_backoff: float = 0.05
    max_backoff: float = 5.0
    max_server_delay: float = 30.0
    restart: float = 30.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts is {self.max_attempts}: give at least 1")


class Reply(abc.ABC, Generic[T_co]):
    """Assembles the reply to one attempt."""

    _factor: FactorRecord | None = None  # set when it arrives
    shared_memory: memoryview | None = None  # destination of the reply's data, if the server uses it
    shared_array: DeviceArray | None = None  # the same for an array in GPU memory

    @property
    def repeatable(self) -> bool:
        """Whether another attempt is possible; false after the input was overwritten."""
        return True

    @property
    def handle(self) -> str:
        """The handle of the factor that arrived; "" if there is none."""
        return "" if self._factor is None else self._factor.handle

    @abc.abstractmethod
    def feed(self, message: bytes) -> Any | None:
        """Handle the next message. Returns its Progress, if it has one. Raises ProtocolError."""

    @abc.abstractmethod
    def finish(self) -> T_co:
        """Return the result, after a status of OK. Raises ProtocolError if a part is missing."""

    def explain(self, error: CroutError) -> None:
        """Add the factor, if one arrived, to a Singular error."""
        if isinstance(error, Singular):
            error.factor = self._factor


class RoundReply(Reply[T_co]):
    """Assembles the reply to one round of a call in rounds."""

    @property
    @abc.abstractmethod
    def done(self) -> bool:
        """Whether the round's last message has arrived."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call, and steps of one call.

    Attributes
    ----------
    method : str
        Name of the method in the service.
    first : bytes
        The first message, without payload.
    reply : callable
        Makes a Reply for each attempt.
    retry : RetryClass
        Effect of another attempt.
    payloads : tuple of (int, Opener)
        The streamed payloads, in order: the number of a `bytes` field, and its bytes.
    unary : bool
        Whether request and reply are one message each.
    reply_bytes : int
        Number of bytes of the matrix in the reply; 0 if there is none, if it is unknown, or with
        `device_reply`.
    device_reply : DeviceReply or None
        The matrix in the reply, if it becomes an array in GPU memory.
    waits : bool
        Whether the call has a request_id and may wait for another call with this id.
    timeout : float or None
        Seconds for all attempts; None for the client's timeout.
    progress : callable or bool
        Receives progress; True shows a progress bar.
    file : str
        Path of the matrix, for errors; "" if the matrix is an array.
    handle : str
        The handle in `first`; "" if there is none.
    """

    method: str
    first: bytes
    reply: Callable[[], Reply[T]]
    retry: RetryClass = RetryClass.IDEMPOTENT
    payloads: tuple[tuple[int, Opener], ...] = ()
    reply_bytes: int = 0
    device_reply: DeviceReply | None = None
    unary: bool = False
    waits: bool = False
    timeout: float | None = None
    progress: ProgressCallback | bool = False
    file: str = ""
    handle: str = ""

    @property
    def bytes_total(self) -> int:
        """Number of payload bytes; -1 if unknown."""
        sizes = [opener.size for _, opener in self.payloads]
        return -1 if -1 in sizes else sum(sizes)

    def __iter__(self) -> Steps[T]:
        """Yield the call and return its result. Other steps use ``result = yield from call``."""
        result: T = yield self
        return result

    def then(self, function: Callable[[T], R]) -> Steps[R]:
        """Return steps that run the call and return `function` of its result."""
        return function((yield from self))

    def name_file(self, error: CroutError) -> None:
        """Replace "A" at the start of the error's message by the path of the matrix, if it has one."""
        text = str(error)
        if self.file and text.startswith("A:"):
            error.args = (self.file + text[1:], *error.args[1:])

    def messages(self, loan: Loan) -> Iterator[tuple[bytes, int]]:
        """Generate the messages, each with the number of payload bytes up to its end.

        The first message contains as much payload as fits, so that a small request is one message. Payloads
        with a place in `loan` are copied there.
        """
        parts: list[Bytes] = [self.first, loan.reply_field]
        room = _WAITING_CHUNK if self.waits else CHUNK
        sent = filled = 0
        for index, (number, open_pieces) in enumerate(self.payloads):
            place = loan.places.get(index)
            for piece in open_pieces() if place is None else place.send(open_pieces):
                if isinstance(piece, Range):
                    parts.append(piece.field(number))
                    sent += piece.size
                    if not piece.last:  # the server copies it while the next bytes are written
                        yield b"".join(parts), sent
                        parts, filled, room = [], 0, CHUNK
                    continue
                if filled + len(piece) > room:
                    yield b"".join(parts), sent
                    parts, filled, room = [], 0, CHUNK
                parts += [_wire.bytes_field(number, len(piece)), piece]
                filled += len(piece)
                sent += len(piece)
        yield b"".join(parts), sent


Steps = Generator[Call[Any], Any, T]
"""An operation of several calls. It yields each call, receives its result, and returns its own result."""


@dataclass(frozen=True)
class RoundCall(Call[T]):
    """One round of a call in rounds, such as a step of a series."""

    reply: Callable[[], RoundReply[T]]


class Attempts:
    """Counts the attempts of one call and computes its delays up to the deadline."""

    def __init__(self, policy: RetryPolicy, retry: RetryClass, timeout: float | None) -> None:
        self._policy = policy
        self._retry = retry
        if timeout is not None and timeout > _MAX_TIMEOUT:
            timeout = None
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._made = 0
        self._restarted_by: float | None = None  # set by the first UNAVAILABLE
        self._redirected = False  # whether a retry went to the server of the factor

    def begin(self) -> float | None:
        """Count an attempt. Returns the seconds until the deadline; None for no limit."""
        self._made += 1
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def delay_after(self, error: CroutError, repeatable: bool, reached: bool) -> float:
        """Return the seconds to wait before the next attempt. Raises `error` if there must be none.

        `reached`: whether the server has answered this client.
        """
        if error.code == "UNAVAILABLE" and self._restarted_by is None:
            self._restarted_by = time.monotonic() + self._policy.restart
        if not repeatable or not self._may_retry(error):
            raise error
        if self._redirects(error):
            return 0.0
        if self._made >= self._policy.max_attempts and not (reached and self._restarting(error)):
            raise error
        delay = self._delay(error.retry_delay)
        if self._deadline is not None and time.monotonic() + delay >= self._deadline:
            raise error
        return delay

    def _redirects(self, error: CroutError) -> bool:
        """Whether this is the first refusal by a server that does not have the factor."""
        if self._redirected or error.reason != OTHER_REPLICA or error.retry_delay is not None:
            return False
        self._redirected = self._policy.max_attempts > 1
        return self._redirected

    def _restarting(self, error: CroutError) -> bool:
        """Whether the server may be restarting, so that the number of attempts is not limited."""
        if error.code != "UNAVAILABLE" or self._policy.max_attempts == 1:
            return False
        return self._restarted_by is not None and time.monotonic() < self._restarted_by

    def _may_retry(self, error: CroutError) -> bool:
        if error.code in ("RESOURCE_EXHAUSTED", "ABORTED"):
            return error.retry_delay is not None
        if error.code != "UNAVAILABLE":
            return False
        return self._retry is RetryClass.IDEMPOTENT or error.reason == OTHER_REPLICA

    def _delay(self, server_delay: float | None) -> float:
        """Return a random delay, so that clients that were refused together do not retry together."""
        if server_delay is not None:
            return min(server_delay, self._policy.max_server_delay) * random.uniform(1.0, 1.2)
        backoff: float = self._policy.initial_backoff * 2 ** (self._made - 1)
        return min(backoff, self._policy.max_backoff) * random.uniform(0.5, 1.0)
