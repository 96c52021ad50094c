"""Moves the bytes of a call over a gRPC channel, on asyncio's loop."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import grpc
import grpc.aio

from crout._call import Call, ProgressReport, Reply
from crout._transport import (
    CHANNEL_OPTIONS,
    SERVICE,
    Outgoing,
    Server,
    closed_error,
    first_two,
    report_for,
)
from crout.errors import CroutError

T = TypeVar("T")


class AsyncTransport:
    """A connection, of the loop that makes the first call."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._channel: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None  # of the channel
        self._closed = False

    async def close(self) -> None:
        """End the connection; calls under way are cancelled."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    async def run(self, call: Call[T]) -> T:
        """As Transport.run."""
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._loop = asyncio.get_running_loop()
            self._channel = grpc.aio.insecure_channel(self._server.address, CHANNEL_OPTIONS)
        if self._loop is not asyncio.get_running_loop():
            raise CroutError(
                "the client belongs to another event loop, that of its first call: connect in each "
                "loop, inside the coroutine that asyncio.run runs",
                code="FAILED_PRECONDITION",
            )
        attempts = self._server.attempts(call)
        with report_for(call) as report:
            while True:
                reply = call.reply()
                try:
                    await self._attempt(call, reply, report, attempts.begin())
                    return reply.finish()
                except CroutError as error:
                    reply.explain(error)
                    delay = attempts.delay_after(error, reply.repeatable)
                await asyncio.sleep(delay)

    async def _attempt(
        self, call: Call[T], reply: Reply[T], report: ProgressReport, timeout: float | None
    ) -> None:
        outgoing = Outgoing(call, report)
        first, several = first_two(iter(outgoing))
        path = SERVICE + call.method
        options = {"timeout": timeout, "metadata": self._server.metadata()}
        try:
            if call.unary:
                reply.feed(await self._channel.unary_unary(path)(first, **options))
                return
            # On the wire a stream of one message is what a unary call sends.
            running = (
                self._channel.unary_stream(path)(first, **options)
                if several is None
                else self._channel.stream_stream(path)(several, **options)
            )
            outgoing.cancel = running.cancel
            await self._receive(running, reply, report)
        except asyncio.CancelledError:
            if outgoing.error is not None:  # The call was cancelled for it, not its caller.
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


def _cancelled_by_its_caller() -> bool:
    """Whether a CancelledError may be of the task, and not of gRPC's call alone."""
    cancelling = getattr(asyncio.current_task(), "cancelling", None)  # Python 3.11 counts.
    return cancelling is None or cancelling() > 0
