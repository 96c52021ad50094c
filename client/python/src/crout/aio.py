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

import abc
import asyncio
import contextlib
import datetime
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from crout import _batch, _linalg, _messages, _options, _requests
from crout._call import Call, RetryPolicy
from crout._connection import pause, server_of
from crout._diagnostics import (
    warn_of_batch,
    warn_of_batch_solution,
    warn_of_complement,
    warn_of_echelon_form,
    warn_of_factor,
    warn_of_step,
)
from crout._linalg import SparseFactors, known_determinant
from crout._options import (
    BatchBothOptions,
    BatchOptions,
    BatchRefactorOptions,
    BatchSolveOptions,
    FactorAndSolveOptions,
    FactorizeOptions,
    Lease,
    LuFactorOptions,
    RefactorOptions,
    RrefOptions,
    SchurOptions,
    SeriesOptions,
    SolveOptions,
)
from crout._transport import AsyncRounds, AsyncTransport, Server
from crout.batch import BatchFactor, BatchView
from crout.client import Client
from crout.errors import CroutError, HandleExpired
from crout.factor import Factor, FactorView, Held, checked_factor, handle_of
from crout.results import (
    BatchRecord,
    BatchSolution,
    Complement,
    EchelonForm,
    Estimate,
    FactorRecord,
    Iterations,
    SeriesStep,
    ServerInfo,
    SlogDet,
    Solution,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["AsyncBatchFactor", "AsyncClient", "AsyncFactor", "connect"]

Array = npt.NDArray[Any]
T = TypeVar("T")
_F = TypeVar("_F", bound=Callable[..., Any])


def _like(namesake: Any) -> Callable[[_F], _F]:
    """Copy the signature and the docstring of the synchronous function."""

    def decorate(function: _F) -> _F:
        signature = getattr(namesake, "__signature__", None)
        if signature is not None:
            function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = namesake.__doc__
        return function

    return decorate


class AsyncHeld(abc.ABC):
    """An object on the server with a handle. ``async with`` renews its lease and then releases it."""

    _client: AsyncClient
    _lease: Lease | None
    _renewal: asyncio.Task[None] | None = None

    @property
    @abc.abstractmethod
    def handle(self) -> str:
        """The object's identifier on the server."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the renewal, which belongs to the original."""
        return {**self.__dict__, "_renewal": None}

    async def __aenter__(self) -> Self:
        """Renew the lease in the background until the block ends."""
        if self._lease is None:
            lease = (await self._client.server_info()).default_lease
        else:
            lease = _options.lease_seconds(self._lease)
        self._renewal = asyncio.create_task(self._renew_while_held(lease))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the object. It is not an error if the server no longer has it."""
        try:
            await self.release()
        except HandleExpired:
            pass
        except CroutError:
            if error is None:
                raise

    async def _renew_while_held(self, lease: float) -> None:
        failed = False
        while True:
            await asyncio.sleep(pause(lease, failed))
            try:
                await self._client._run(_requests.renew(self.handle, lease))
                failed = False
            except HandleExpired:
                return  # the next use of the factor reports the error
            except CroutError:
                failed = True

    @_like(Held.describe)
    async def describe(self) -> FactorRecord:
        return await self._client._run(_requests.describe(self.handle))

    @_like(Held.renew)
    async def renew(self, lease: Lease | None = None) -> datetime.datetime:
        end = await self._client._run(_requests.renew(self.handle, lease))
        self._lease = lease
        if self._renewal is not None:
            await self._stop_renewing()
            await self.__aenter__()
        return end

    @_like(Held.release)
    async def release(self) -> None:
        await self._stop_renewing()
        await self._client._run(_requests.release(self.handle))

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

    def __init__(self, client: AsyncClient, record: FactorRecord, lease: Lease | None = None) -> None:
        super().__init__(record, lease)
        self._client = client

    @overload
    async def solve(
        self, b: Any, *, full_output: Literal[False] = False, **options: Unpack[SolveOptions]
    ) -> Array: ...
    @overload
    async def solve(
        self, b: Any, *, full_output: Literal[True], **options: Unpack[SolveOptions]
    ) -> Solution: ...
    @overload
    async def solve(
        self, b: Any, *, full_output: bool, **options: Unpack[SolveOptions]
    ) -> Array | Solution: ...

    @_like(Factor.solve)
    async def solve(
        self, b: Any, *, full_output: bool = False, **options: Unpack[SolveOptions]
    ) -> Array | Solution:
        solution = await self._solve(b, **options)
        return solution if full_output else solution.x

    async def _solve(self, b: Any, **options: Any) -> Solution:
        return await self._client._run(_requests.solve(self.record, b, **options))

    @_like(Factor.refactor)
    async def refactor(self, A: Any, **options: Unpack[RefactorOptions]) -> Self:
        self.record = await self._client._run(_requests.refactorize(self.record, A, **options))
        warn_of_factor(self.record)
        return self

    @property
    def rcond(self) -> Awaitable[float]:
        """Like `crout.Factor.rcond`; awaited."""
        return self._rcond()

    async def _rcond(self) -> float:
        steps = _linalg.estimate_rcond(self.record)
        try:
            question = next(steps)
            while True:
                if question is None:
                    question = steps.send(await self.describe())
                else:
                    b, trans = question
                    question = steps.send(await self._solve(b, trans=trans, verify=False))
        except StopIteration as end:
            return self._keep_rcond(end.value)

    @_like(Factor.to_lu)
    async def to_lu(self) -> tuple[Array, Array, Array]:
        return (await self._download()).plu()

    @_like(Factor.to_lu_piv)
    async def to_lu_piv(self) -> tuple[Array, Array]:
        return (await self._download()).lu_piv()

    @_like(Factor.estimate)
    async def estimate(self, **options: Unpack[FactorizeOptions]) -> Estimate:
        return await self._client._run(_requests.estimate_again(self.handle, **options))

    @_like(Factor.to_sparse_lu)
    async def to_sparse_lu(self) -> SparseFactors:
        return await self._client._run(_requests.get_sparse_factors(self.record))

    async def _download(self) -> _linalg.PackedFactors:
        return await self._client._run(_requests.get_factors(self.record))

    @_like(Factor.slogdet)
    async def slogdet(self) -> SlogDet:
        known = known_determinant(self.record)
        if known is not None:
            return known
        factors = await (self._download() if self.record.sparse is None else self.to_sparse_lu())
        return factors.slogdet()

    @_like(Factor.det)
    async def det(self) -> complex:
        sign, logarithm = await self.slogdet()
        return sign * float(np.exp(logarithm))

    @_like(Factor.iterations)
    async def iterations(self) -> Iterations:
        pages = [await self._client._run(_requests.get_iterations(self.handle, ""))]
        while pages[-1].next_page_token:
            token = pages[-1].next_page_token
            pages.append(await self._client._run(_requests.get_iterations(self.handle, token)))
        return _messages.iterations(pages)


class AsyncBatchFactor(BatchView, AsyncHeld):
    """LU factorizations of many matrices on the server, as `crout.BatchFactor`."""

    def __init__(self, client: AsyncClient, record: BatchRecord, lease: Lease | None = None) -> None:
        super().__init__(record, lease)
        self._client = client

    @overload
    async def solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchSolveOptions],
    ) -> list[Array]: ...
    @overload
    async def solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[True],
        **options: Unpack[BatchSolveOptions],
    ) -> BatchSolution: ...

    @_like(BatchFactor.solve)
    async def solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: bool = False,
        **options: Unpack[BatchSolveOptions],
    ) -> list[Array] | BatchSolution:
        solution = await self._client._run(_batch.solve(self.record, b, members, **options))
        warn_of_batch_solution(solution)
        return solution if full_output else solution.x

    @_like(BatchFactor.refactor)
    async def refactor(self, matrices: Iterable[Any], **options: Unpack[BatchRefactorOptions]) -> Self:
        self.record = await self._client._run(_batch.refactorize(self.record, matrices, **options))
        warn_of_batch(self.record)
        return self

    @_like(BatchFactor.to_lu)
    async def to_lu(self, member: int) -> tuple[Array, Array, Array]:
        return (await self._client._run(_batch.get_member(self.record, member))).plu()

    @_like(BatchFactor.to_lu_piv)
    async def to_lu_piv(self, member: int) -> tuple[Array, Array]:
        factors = await self._client._run(_batch.get_member(self.record, member))
        return factors.lu, factors.piv


def connect(
    address: str | None = None,
    tenant: str | None = None,
    timeout: float | None = None,
    *,
    retry: RetryPolicy | None = None,
    tls: bool | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    server_name: str | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
) -> AsyncClient:
    """Like `crout.connect`; not awaited."""
    return AsyncClient(
        server_of(timeout, retry, address, tenant, tls, ca, cert, key, server_name, token, token_file)
    )


class AsyncClient:
    """A client of a server, from `connect`; like `crout.Client`."""

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

    @_like(Client.close)
    async def close(self) -> None:
        await self._transport.close()

    def __repr__(self) -> str:
        return f"<crout.aio.AsyncClient of {self._server.address}>"

    async def _run(self, call: Call[T]) -> T:
        return await self._transport.run(call)

    def __reduce__(self) -> tuple[Any, ...]:
        return AsyncClient, (self._server,)

    @overload
    async def lu_factor(self, A: Sequence[Array], **options: Unpack[BatchOptions]) -> AsyncBatchFactor: ...
    @overload
    async def lu_factor(self, A: Any, **options: Unpack[LuFactorOptions]) -> AsyncFactor: ...

    @_like(Client.lu_factor)
    async def lu_factor(self, A: Any, **options: Any) -> AsyncFactor | AsyncBatchFactor:
        if not _batch.is_batch(A):
            return await self._factor_matrix(A, **options)
        record = await self._run(_batch.factorize(A, **options))
        factor = AsyncBatchFactor(self, record, options.get("lease"))
        # A factor with a request_id stays available for other calls with the id.
        async with contextlib.nullcontext() if options.get("request_id") else _release_on_error(factor):
            warn_of_batch(record)
        return factor

    async def _factor_matrix(self, A: Any, **options: Any) -> AsyncFactor:
        record = await self._run(_requests.factorize(A, **options))
        factor = AsyncFactor(self, record, options.get("lease"))
        async with contextlib.nullcontext() if options.get("request_id") else _release_on_error(factor):
            warn_of_factor(record)
        return factor

    @overload
    async def solve(
        self,
        A: Sequence[Array],
        b: Iterable[Any],
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array]: ...
    @overload
    async def solve(
        self,
        A: Sequence[Array],
        b: Iterable[Any],
        *,
        full_output: Literal[True],
        **options: Unpack[BatchBothOptions],
    ) -> BatchSolution: ...
    @overload
    async def solve(
        self,
        A: Any,
        b: Any,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[FactorAndSolveOptions],
    ) -> Array: ...
    @overload
    async def solve(
        self,
        A: Any,
        b: Any,
        *,
        full_output: Literal[True],
        **options: Unpack[FactorAndSolveOptions],
    ) -> Solution: ...
    @overload
    async def solve(
        self, A: Any, b: Any, *, full_output: bool, **options: Unpack[FactorAndSolveOptions]
    ) -> Array | Solution: ...

    @_like(Client.solve)
    async def solve(
        self, A: Any, b: Any, *, full_output: bool = False, **options: Any
    ) -> Array | Solution | list[Array] | BatchSolution:
        if _batch.is_batch(A):
            record, solutions = await self._run(_batch.factorize_and_solve(A, b, **options))
            warn_of_batch(record)
            warn_of_batch_solution(solutions)
            return solutions if full_output else solutions.x
        solution = await self._run(_requests.factorize_and_solve(A, b, **options))
        return solution if full_output else solution.x

    @_like(Client.lu_solve)
    async def lu_solve(
        self,
        f: AsyncFactor | str,
        b: Any,
        trans: _options.Trans = 0,
        **options: Any,
    ) -> Array:
        factor = await self.factor(f) if isinstance(f, str) else checked_factor(f, AsyncFactor)
        return (await factor._solve(b, trans=trans, **options)).x

    @overload
    async def schur_complement(
        self, A: Any, leading_order: int, **options: Unpack[SchurOptions]
    ) -> tuple[Complement, AsyncFactor]: ...
    @overload
    async def schur_complement(
        self, A: Any, *, keep: Iterable[int], **options: Unpack[FactorizeOptions]
    ) -> Complement: ...

    @_like(Client.schur_complement)
    async def schur_complement(
        self, A: Any, leading_order: int | None = None, *, keep: Iterable[int] | None = None, **options: Any
    ) -> tuple[Complement, AsyncFactor] | Complement:
        complement = await self._run(_requests.schur_complement(A, leading_order, keep, **options))
        if keep is not None:
            warn_of_complement(complement)
            return complement
        factor = AsyncFactor(self, complement.record, options.get("lease"))
        async with _release_on_error(factor):
            warn_of_complement(complement)
        return complement, factor

    @_like(Client.rref)
    async def rref(self, A: Any, **options: Unpack[RrefOptions]) -> EchelonForm:
        form = await self._run(_requests.rref(A, **options))
        warn_of_echelon_form(form)
        return form

    @_like(Client.slogdet)
    async def slogdet(self, A: Any, **options: Unpack[FactorizeOptions]) -> SlogDet:
        options["determinant"] = True
        factor = await self._factor_matrix(A, **options)
        try:
            return await factor.slogdet()
        finally:
            await factor.release()

    @_like(Client.det)
    async def det(self, A: Any, **options: Unpack[FactorizeOptions]) -> complex:
        sign, logarithm = await self.slogdet(A, **options)
        return sign * float(np.exp(logarithm))

    @_like(Client.series)
    async def series(
        self,
        matrices: Iterable[Any],
        rhs: Any,
        *,
        x0: Any = None,
        start: AsyncFactor | None = None,
        **options: Unpack[SeriesOptions],
    ) -> AsyncIterator[SeriesStep]:
        record = None if start is None else checked_factor(start, AsyncFactor).record
        series = _requests.Series(record, options)
        rounds = AsyncRounds(self._transport, "SolveSeries")
        try:
            for A, b, guess in _requests.systems(matrices, rhs, x0):
                step = await rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            await rounds.close()
            if start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # the factor then lives until its lease ends
                    await self.release(series.factor.handle)

    @_like(Client.describe)
    async def describe(self, f: AsyncHeld | str) -> FactorRecord:
        return await self._run(_requests.describe(handle_of(f, AsyncFactor, AsyncHeld)))

    @_like(Client.renew)
    async def renew(self, f: AsyncHeld | str, lease: Lease | None = None) -> datetime.datetime:
        return await self._run(_requests.renew(handle_of(f, AsyncFactor, AsyncHeld), lease))

    @_like(Client.release)
    async def release(self, f: AsyncHeld | str) -> None:
        await self._run(_requests.release(handle_of(f, AsyncFactor, AsyncHeld)))

    @_like(Client.server_info)
    async def server_info(self) -> ServerInfo:
        return await self._run(_requests.server_info())

    @_like(Client.factors)
    async def factors(self, name: str = "") -> AsyncIterator[AsyncFactor]:
        token = ""
        while True:
            page = await self._run(_requests.list_factors(name, token))
            for record in page.records:
                yield AsyncFactor(self, record)
            token = page.next_page_token
            if not token:
                return

    @_like(Client.factor)
    async def factor(self, handle: str) -> AsyncFactor:
        return AsyncFactor(self, await self.describe(_requests.known_by(handle)))

    @_like(Client.estimate)
    async def estimate(
        self,
        n: int,
        matrix_dtype: npt.DTypeLike = float,
        *,
        nnz: int | None = None,
        **options: Unpack[FactorizeOptions],
    ) -> Estimate:
        return await self._run(_requests.estimate(n, matrix_dtype, nnz, **options))


@contextlib.asynccontextmanager
async def _release_on_error(factor: AsyncHeld) -> AsyncIterator[None]:
    """See `crout.factor.release_on_error`."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(CroutError):
            await factor.release()
        raise
