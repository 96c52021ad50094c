# SPDX-License-Identifier: Apache-2.0
"""Runs calls over a gRPC channel on an asyncio event loop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, TypeVar

import grpc
import grpc.aio

from crout._call import Call, Reply, RoundCall, RoundReply
from crout._memory import Loan, Memory
from crout._progress import ProgressReport
from crout._replicas import Replicas
from crout._settings import credentials
from crout._transport import (
    CLOSE_SECONDS,
    SERVICE,
    Outgoing,
    Server,
    closed_error,
    first_two,
    report_for,
)
from crout.errors import CroutError, DeadlineExceeded, ProtocolError

T = TypeVar("T")


class AsyncTransport:
    """Like `Transport`, for the event loop of its first call."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._metadata = server.metadata()
        self.replicas = Replicas()
        self.memory = Memory(server.address)
        self._channel: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None  # event loop of the channel
        self._closed = False
        self._reached = False  # whether the server has answered

    async def close(self) -> None:
        """Close the connection; running calls are cancelled."""
        self._closed = True
        self.memory.close()
        if self._channel is not None:
            await self._channel.close()

    @property
    def server(self) -> Server:
        """The server of the connection."""
        return self._server

    def start(self, path: str, handle: str) -> Any:
        """Like `Transport.start`, for messages that are written one by one."""
        self._open()
        return self._channel.stream_stream(path)(metadata=self.metadata(handle))

    def metadata(self, handle: str) -> list[tuple[str, str]]:
        """See `Transport.metadata`."""
        return self._metadata + self.replicas.metadata(handle)

    async def run(self, call: Call[T]) -> T:
        """See `Transport.run`."""
        self._open()
        attempts = self._server.attempts(call)
        with report_for(call) as report:
            while True:
                reply = call.reply()
                try:
                    await self._attempt(call, reply, report, attempts.begin())
                    self._reached = True
                    return reply.finish()
                except CroutError as error:
                    self._reached = self._reached or error.reason != ""  # a reason is the server's
                    reply.explain(error)
                    call.name_file(error)
                    delay = attempts.delay_after(error, reply.repeatable, self._reached)
                await asyncio.sleep(delay)

    def _open(self) -> None:
        """Make the channel, if there is none. Raises CroutError if it is closed or of another loop."""
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._loop = asyncio.get_running_loop()
            address, tls, options = self._server.address, self._server.tls, self._server.channel_options()
            self._channel = (
                grpc.aio.insecure_channel(address, options)
                if tls is None
                else grpc.aio.secure_channel(address, credentials(tls), options)
            )
        if self._loop is not asyncio.get_running_loop():
            raise CroutError(
                "the client belongs to the event loop of its first call: connect in each loop, inside the "
                "coroutine that asyncio.run runs",
                code="FAILED_PRECONDITION",
            )

    async def _attempt(
        self, call: Call[T], reply: Reply[T], report: ProgressReport, timeout: float | None
    ) -> None:
        with await self.borrow(call) as loan:
            reply.shared_memory, reply.shared_array = loan.reply, loan.reply_array
            await self._exchange(call, Outgoing(call, loan, report), reply, report, timeout)

    async def borrow(self, call: Call[Any]) -> Loan:
        """See `Memory.borrow`. The server's answer is awaited on another thread."""
        if not self.memory.applies_to(call):
            return Loan()
        return await asyncio.to_thread(self.memory.borrow, call)

    async def _exchange(
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
        try:
            if call.unary:
                running = self._channel.unary_unary(path)(first, **options)
                reply.feed(await running)
                self.replicas.learn(call.handle, await running.trailing_metadata())
                return
            # On the wire a stream of one message equals a unary call.
            running = (
                self._channel.unary_stream(path)(first, **options)
                if several is None
                else self._channel.stream_stream(path)(several, **options)
            )
            outgoing.cancel = running.cancel
            await self._receive(running, reply, report)
            self.replicas.learn(reply.handle or call.handle, await running.trailing_metadata())
        except asyncio.CancelledError:
            if outgoing.error is not None:  # this error cancelled the call, not the caller
                raise outgoing.error from None
            if self._closed and not _cancelled_by_its_caller():
                raise closed_error() from None
            raise
        except grpc.RpcError as status:
            self.replicas.learn(reply.handle or call.handle, status.trailing_metadata())
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
        self._handle = ""  # handle of the last factor

    async def exchange(self, call: RoundCall[T]) -> T:
        """See `Rounds.exchange`."""
        with report_for(call) as report:
            reply = call.reply()
            try:
                await asyncio.wait_for(
                    self._exchange(call, reply, report), self._transport.server.time_limit(call)
                )
                self._handle = reply.handle
                return reply.finish()
            except asyncio.TimeoutError:
                raise DeadlineExceeded(
                    "the timeout of the step passed: give the series a longer timeout=",
                    code="DEADLINE_EXCEEDED",
                ) from None
            except grpc.RpcError as status:
                self._transport.replicas.learn(reply.handle or call.handle, status.trailing_metadata())
                raise self._transport.server.error(status) from None

    async def close(self) -> None:
        """See `Rounds.close`."""
        if self._running is None:
            return
        with contextlib.suppress(grpc.RpcError, asyncio.TimeoutError, asyncio.InvalidStateError):
            await self._running.done_writing()
            await asyncio.wait_for(self._running.read(), CLOSE_SECONDS)
            trailers = await asyncio.wait_for(self._running.trailing_metadata(), CLOSE_SECONDS)
            self._transport.replicas.learn(self._handle, trailers)
        self._running.cancel()
        self._running = None

    async def _exchange(self, call: RoundCall[T], reply: RoundReply[T], report: ProgressReport) -> None:
        if self._running is None:
            self._running = self._transport.start(self._path, call.handle)
        with await self._transport.borrow(call) as loan:
            reply.shared_memory, reply.shared_array = loan.reply, loan.reply_array
            await self._send_and_receive(call, loan, reply, report)

    async def _send_and_receive(
        self, call: RoundCall[T], loan: Loan, reply: RoundReply[T], report: ProgressReport
    ) -> None:
        sending = asyncio.ensure_future(self._send(call, loan, report))
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

    async def _send(self, call: RoundCall[T], loan: Loan, report: ProgressReport) -> None:
        try:
            for message, sent in call.messages(loan):
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
