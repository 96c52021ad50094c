"""Moves the bytes of a call over a gRPC channel, on the calling thread."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from crout._call import Call, ProgressReport, Reply
from crout._progress_bar import ProgressBar
from crout._retry import Attempts, RetryPolicy
from crout._status import error_from
from crout.errors import Cancelled, CroutError

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
    # A peer that neither answers nor reads gives the caller's memory back after a minute.
    ("grpc.keepalive_time_ms", 40_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]

# A call whose request is one message is driven by the caller's own thread: some 100 us less.
_SINGLE_THREADED = ("SingleThreadedUnaryStream", 1)


@dataclass(frozen=True)
class Server:
    """Where to, as whom, and with how much patience."""

    address: str
    tenant: str | None
    timeout: float | None
    retry: RetryPolicy

    def metadata(self) -> list[tuple[str, str]]:
        """What goes with every call."""
        return [] if self.tenant is None else [("crout-tenant", self.tenant)]

    def attempts(self, call: Call[Any]) -> Attempts:
        """Those of one call."""
        timeout = self.timeout if call.timeout is None else call.timeout
        return Attempts(self.retry, call.retry, timeout)

    def error(self, status: Any) -> CroutError:
        """The exception for the status that a gRPC call ended with."""
        trailers = [(key, value) for key, value in status.trailing_metadata() or ()]
        return error_from(status.code().name, status.details() or "", trailers, self.address)


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
        self._channel = grpc.insecure_channel(server.address, options=[*CHANNEL_OPTIONS, _SINGLE_THREADED])

    def close(self) -> None:
        """End the connection; calls under way are cancelled."""
        self._closed = True
        self._channel.close()

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
            failure = outgoing.error or self._server.error(status)
            if self._closed and isinstance(failure, Cancelled):
                failure = closed_error()
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
        options = {"timeout": timeout, "metadata": self._server.metadata()}
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


def closed_error() -> CroutError:
    """What a call of a closed client raises, one that was under way too."""
    return Cancelled("the client is closed: connect anew")


def _closed(error: ValueError) -> Exception:
    if isinstance(error, CroutError):
        return error
    if "closed channel" in str(error).lower() or "channel closed" in str(error).lower():
        return closed_error()
    return error
