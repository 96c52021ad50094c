# SPDX-License-Identifier: Apache-2.0
"""Runs calls over a gRPC channel, on the calling thread or on an asyncio event loop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import grpc.aio

from crout._call import Attempts, Call, ProgressBar, ProgressReport, Reply, RetryPolicy, RoundCall, RoundReply
from crout._diagnostics import error_from
from crout._settings import Tls, Token, credentials
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
]

# Largest number of seconds to wait for the server's end of a closed series.
LEAVE_SECONDS = 2.0

# A call with a single request message runs on the calling thread, which saves about 100 us.
_SINGLE_THREADED = ("SingleThreadedUnaryStream", 1)


@dataclass(frozen=True)
class Server:
    """Address of a server, with the tenant, credentials, timeout in seconds and retries of its calls."""

    address: str
    tenant: str | None
    timeout: float | None
    retry: RetryPolicy
    tls: Tls | None = None
    token: Token | None = None

    def metadata(self) -> list[tuple[str, str]]:
        """Make the metadata of every call. Raises InvalidRequest and UnreadableFile for the token's file."""
        pairs = [] if self.tenant is None else [("crout-tenant", self.tenant)]
        if self.token is not None:
            pairs.append(("authorization", f"Bearer {self.token.read()}"))
        return pairs

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
    if call.progress is True:
        return ProgressReport(ProgressBar())
    return ProgressReport(call.progress or None)


class Outgoing:
    """Iterator over the messages of a call, which gRPC advances on one of its threads.

    Attributes
    ----------
    error : Exception or None
        Error of reading the payload.
    cancel : callable or None
        Cancels the call; None before the call exists.
    """

    def __init__(self, call: Call[Any], report: ProgressReport) -> None:
        self._messages = call.messages()
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
        self._metadata = server.metadata()
        options = [*CHANNEL_OPTIONS, _SINGLE_THREADED]
        self._channel = (
            grpc.insecure_channel(server.address, options=options)
            if server.tls is None
            else grpc.secure_channel(
                server.address, credentials(server.tls), options=[*options, *server.tls.channel_options()]
            )
        )

    def close(self) -> None:
        """Close the connection; running calls are cancelled."""
        self._closed = True
        self._channel.close()

    @property
    def server(self) -> Server:
        """The server of the connection."""
        return self._server

    def start(self, path: str, messages: Iterator[bytes]) -> Any:
        """Start a bidirectional stream without a deadline. Raises ValueError if the channel is closed."""
        return self._channel.stream_stream(path)(messages, metadata=self._metadata)

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
                    return reply.finish()
                except CroutError as error:
                    reply.explain(error)
                    call.name_file(error)
                    delay = attempts.delay_after(error, reply.repeatable)
                time.sleep(delay)

    def _attempt(self, call: Call[T], reply: Reply[T], report: ProgressReport, timeout: float | None) -> None:
        outgoing = Outgoing(call, report)
        failure: Exception
        try:
            self._exchange(call, outgoing, reply, report, timeout)
            return
        except grpc.RpcError as status:
            failure = outgoing.error or self.failure(status)
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
        options = {"timeout": timeout, "metadata": self._metadata}
        if call.unary:
            reply.feed(self._channel.unary_unary(path)(first, **options))
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

    def exchange(self, call: RoundCall[T]) -> T:
        """Run one round: send the messages of `call` and return its result. Raises CroutError."""
        with report_for(call) as report:
            outgoing = Outgoing(call, report)
            reply = call.reply()
            deadline = _Deadline(self._transport.server.time_limit(call), self._cancel)
            failure: Exception
            try:
                if self._running is None:  # must exist before the timeout starts, which cancels it
                    self._running = self._transport.start(self._path, self._messages())
                with deadline:
                    self._exchange(outgoing, reply, report)
                return reply.finish()
            except grpc.RpcError as status:
                failure = outgoing.error or self._transport.failure(status)
                if deadline.passed and isinstance(failure, Cancelled):
                    failure = DeadlineExceeded("the step's timeout passed", code="DEADLINE_EXCEEDED")
            except ValueError as error:  # raised by gRPC for a closed channel
                failure = _closed(error)
            raise failure

    def close(self) -> bool:
        """End the call. Returns whether the server can still be called.

        Waits at most LEAVE_SECONDS for the server's end, then cancels the call. While the interpreter shuts
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
        in_order = not self._running.add_callback(ended.set) or ended.wait(LEAVE_SECONDS)
        self._cancel()
        self._running = None
        return in_order

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
    return Cancelled("the client is closed: connect anew")


def _closed(error: ValueError) -> Exception:
    if isinstance(error, CroutError):
        return error
    if "closed channel" in str(error).lower() or "channel closed" in str(error).lower():
        return closed_error()
    return error


class AsyncTransport:
    """Like `Transport`, for the event loop of its first call."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._metadata = server.metadata()
        self._channel: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None  # event loop of the channel
        self._closed = False

    async def close(self) -> None:
        """Close the connection; running calls are cancelled."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    @property
    def server(self) -> Server:
        """The server of the connection."""
        return self._server

    def start(self, path: str) -> Any:
        """Like `Transport.start`, for messages that are written one by one."""
        self._open()
        return self._channel.stream_stream(path)(metadata=self._metadata)

    async def run(self, call: Call[T]) -> T:
        """See `Transport.run`."""
        self._open()
        attempts = self._server.attempts(call)
        with report_for(call) as report:
            while True:
                reply = call.reply()
                try:
                    await self._attempt(call, reply, report, attempts.begin())
                    return reply.finish()
                except CroutError as error:
                    reply.explain(error)
                    call.name_file(error)
                    delay = attempts.delay_after(error, reply.repeatable)
                await asyncio.sleep(delay)

    def _open(self) -> None:
        """Make the channel, if there is none. Raises CroutError if it is closed or of another loop."""
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._loop = asyncio.get_running_loop()
            address, tls = self._server.address, self._server.tls
            self._channel = (
                grpc.aio.insecure_channel(address, CHANNEL_OPTIONS)
                if tls is None
                else grpc.aio.secure_channel(
                    address, credentials(tls), [*CHANNEL_OPTIONS, *tls.channel_options()]
                )
            )
        if self._loop is not asyncio.get_running_loop():
            raise CroutError(
                "the client belongs to another event loop, that of its first call: connect in each "
                "loop, inside the coroutine that asyncio.run runs",
                code="FAILED_PRECONDITION",
            )

    async def _attempt(
        self, call: Call[T], reply: Reply[T], report: ProgressReport, timeout: float | None
    ) -> None:
        outgoing = Outgoing(call, report)
        first, several = first_two(iter(outgoing))
        path = SERVICE + call.method
        options = {"timeout": timeout, "metadata": self._metadata}
        try:
            if call.unary:
                reply.feed(await self._channel.unary_unary(path)(first, **options))
                return
            # On the wire a stream of one message equals a unary call.
            running = (
                self._channel.unary_stream(path)(first, **options)
                if several is None
                else self._channel.stream_stream(path)(several, **options)
            )
            outgoing.cancel = running.cancel
            await self._receive(running, reply, report)
        except asyncio.CancelledError:
            if outgoing.error is not None:  # this error cancelled the call, not the caller
                raise outgoing.error from None
            if self._closed and not _cancelled_by_its_caller():
                raise closed_error() from None
            raise
        except grpc.RpcError as status:
            raise self._server.error(status) from None

    async def _receive(self, running: Any, reply: Reply[T], report: ProgressReport) -> None:
        try:
            async for message in running:
                phase = reply.feed(message)
                if phase is not None:
                    report.on_phase(phase)
        except BaseException:
            running.cancel()
            raise


class AsyncRounds:
    """Like `Rounds`; one task at a time may use it."""

    def __init__(self, transport: AsyncTransport, method: str) -> None:
        self._transport = transport
        self._path = SERVICE + method
        self._running: Any = None

    async def exchange(self, call: RoundCall[T]) -> T:
        """See `Rounds.exchange`."""
        with report_for(call) as report:
            reply = call.reply()
            try:
                await asyncio.wait_for(
                    self._exchange(call, reply, report), self._transport.server.time_limit(call)
                )
                return reply.finish()
            except asyncio.TimeoutError:
                raise DeadlineExceeded("the step's timeout passed", code="DEADLINE_EXCEEDED") from None
            except grpc.RpcError as status:
                raise self._transport.server.error(status) from None

    async def close(self) -> None:
        """See `Rounds.close`."""
        if self._running is None:
            return
        with contextlib.suppress(grpc.RpcError, asyncio.TimeoutError, asyncio.InvalidStateError):
            await self._running.done_writing()
            await asyncio.wait_for(self._running.read(), LEAVE_SECONDS)
        self._running.cancel()
        self._running = None

    async def _exchange(self, call: RoundCall[T], reply: RoundReply[T], report: ProgressReport) -> None:
        if self._running is None:
            self._running = self._transport.start(self._path)
        sending = asyncio.ensure_future(self._send(call, report))
        try:
            while not reply.done:
                message = await self._running.read()
                if message is grpc.aio.EOF:
                    raise ProtocolError("the server ended the stream before its reply")
                phase = reply.feed(message)
                if phase is not None:
                    report.on_phase(phase)
            await sending  # not cancelled: the request has been sent, and cancelling a write ends the stream
        except BaseException:
            self._running.cancel()
            self._running = None  # another read of the ended call would raise CancelledError
            sending.cancel()
            (error,) = await asyncio.gather(sending, return_exceptions=True)
            ended = (grpc.RpcError, asyncio.InvalidStateError, asyncio.CancelledError)
            if isinstance(error, BaseException) and not isinstance(error, ended):
                raise error from None  # the error of reading the payload
            raise

    async def _send(self, call: RoundCall[T], report: ProgressReport) -> None:
        try:
            for message, sent in call.messages():
                await self._running.write(message)
                report.on_sent(sent)
        except Exception:
            if self._running is not None:
                self._running.cancel()  # ends the wait for the reply
            raise


def _cancelled_by_its_caller() -> bool:
    """Whether the current task may have been cancelled, not only gRPC's call."""
    cancelling = getattr(asyncio.current_task(), "cancelling", None)  # Python 3.11 and newer
    return cancelling is None or cancelling() > 0
