# SPDX-License-Identifier: Apache-2.0
"""Asynchronous batches of factors, and the batch calls of an asynchronous client."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from crout import _batch
from crout._aio_connection import AsyncConnection, release_on_error
from crout._aio_factor import AsyncHeld, like
from crout._diagnostics import warn_of_batch, warn_of_batch_solution
from crout.batch import BatchFactor, BatchView
from crout.client import Client
from crout.results import BatchRecord, BatchSolution

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from crout._options import BatchBothOptions, BatchOptions, BatchRefactorOptions, BatchSolveOptions, Lease

Array = npt.NDArray[Any]


class AsyncBatchFactor(BatchView, AsyncHeld):
    """LU factorizations of many matrices on the server, as `crout.BatchFactor`."""

    def __init__(self, client: AsyncConnection, record: BatchRecord, lease: Lease | None = None) -> None:
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

    @like(BatchFactor.solve)
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

    @like(BatchFactor.refactor)
    async def refactor(self, matrices: Iterable[Any], **options: Unpack[BatchRefactorOptions]) -> Self:
        self.record = await self._client._run(_batch.factorize(matrices, replaces=self.record, **options))
        warn_of_batch(self.record)
        return self

    @like(BatchFactor.to_lu)
    async def to_lu(self, member: int) -> tuple[Array, Array, Array]:
        return (await self._client._run(_batch.get_member(self.record, member))).plu()

    @like(BatchFactor.to_lu_piv)
    async def to_lu_piv(self, member: int) -> tuple[Array, Array]:
        factors = await self._client._run(_batch.get_member(self.record, member))
        return factors.lu, factors.piv


class AsyncBatchCalls(AsyncConnection):
    """The batch calls of `crout.aio.AsyncClient`."""

    @like(Client.lu_factor_batch)
    async def lu_factor_batch(
        self, matrices: Iterable[Any], **options: Unpack[BatchOptions]
    ) -> AsyncBatchFactor:
        record = await self._run(_batch.factorize(matrices, **options))
        factor = AsyncBatchFactor(self, record, options.get("lease"))
        # A factor with a request_id stays available for other calls with the id.
        async with contextlib.nullcontext() if options.get("request_id") else release_on_error(factor):
            warn_of_batch(record)
        return factor

    @overload
    async def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array]: ...
    @overload
    async def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[True],
        **options: Unpack[BatchBothOptions],
    ) -> BatchSolution: ...

    @like(Client.solve_batch)
    async def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: bool = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array] | BatchSolution:
        record, solution = await self._run(_batch.factorize_and_solve(matrices, b, members, **options))
        warn_of_batch(record)
        warn_of_batch_solution(solution)
        return solution if full_output else solution.x
