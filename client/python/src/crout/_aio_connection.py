# SPDX-License-Identifier: Apache-2.0
"""An asynchronous connection to a server: the base of `crout.aio.AsyncClient`."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from crout import _requests
from crout._aio_factor import AsyncFactor, AsyncHeld, like
from crout._call import Call
from crout._transport import AsyncTransport, Server
from crout.client import Client
from crout.errors import CroutError
from crout.factor import handle_of
from crout.results import FactorRecord, ServerInfo

if TYPE_CHECKING:
    from typing_extensions import Self

    from crout._options import Lease

T = TypeVar("T")


class AsyncConnection:
    """A connection, with the calls that apply to every kind of factor."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport = AsyncTransport(server)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @like(Client.close)
    async def close(self) -> None:
        await self._transport.close()

    def __repr__(self) -> str:
        return f"<crout.aio.AsyncClient of {self._server.address}>"

    async def _run(self, call: Call[T]) -> T:
        return await self._transport.run(call)

    @like(Client.describe)
    async def describe(self, f: AsyncHeld | str) -> FactorRecord:
        return await self._run(_requests.describe(_handle(f)))

    @like(Client.renew)
    async def renew(self, f: AsyncHeld | str, lease: Lease | None = None) -> datetime.datetime:
        return await self._run(_requests.renew(_handle(f), lease))

    @like(Client.release)
    async def release(self, f: AsyncHeld | str) -> None:
        await self._run(_requests.release(_handle(f)))

    @like(Client.server_info)
    async def server_info(self) -> ServerInfo:
        return await self._run(_requests.server_info())


@contextlib.asynccontextmanager
async def release_on_error(factor: AsyncHeld) -> AsyncIterator[None]:
    """See `crout._connection`."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(CroutError):
            await factor.release()
        raise


def _handle(f: AsyncHeld | str) -> str:
    return f.handle if isinstance(f, AsyncHeld) else handle_of(f, AsyncFactor)
