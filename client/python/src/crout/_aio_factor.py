# SPDX-License-Identifier: Apache-2.0
"""Asynchronous factors on the server."""

from __future__ import annotations

import abc
import asyncio
import datetime
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from crout import _linalg, _messages, _options, _requests
from crout._diagnostics import warn_of_factor
from crout._linalg import SparseFactors, known_determinant
from crout._renewal import pause
from crout.errors import CroutError, HandleExpired
from crout.factor import Factor, FactorView, Held
from crout.results import Estimate, FactorRecord, Iterations, SlogDet, Solution

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from crout._aio_connection import AsyncConnection
    from crout._options import FactorizeOptions, Lease, RefactorOptions, SolveOptions

Array = npt.NDArray[Any]
_F = TypeVar("_F", bound=Callable[..., Any])


def like(namesake: Any) -> Callable[[_F], _F]:
    """Copy the signature and the docstring of the synchronous function."""

    def decorate(function: _F) -> _F:
        signature = getattr(namesake, "__signature__", None)
        if signature is not None:
            function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = namesake.__doc__
        return function

    return decorate


class AsyncHeld(abc.ABC):
    """An object on the server with a handle, which lives as long as an ``async with`` block or its lease."""

    _client: AsyncConnection
    _lease: Lease | None
    _renewal: asyncio.Task[None] | None = None

    @property
    @abc.abstractmethod
    def handle(self) -> str:
        """Its identifier on the server."""

    def __getstate__(self) -> dict[str, Any]:
        """Copy without the renewal, which belongs to the original."""
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
        """Release it. It is no error if the server no longer has it."""
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
                await self._client.renew(self.handle, lease)
                failed = False
            except HandleExpired:
                return  # its next use reports the error
            except CroutError:
                failed = True

    @like(Held.describe)
    async def describe(self) -> FactorRecord:
        return await self._client.describe(self.handle)

    @like(Held.renew)
    async def renew(self, lease: Lease | None = None) -> datetime.datetime:
        end = await self._client.renew(self.handle, lease)
        self._lease = lease
        if self._renewal is not None:
            await self._stop_renewing()
            await self.__aenter__()
        return end

    @like(Held.release)
    async def release(self) -> None:
        await self._stop_renewing()
        await self._client.release(self.handle)

    async def _stop_renewing(self) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None:
            renewal.cancel()
            # Unlike the task itself, this wait is cancelled only with the caller.
            await asyncio.wait([renewal])


class AsyncFactor(FactorView, AsyncHeld):
    """An LU factorization on the server, as `crout.Factor`.

    There is no ``as_linear_operator``: SciPy's solvers use an operator's result at once and cannot await
    it. Use the operator of a `crout.Factor` in a separate thread:
    ``crout.connect(address).factor(f.handle).as_linear_operator()``.
    """

    def __init__(self, client: AsyncConnection, record: FactorRecord, lease: Lease | None = None) -> None:
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

    @like(Factor.solve)
    async def solve(
        self, b: Any, *, full_output: bool = False, **options: Unpack[SolveOptions]
    ) -> Array | Solution:
        solution = await self._solve(b, **options)
        return solution if full_output else solution.x

    async def _solve(self, b: Any, **options: Any) -> Solution:
        return await self._client._run(_requests.solve(self.record, b, **options))

    @like(Factor.refactor)
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

    @like(Factor.to_lu)
    async def to_lu(self) -> tuple[Array, Array, Array]:
        return (await self._download()).plu()

    @like(Factor.to_lu_piv)
    async def to_lu_piv(self) -> tuple[Array, Array]:
        return (await self._download()).lu_piv()

    @like(Factor.estimate)
    async def estimate(self, **options: Unpack[FactorizeOptions]) -> Estimate:
        return await self._client._run(_requests.estimate_again(self.handle, **options))

    @like(Factor.to_sparse_lu)
    async def to_sparse_lu(self) -> SparseFactors:
        return await self._client._run(_requests.get_sparse_factors(self.record))

    async def _download(self) -> _linalg.PackedFactors:
        return await self._client._run(_requests.get_factors(self.record))

    @like(Factor.slogdet)
    async def slogdet(self) -> SlogDet:
        known = known_determinant(self.record)
        if known is not None:
            return known
        factors = await (self._download() if self.record.sparse is None else self.to_sparse_lu())
        return factors.slogdet()

    @like(Factor.det)
    async def det(self) -> complex:
        sign, logarithm = await self.slogdet()
        return sign * float(np.exp(logarithm))

    @like(Factor.iterations)
    async def iterations(self) -> Iterations:
        pages = [await self._client._run(_requests.get_iterations(self.handle, ""))]
        while pages[-1].next_page_token:
            token = pages[-1].next_page_token
            pages.append(await self._client._run(_requests.get_iterations(self.handle, token)))
        return _messages.iterations(pages)
