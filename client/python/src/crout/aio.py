# SPDX-License-Identifier: Apache-2.0
"""The interface of `crout` for asyncio.

Methods that call the server are awaited, and so is `AsyncFactor.rcond`; iterators are used with ``async
for``. Arguments, results and errors are documented at the methods of the same name in `crout.Client` and
`crout.Factor`. A client belongs to the event loop of its first call and refuses other loops: connect
inside the coroutine that `asyncio.run` runs. Files are read on the loop, between the messages of their
upload.

    async with crout.aio.connect("localhost:50051") as c:
        async with await c.lu_factor(A) as f:
            x = await f.solve(b)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from crout import _options, _requests
from crout._aio_batch import AsyncBatchCalls, AsyncBatchFactor
from crout._aio_connection import release_on_error
from crout._aio_factor import AsyncFactor, like
from crout._call import RetryPolicy
from crout._connection import server_of
from crout._diagnostics import warn_of_complement, warn_of_echelon_form, warn_of_factor, warn_of_step
from crout._series_inputs import systems
from crout._transport import AsyncRounds
from crout.client import Client
from crout.errors import CroutError
from crout.factor import checked_factor
from crout.results import Complement, EchelonForm, Estimate, SeriesStep, SlogDet, Solution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crout._options import (
        FactorAndSolveOptions,
        FactorizeOptions,
        LuFactorOptions,
        RrefOptions,
        SchurOptions,
        SeriesOptions,
    )

__all__ = ["AsyncBatchFactor", "AsyncClient", "AsyncFactor", "connect"]

Array = npt.NDArray[Any]


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


class AsyncClient(AsyncBatchCalls):
    """A connection to a server, from `connect`; as `crout.Client`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return AsyncClient, (self._server,)

    @like(Client.lu_factor)
    async def lu_factor(self, A: Any, **options: Unpack[LuFactorOptions]) -> AsyncFactor:
        record = await self._run(_requests.factorize(A, **options))
        factor = AsyncFactor(self, record, options.get("lease"))
        # A factor with a request_id stays available for other calls with the id.
        async with contextlib.nullcontext() if options.get("request_id") else release_on_error(factor):
            warn_of_factor(record)
        return factor

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

    @like(Client.solve)
    async def solve(
        self,
        A: Any,
        b: Any,
        *,
        full_output: bool = False,
        **options: Unpack[FactorAndSolveOptions],
    ) -> Array | Solution:
        solution = await self._run(_requests.factorize_and_solve(A, b, **options))
        return solution if full_output else solution.x

    @like(Client.lu_solve)
    async def lu_solve(
        self,
        f: AsyncFactor | str,
        b: Any,
        trans: _options.Trans = 0,
        **options: Any,
    ) -> Array:
        factor = await self.factor(f) if isinstance(f, str) else checked_factor(f, AsyncFactor)
        return (await factor._solve(b, trans=trans, **options)).x

    @like(Client.schur_complement)
    async def schur_complement(
        self, A: Any, leading_order: int, **options: Unpack[SchurOptions]
    ) -> tuple[Complement, AsyncFactor]:
        complement = await self._run(_requests.schur_complement(A, leading_order, **options))
        factor = AsyncFactor(self, complement.record, options.get("lease"))
        async with release_on_error(factor):
            warn_of_complement(complement)
        return complement, factor

    @like(Client.rref)
    async def rref(self, A: Any, **options: Unpack[RrefOptions]) -> EchelonForm:
        form = await self._run(_requests.rref(A, **options))
        warn_of_echelon_form(form)
        return form

    @like(Client.schur_complement_of)
    async def schur_complement_of(self, A: Any, keep: Any, **options: Unpack[FactorizeOptions]) -> Complement:
        complement = await self._run(_requests.schur_complement_of(A, keep, **options))
        warn_of_complement(complement)
        return complement

    @like(Client.slogdet)
    async def slogdet(self, A: Any, **options: Unpack[FactorizeOptions]) -> SlogDet:
        options["determinant"] = True
        factor = await self.lu_factor(A, **options)
        try:
            return await factor.slogdet()
        finally:
            await factor.release()

    @like(Client.det)
    async def det(self, A: Any, **options: Unpack[FactorizeOptions]) -> complex:
        sign, logarithm = await self.slogdet(A, **options)
        return sign * float(np.exp(logarithm))

    @like(Client.series)
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
            for A, b, guess in systems(matrices, rhs, x0):
                step = await rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            await rounds.close()
            if start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # if this fails, the lease ends it
                    await self.release(series.factor.handle)

    @like(Client.factors)
    async def factors(self, name: str = "") -> AsyncIterator[AsyncFactor]:
        token = ""
        while True:
            page = await self._run(_requests.list_factors(name, token))
            for record in page.records:
                yield AsyncFactor(self, record)
            token = page.next_page_token
            if not token:
                return

    @like(Client.factor)
    async def factor(self, handle: str) -> AsyncFactor:
        return AsyncFactor(self, await self.describe(_requests.known_by(handle)))

    @like(Client.estimate)
    async def estimate(
        self,
        n: int,
        matrix_dtype: npt.DTypeLike = float,
        *,
        nnz: int | None = None,
        **options: Unpack[FactorizeOptions],
    ) -> Estimate:
        return await self._run(_requests.estimate(n, matrix_dtype, nnz, **options))
