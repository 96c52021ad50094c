# SPDX-License-Identifier: Apache-2.0
"""Runs calls over a gRPC channel, on the calling thread."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import math
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from crout._call import Attempts, Call, Reply, RetryPolicy, RoundCall, RoundReply
from crout._diagnostics import error_from
from crout._memory import Loan, Memory
from crout._progress import ProgressBar, ProgressReport
from crout._replicas import Replicas
from crout._settings import Priority, Tls, Token, credentials
from crout.errors import Cancelled, CroutError, DeadlineExceeded, ProtocolError

T = TypeVar("T")

SERVICE = "/crout.v1.FactorizationService/"

CHANNEL_OPTIONS: list[tuple[str, Any]] = [
    # gRPC's default of 4 MiB is too small for long lists and for permutations.
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_send_message_length", -1),
    # The retries of this package replace gRPC's own, which would buffer copies of the messages.
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    # Larger frames take less time to parse for each byte of a matrix.
    ("grpc.http2.max_frame_size", 4 << 20),
    # A call ends if the server is silent for 60 s: 25 s before a ping, 15 s for its answer, and at most 20 s
    # for a new connection. The number of pings is unlimited, because a computation may be long.
    ("grpc.keepalive_time_ms", 25_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.http2.ping_timeout_ms", 15_000),  # for gRPC 1.64 and newer; older versions use keepalive's timeout
    ("grpc.http2.max_pings_without_data", 0),
    # The default lets two minutes pass between attempts to reach a server that restarts.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]

# Largest number of seconds to wait until the server ends a closed series.
CLOSE_SECONDS = 2.0

# A call with a single request message runs on the calling thread, which saves about 100 us.
_SINGLE_THREADED = ("SingleThreadedUnaryStream", 1)


@dataclass(frozen=True)
class Server:
    """Address of a server, with the tenant, priority, credentials, timeout and retries of its calls."""

    address: str
    tenant: str | None
    timeout: float | None
    retry: RetryPolicy
    tls: Tls | None = None
    token: Token | None = None
    priority: Priority = "normal"

    def metadata(self) -> list[tuple[str, str]]:
        """Make the metadata of every call. Raises InvalidRequest and UnreadableFile for the token's file."""
        pairs = [] if self.tenant is None else [("crout-tenant", self.tenant)]
        if self.priority != "normal":
            pairs.append(("crout-priority", self.priority))
        if self.token is not None:
            pairs.append(("authorization", f"Bearer {self.token.read()}"))
        return pairs

    def channel_options(self) -> list[tuple[str, Any]]:
        """Return the options of channels to the server."""
        return [*CHANNEL_OPTIONS, *(self.tls.channel_options() if self.tls is not None else ())]

    def time_limit(self, call: Call[Any]) -> float | None:
        """Return the seconds for a call; None: no limit."""
        timeout = self.timeout if call.timeout is None else call.timeout
        return None if timeout is None or math.isinf(timeout) else timeout

    def attempts(self, call: Call[Any]) -> Attempts:
        """Make the counter of attempts of one call."""
        timeout = self.timeout if call.timeout is None else call.timeout
        return Attempts(self.retry, call.retry, timeout)

    def error(self, status: Any) -> CroutError:
        """Make the exception for the status of a gRPC call."""
        trailers = [(key, value) for key, value in status.trailing_metadata() or ()]
        return error_from(
            status.code().name, status.details() or "", trailers, self.address, self.tls is not None
        )


def report_for(call: Call[Any]) -> ProgressReport:
    """Make the progress reporter of a call."""
    callback = ProgressBar() if call.progress is True else call.progress or None
    return ProgressReport(callback, call.bytes_total)


class Outgoing:
    """Iterator over the messages of a call, which gRPC advances on one of its threads.

    Attributes
    ----------
    error : Exception or None
        Error of reading the payload.
    cancel : callable or None
        Cancels the call; None before the call exists.
    """

    def __init__(self, call: Call[Any], loan: Loan, report: ProgressReport) -> None:
        self._messages = call.messages(loan)
        self._report = report
        self.error: Exception | None = None
        self.cancel: Callable[[], object] | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            for message, sent in self._messages:
                yield message
                self._report.on_sent(sent)
        except Exception as error:
            if self.cancel is None:
                raise
            # The thread that waits for the reply raises the error; gRPC would only log it here.
            self.error = error
            self.cancel()


def first_two(messages: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """Return the first message, and an iterator over all messages; None if there is only one."""
    first = next(messages)
    second = next(messages, None)
    if second is None:
        return first, None
    return first, itertools.chain((first, second), messages)


class Transport:
    """A channel to a server, which connects at the first call and after a lost connection. Thread-safe."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._closed = False
        self._reached = False  # whether the server has answered
        self._metadata = server.metadata()
        self.replicas = Replicas()
        self.memory = Memory(server.address)
        options = [*server.channel_options(), _SINGLE_THREADED]
        self._channel = (
            grpc.insecure_channel(server.address, options=options)
            if server.tls is None
            else grpc.secure_channel(server.address, credentials(server.tls), options=options)
        )

    def close(self) -> None:
        """Close the connection; running calls are cancelled."""
        self._closed = True
        self._channel.close()
        self.memory.close()

    @property
    def server(self) -> Server:
        """The server of the connection."""
        return self._server

    def start(self, path: str, messages: Iterator[bytes], handle: str) -> Any:
        """Start a bidirectional stream without a deadline. Raises ValueError if the channel is closed."""
        return self._channel.stream_stream(path)(messages, metadata=self.metadata(handle))

    def metadata(self, handle: str) -> list[tuple[str, str]]:
        """Return the metadata of a call on `handle`."""
        return self._metadata + self.replicas.metadata(handle)

    def failure(self, status: Any) -> CroutError:
        """Make the exception for the status with which gRPC ended a call."""
        error = self._server.error(status)
        return closed_error() if self._closed and isinstance(error, Cancelled) else error

    def run(self, call: Call[T]) -> T:
        """Run a call, with retries as in `RetryPolicy`, and return its result. Raises CroutError."""
        attempts = self._server.attempts(call)
        with report_for(call) as report:
            while True:
                reply = call.reply()
                try:
                    self._attempt(call, reply, report, attempts.begin())
                    self._reached = True
                    return reply.finish()
                except CroutError as error:
                    self._reached = self._reached or error.reason != ""  # a reason is the server's
                    reply.explain(error)
                    call.name_file(error)
                    delay = attempts.delay_after(error, reply.repeatable, self._reached)
                time.sleep(delay)

    def _attempt(self, call: Call[T], reply: Reply[T], report: ProgressReport, timeout: float | None) -> None:
        failure: Exception
        outgoing: Outgoing | None = None
        try:
            with self.memory.borrow(call) as loan:
                outgoing = Outgoing(call, loan, report)
                reply.shared_memory, reply.shared_array = loan.reply, loan.reply_array
                self._exchange(call, outgoing, reply, report, timeout)
            return
        except grpc.RpcError as status:
            self.replicas.learn(reply.handle or call.handle, status.trailing_metadata())
            failure = (outgoing and outgoing.error) or self.failure(status)
        except ValueError as error:  # raised by gRPC for a closed channel
            failure = _closed(error)
        raise failure  # outside `except`: its context must not refer to gRPC's call

    def _exchange(
        self,
        call: Call[T],
        outgoing: Outgoing,
        reply: Reply[T],
        report: ProgressReport,
        timeout: float | None,
    ) -> None:
        first, several = first_two(iter(outgoing))
        path = SERVICE + call.method
        options = {"timeout": timeout, "metadata": self.metadata(call.handle)}
        if call.unary:
            response, ended = self._channel.unary_unary(path).with_call(first, **options)
            self.replicas.learn(call.handle, ended.trailing_metadata())
            reply.feed(response)
            return
        # On the wire a stream of one message equals a unary call.
        running = (
            self._channel.unary_stream(path)(first, **options)
            if several is None
            else self._channel.stream_stream(path)(several, **options)
        )
        outgoing.cancel = running.cancel
        try:
            for message in running:
                phase = reply.feed(message)
                if phase is not None:
                    report.on_phase(phase)
            self.replicas.learn(reply.handle or call.handle, running.trailing_metadata())
        # Stop the server's work after Ctrl-C, an invalid reply, or an exception of a callback.
        except BaseException as error:
            running.cancel()
            # The traceback has frames of gRPC that refer to the call. If they live until the interpreter
            # ends, the call's destructor may wait for a lock of a thread that no longer exists.
            raise error.with_traceback(None)  # noqa: B904
        finally:
            outgoing.cancel = None
            del running


class Rounds:
    """A call in rounds: one stream, with a reply to each round. One thread at a time may use it.

    An error ends the call; it is not retried. Factors that the server made stay.
    """

    def __init__(self, transport: Transport, method: str) -> None:
        self._transport = transport
        self._path = SERVICE + method
        self._rounds: queue.SimpleQueue[Outgoing | None] = queue.SimpleQueue()
        self._running: Any = None
        self._handle = ""  # handle of the last factor

    def exchange(self, call: RoundCall[T]) -> T:
        """Run one round: send the messages of `call` and return its result. Raises CroutError."""
        with report_for(call) as report:
            reply = call.reply()
            deadline = _Deadline(self._transport.server.time_limit(call), self._cancel)
            failure: Exception
            outgoing: Outgoing | None = None
            try:
                if self._running is None:  # must exist before the timeout starts, because it cancels the call
                    self._running = self._transport.start(self._path, self._messages(), call.handle)
                with deadline, self._transport.memory.borrow(call) as loan:
                    outgoing = Outgoing(call, loan, report)
                    reply.shared_memory, reply.shared_array = loan.reply, loan.reply_array
                    self._exchange(outgoing, reply, report)
                self._handle = reply.handle
                return reply.finish()
            except grpc.RpcError as status:
                self._transport.replicas.learn(reply.handle or call.handle, status.trailing_metadata())
                failure = (outgoing and outgoing.error) or self._transport.failure(status)
                if deadline.passed and isinstance(failure, Cancelled):
                    failure = DeadlineExceeded(
                        "the timeout of the step passed: give the series a longer timeout=",
                        code="DEADLINE_EXCEEDED",
                    )
            except ValueError as error:  # raised by gRPC for a closed channel
                failure = _closed(error)
            raise failure

    def close(self) -> bool:
        """End the call. Returns whether the server can still be called.

        Waits at most CLOSE_SECONDS for the server's end, then cancels the call. While the interpreter shuts
        down, the server cannot be called: gRPC's threads no longer run and may have held locks. The call
        then ends with its connection.
        """
        if sys.is_finalizing():
            return False
        self._rounds.put(None)
        if self._running is None:
            return True
        ended = threading.Event()
        # gRPC does not accept a callback for a call that has ended.
        if not self._running.add_callback(ended.set) or ended.wait(CLOSE_SECONDS):
            self._transport.replicas.learn(self._handle, self._running.trailing_metadata())
        self._cancel()
        self._running = None
        return True

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _messages(self) -> Iterator[bytes]:
        """Generate the messages of all rounds, on a thread of gRPC."""
        while (outgoing := self._rounds.get()) is not None:
            yield from outgoing

    def _exchange(self, outgoing: Outgoing, reply: RoundReply[T], report: ProgressReport) -> None:
        outgoing.cancel = self._cancel
        self._rounds.put(outgoing)
        try:
            for message in self._running:
                phase = reply.feed(message)
                if phase is not None:
                    report.on_phase(phase)
                if reply.done:
                    return
        except BaseException:
            self._cancel()
            raise
        finally:
            outgoing.cancel = None
        raise ProtocolError("the server ended the stream before its reply")


class _Deadline:
    """Context manager that calls `expire` if the block takes longer than `seconds`; None: never."""

    def __init__(self, seconds: float | None, expire: Callable[[], object]) -> None:
        self._timer = None if seconds is None else threading.Timer(seconds, self._pass)
        self._expire = expire
        self.passed = False

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        self.passed = True
        self._expire()


def closed_error() -> CroutError:
    """Make the exception of calls of a closed client, including calls that were running."""
    return Cancelled("the client is closed: connect again")


def _closed(error: ValueError) -> Exception:
    if isinstance(error, CroutError):
        return error
    if "closed channel" in str(error).lower() or "channel closed" in str(error).lower():
        return closed_error()
    return error


_unfinished: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()

# A child process does not close iterators of its parent.
os.register_at_fork(after_in_child=_unfinished.clear)


def closed_at_exit(iterator: Generator[T, None, None]) -> Generator[T, None, None]:
    """Register the iterator, so that it is closed at exit if it still exists.

    Its destructor would run too late: while modules are torn down, gRPC's threads do not run.
    """
    _unfinished.add(iterator)
    return iterator


@atexit.register
def _close_all() -> None:
    for iterator in list(_unfinished):
        with contextlib.suppress(ValueError):  # another thread is running it
            iterator.close()
