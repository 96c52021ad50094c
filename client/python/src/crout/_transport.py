"""Moves the bytes of a call over a gRPC channel, on the calling thread."""

from __future__ import annotations

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

from crout._call import Call, ProgressReport, Reply, RoundCall, RoundReply
from crout._progress_bar import ProgressBar
from crout._retry import Attempts, RetryPolicy
from crout._status import error_from
from crout._tls import Tls, credentials
from crout._token import Token
from crout.errors import Cancelled, CroutError, DeadlineExceeded, ProtocolError

T = TypeVar("T")

SERVICE = "/crout.v1.FactorizationService/"

CHANNEL_OPTIONS: list[tuple[str, Any]] = [
    # gRPC's default of 4 MiB would refuse long lists and permutations.
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_send_message_length", -1),
    # Attempts knows which calls may be tried again; gRPC's own retries would keep copies.
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    # Fewer, larger frames: less to parse for each byte of a matrix.
    ("grpc.http2.max_frame_size", 4 << 20),
    # A call ends where the server has been silent for 60 s: 25 s and 15 s without an answer to a ping,
    # then at most 20 s for a new connection. As many pings as a long computation takes are sent.
    ("grpc.keepalive_time_ms", 25_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.http2.ping_timeout_ms", 15_000),  # In gRPC from 1.64 on; else that of keepalive.
    ("grpc.http2.max_pings_without_data", 0),
]

# How long a server may take to end a series whose caller has left.
LEAVE_SECONDS = 2.0

# A call whose request is one message is driven by the caller's own thread: some 100 us less.
_SINGLE_THREADED = ("SingleThreadedUnaryStream", 1)


@dataclass(frozen=True)
class Server:
    """Where to, as whom, and with how much patience."""

    address: str
    tenant: str | None
    timeout: float | None
    retry: RetryPolicy
    tls: Tls | None = None
    token: Token | None = None

    def metadata(self) -> list[tuple[str, str]]:
        """What goes with every call. Raises ValueError and OSError for the token's file."""
        said = [] if self.tenant is None else [("crout-tenant", self.tenant)]
        if self.token is not None:
            said.append(("authorization", f"Bearer {self.token.read()}"))
        return said

    def patience(self, call: Call[Any]) -> float | None:
        """Seconds that a call may take; None: no limit."""
        timeout = self.timeout if call.timeout is None else call.timeout
        return None if timeout is None or math.isinf(timeout) else timeout

    def attempts(self, call: Call[Any]) -> Attempts:
        """Those of one call."""
        timeout = self.timeout if call.timeout is None else call.timeout
        return Attempts(self.retry, call.retry, timeout)

    def error(self, status: Any) -> CroutError:
        """The exception for the status that a gRPC call ended with."""
        trailers = [(key, value) for key, value in status.trailing_metadata() or ()]
        return error_from(
            status.code().name, status.details() or "", trailers, self.address, self.tls is not None
        )


def report_for(call: Call[Any]) -> ProgressReport:
    """Whom the call's caller wants told."""
    if call.progress is True:
        return ProgressReport(ProgressBar())
    return ProgressReport(call.progress or None)


class Outgoing:
    """The messages of a call as gRPC asks for them; it asks from a thread of its own.

    Attributes
    ----------
    error : Exception or None
        What went wrong where the payload was read.
    cancel : callable or None
        Ends the call, once there is one.
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
            # Raised here, it would be logged by gRPC; so whoever waits for the reply raises it.
            self.error = error
            self.cancel()


def first_two(messages: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """The first message, and all of them where there are more."""
    first = next(messages)
    second = next(messages, None)
    if second is None:
        return first, None
    return first, itertools.chain((first, second), messages)


class Transport:
    """A connection; thread-safe. It connects with the first call, and again after a loss."""

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
        """End the connection; calls under way are cancelled."""
        self._closed = True
        self._channel.close()

    @property
    def server(self) -> Server:
        """Whose connection it is."""
        return self._server

    def start(self, path: str, messages: Iterator[bytes]) -> Any:
        """A stream, both ways, without a deadline. Raises ValueError where the channel is closed."""
        return self._channel.stream_stream(path)(messages, metadata=self._metadata)

    def failure(self, status: Any) -> CroutError:
        """The exception for how gRPC ended a call."""
        error = self._server.error(status)
        return closed_error() if self._closed and isinstance(error, Cancelled) else error

    def run(self, call: Call[T]) -> T:
        """Make the call, again where that is safe and of use; its result."""
        attempts = self._server.attempts(call)
        with report_for(call) as report:
            while True:
                reply = call.reply()
                try:
                    self._attempt(call, reply, report, attempts.begin())
                    return reply.finish()
                except CroutError as error:
                    reply.explain(error)
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
        except ValueError as error:  # What gRPC says of a channel that was closed.
            failure = _closed(error)
        raise failure  # Here, so that it does not hold on to gRPC's call as its context.

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
        # On the wire a stream of one message is what a unary call sends.
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
        except BaseException as error:  # Ctrl-C, a hostile reply, a callback that raised: the server stops.
            running.cancel()
            # Frames of gRPC hold the call. Where they live until the interpreter ends, as those of an
            # uncaught exception do, the call's destructor can wait there for a lock whose thread is gone.
            raise error.with_traceback(None)  # noqa: B904
        finally:
            outgoing.cancel = None
            del running


class Rounds:
    """A call in rounds: one stream, and a reply for each round. Of one thread at a time.

    It is never made again after an error, which ends it: what the server had done by then is done.
    """

    def __init__(self, transport: Transport, method: str) -> None:
        self._transport = transport
        self._path = SERVICE + method
        self._rounds: queue.SimpleQueue[Outgoing | None] = queue.SimpleQueue()
        self._running: Any = None

    def exchange(self, call: RoundCall[T]) -> T:
        """One round: what `call` sends, and the reply to that."""
        with report_for(call) as report:
            outgoing = Outgoing(call, report)
            reply = call.reply()
            deadline = _Deadline(self._transport.server.patience(call), self._cancel)
            failure: Exception
            try:
                if self._running is None:  # Before the time begins, whose end is the call's.
                    self._running = self._transport.start(self._path, self._messages())
                with deadline:
                    self._exchange(outgoing, reply, report)
                return reply.finish()
            except grpc.RpcError as status:
                failure = outgoing.error or self._transport.failure(status)
                if deadline.passed and isinstance(failure, Cancelled):
                    failure = DeadlineExceeded("the step's timeout passed", code="DEADLINE_EXCEEDED")
            except ValueError as error:  # What gRPC says of a channel that was closed.
                failure = _closed(error)
            raise failure

    def close(self) -> bool:
        """End the call, in order where its last round was answered. Whether the server can be called on.

        It is not, while the interpreter shuts down: gRPC's threads do not run any more, and may have
        held any lock. The call ends with its connection then.
        """
        if sys.is_finalizing():
            return False
        self._rounds.put(None)
        if self._running is None:
            return True
        ended = threading.Event()
        # gRPC takes no callback for a call that is over.
        in_order = not self._running.add_callback(ended.set) or ended.wait(LEAVE_SECONDS)
        self._cancel()
        self._running = None
        return in_order

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _messages(self) -> Iterator[bytes]:
        """Asked for by a thread of gRPC's."""
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
    """Calls `expire` where the block takes longer than `seconds`; None: never."""

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
    """What a call of a closed client raises, one that was under way too."""
    return Cancelled("the client is closed: connect anew")


def _closed(error: ValueError) -> Exception:
    if isinstance(error, CroutError):
        return error
    if "closed channel" in str(error).lower() or "channel closed" in str(error).lower():
        return closed_error()
    return error
