# SPDX-License-Identifier: Apache-2.0
"""The interface of `crout` for asyncio.

Await the methods that call the server, and `AsyncFactor.rcond`. Use iterators with ``async for``. The
methods of the same name in `crout.Client` and `crout.Factor` document arguments, results and errors. A
client works only on the event loop of its first call: connect inside the coroutine that `asyncio.run`
runs. Files are read on the event loop, between the messages of their upload.

    async with crout.aio.connect("localhost:50051") as c:
        async with await c.lu_factor(A) as f:
            x = await f.solve(b)
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy.typing as npt

from crout import _handles, _options
from crout._aio_transport import AsyncRounds, AsyncTransport
from crout._call import Call, Steps
from crout._connection import pause, server_of, takes_all
from crout._diagnostics import warn_of_step
from crout._lifetime import Cached
from crout._options import (
    BatchOptions,
    BatchRefactorOptions,
    FactorizeOptions,
    Lease,
    LuFactorOptions,
    RefactorOptions,
    SchurOptions,
    SeriesOptions,
)
from crout._shared import BatchView, ClientBase, FactorView
from crout._transport import Server
from crout.batch import BatchFactor
from crout.client import Client
from crout.errors import CroutError, HandleExpired
from crout.factor import Factor, Held
from crout.results import Complement, SeriesStep
from crout.series import Series, systems

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["AsyncBatchFactor", "AsyncClient", "AsyncFactor", "connect"]

Array = npt.NDArray[Any]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_F = TypeVar("_F", bound=Callable[..., Any])


def _awaited(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Make an asynchronous method from a synchronous method that returns the result of ``_run``.

    At run time the body is shared: ``_run`` of an asynchronous client returns a coroutine.
    """

    @functools.wraps(method)
    async def awaited(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        running: Any = method(self, *args, **options)
        result: R = await running
        return result

    return awaited


def _documented(namesake: Any) -> Callable[[_F], _F]:
    """Copy the signature and the docstring of the synchronous function."""

    def decorate(function: _F) -> _F:
        signature = getattr(namesake, "__signature__", None)
        if signature is not None:
            function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = namesake.__doc__
        return function

    return decorate


class AsyncHeld(Cached[Any]):
    """A factor or batch on the server. ``async with`` renews its lease and then releases it."""

    _client: AsyncClient
    _renewal: asyncio.Task[None] | None = None
    _renewed: float  # the lease in seconds while there is a renewal

    async def __aenter__(self) -> Self:
        """Renew the lease in the background until the block ends."""
        if self._lease is None:
            lease = (await self._client.server_info()).default_lease
        else:
            lease = _options.lease_seconds(self._lease)
        self._renewed = lease
        self._renewal = asyncio.create_task(self._renew_while_held(lease))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the factor. It is not an error if the server no longer has it."""
        try:
            await self.release()
        except HandleExpired:
            pass
        except CroutError:
            if error is None:
                raise

    def _hold_again(self, lost: str) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = asyncio.create_task(self._renew_while_held(self._renewed))

    async def _renew_while_held(self, lease: float) -> None:
        failed = False
        while True:
            await asyncio.sleep(pause(lease, failed))
            try:
                await self._client._run(_handles.renew(self._handle, lease))
                failed = False
            except HandleExpired:
                return  # the next use of the factor reports the error
            except CroutError:
                failed = True

    describe = _awaited(Held.describe)
    pin = _awaited(Held.pin)
    unpin = _awaited(Held.unpin)

    @_documented(Held.renew)
    async def renew(self, lease: Lease | None = None) -> datetime.datetime:
        end = await self._client._run(self._with_handle(lambda handle: _handles.renew(handle, lease)))
        self._lease = lease
        self._remember(lease=lease)
        if self._renewal is not None:
            await self._stop_renewing()
            await self.__aenter__()
        return end

    @_documented(Held.release)
    async def release(self) -> None:
        await self._stop_renewing()
        await self._client._run(_handles.release(self._handle))

    async def _stop_renewing(self) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None:
            renewal.cancel()
            # Awaiting the task itself would raise its CancelledError.
            await asyncio.wait([renewal])


class AsyncFactor(FactorView, AsyncHeld):
    """An LU factorization on the server, like `crout.Factor`.

    There is no ``as_linear_operator``, because SciPy's solvers cannot await the result of an operator. Use
    the operator of a `crout.Factor` in a separate thread:
    ``crout.connect(address).factor(f.handle).as_linear_operator()``.
    """

    _client: AsyncClient

    solve = _awaited(Factor.solve)
    to_lu = _awaited(Factor.to_lu)
    to_lu_piv = _awaited(Factor.to_lu_piv)
    to_sparse_lu = _awaited(Factor.to_sparse_lu)
    estimate = _awaited(Factor.estimate)
    slogdet = _awaited(Factor.slogdet)
    det = _awaited(Factor.det)
    iterations = _awaited(Factor.iterations)

    @_documented(Factor.refactor)
    async def refactor(self, A: Any, **options: Unpack[RefactorOptions]) -> Self:
        factor: Self = await self._client._run(self._refactor(A, options))
        return factor

    @property
    def rcond(self) -> Awaitable[float]:
        """Like `crout.Factor.rcond`; awaited."""
        return self._client._run(self._estimate_rcond())


class AsyncBatchFactor(BatchView, AsyncHeld):
    """LU factorizations of many matrices on the server, like `crout.BatchFactor`."""

    _client: AsyncClient

    solve = _awaited(BatchFactor.solve)
    to_lu = _awaited(BatchFactor.to_lu)
    to_lu_piv = _awaited(BatchFactor.to_lu_piv)

    @_documented(BatchFactor.refactor)
    async def refactor(self, matrices: Iterable[Any], **options: Unpack[BatchRefactorOptions]) -> Self:
        batch: Self = await self._client._run(self._refactor(matrices, options))
        return batch


@takes_all(server_of)
def connect(*args: Any, **options: Any) -> AsyncClient:
    """Like `crout.connect`; not awaited."""
    return AsyncClient(server_of(*args, **options))


class AsyncClient(ClientBase):
    """A client of a server, from `connect`; like `crout.Client`."""

    _factor_type = AsyncFactor
    _batch_type = AsyncBatchFactor

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

    @_documented(Client.close)
    async def close(self) -> None:
        await self._transport.close()

    def __repr__(self) -> str:
        return f"<crout.aio.AsyncClient of {self._server.address}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return AsyncClient, (self._server,)

    async def _run(self, operation: Call[T] | Steps[T]) -> T:
        """See `crout._connection.Connection._run`."""
        steps = iter(operation)
        try:
            call = next(steps)
            while True:
                try:
                    result = await self._transport.run(call)
                except BaseException as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    @_documented(Client.empty)
    async def empty(
        self,
        shape: Any,
        dtype: npt.DTypeLike = float,
        order: Literal["C", "F"] = "C",
        device: str = "host",
    ) -> Any:
        return await asyncio.to_thread(self._transport.memory.empty, shape, dtype, order, device)

    solve = _awaited(Client.solve)
    rref = _awaited(Client.rref)
    slogdet = _awaited(Client.slogdet)
    det = _awaited(Client.det)
    describe = _awaited(Client.describe)
    renew = _awaited(Client.renew)
    release = _awaited(Client.release)
    estimate = _awaited(Client.estimate)
    server_info = _awaited(Client.server_info)

    @overload
    async def lu_factor(self, A: Sequence[Array], **options: Unpack[BatchOptions]) -> AsyncBatchFactor: ...
    @overload
    async def lu_factor(self, A: Any, **options: Unpack[LuFactorOptions]) -> AsyncFactor: ...

    @_documented(Client.lu_factor)
    async def lu_factor(self, A: Any, **options: Any) -> AsyncFactor | AsyncBatchFactor:
        factor: AsyncFactor | AsyncBatchFactor = await self._run(self._lu_factor(A, options))
        return factor

    @_documented(Client.lu_solve)
    async def lu_solve(
        self, f: AsyncFactor | str, b: Any, trans: _options.Trans = 0, **options: Any
    ) -> Array:
        return await self._run(self._lu_solve(f, b, trans, options))

    @overload
    async def schur_complement(
        self, A: Any, leading_order: int, **options: Unpack[SchurOptions]
    ) -> tuple[Complement, AsyncFactor]: ...
    @overload
    async def schur_complement(
        self, A: Any, *, keep: Iterable[int], **options: Unpack[FactorizeOptions]
    ) -> Complement: ...

    @_documented(Client.schur_complement)
    async def schur_complement(
        self, A: Any, leading_order: int | None = None, *, keep: Iterable[int] | None = None, **options: Any
    ) -> tuple[Complement, AsyncFactor] | Complement:
        result: tuple[Complement, AsyncFactor] | Complement
        result = await self._run(self._schur_complement(A, leading_order, keep, options))
        return result

    @_documented(Client.series)
    async def series(
        self,
        matrices: Iterable[Any],
        rhs: Any,
        *,
        x0: Any = None,
        start: AsyncFactor | None = None,
        **options: Unpack[SeriesOptions],
    ) -> AsyncIterator[SeriesStep]:
        series = Series(None if start is None else self._checked(start).record, options)
        rounds = AsyncRounds(self._transport, "SolveSeries")
        try:
            for A, b, guess in systems(matrices, rhs, x0):
                step = await rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            await rounds.close()
            if start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # the factor then lives until its lease ends
                    await self.release(series.factor.handle)

    @_documented(Client.factor)
    async def factor(self, handle: str) -> AsyncFactor:
        factor: AsyncFactor = await self._run(self._attach(handle))
        return factor

    @_documented(Client.list)
    async def list(self, name: str = "") -> AsyncIterator[AsyncFactor]:
        token: str | None = ""
        while token is not None:
            page = await self._run(_handles.list_factors(name, token))
            for record in page.records:
                yield AsyncFactor(self, record)
            token = page.next_page_token or None
