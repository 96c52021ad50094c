# SPDX-License-Identifier: Apache-2.0
"""Parts that synchronous and asynchronous clients share: attributes of factors, and operations as steps.

An operation that makes several calls, or checks a result, is a generator of calls (`_call.Steps`). Each kind
of client runs the steps in its own way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from crout import _batch, _handles, _linalg, _messages, _requests
from crout._call import Steps
from crout._diagnostics import (
    warn_of_batch,
    warn_of_batch_solution,
    warn_of_complement,
    warn_of_echelon_form,
    warn_of_factor,
)
from crout._lifetime import Cached, Lifetime, copy_of
from crout._options import Trans
from crout._releases import Releases
from crout._transport import Server
from crout.errors import CroutError, InvalidRequest
from crout.records import BatchRecord, FactorRecord, SlogDet
from crout.results import Complement, EchelonForm, Iterations

Array = npt.NDArray[Any]
R = TypeVar("R")

_MAX_VERSIONS = 5  # limit of restarts of a condition estimate, if other clients replace the factor meanwhile


class FactorView(Cached[FactorRecord]):
    """Attributes of a factor that need no call, and operations of a factor."""

    _factorize = staticmethod(_requests.factorize)

    @staticmethod
    def _handle_of(record: FactorRecord) -> str:
        return record.handle

    @property
    def name(self) -> str:
        """The name given by the caller; may be empty."""
        return self._record.name

    @property
    def version(self) -> int:
        """1 for a new factor; each refactor adds 1."""
        return self._record.version

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return self._record.n

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix, (n, n)."""
        return (self.n, self.n)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of L and U."""
        return self._record.dtype

    @property
    def info(self) -> int:
        """LAPACK's info: 0, or the 1-based index of the first pivot that is exactly zero."""
        return self._record.info

    @property
    def quality(self) -> float | None:
        """Estimate of ||P A - L U|| / (n ||A|| eps): good near 1 or below, poor above 30."""
        return self._record.quality

    def _summary(self) -> dict[str, Any]:
        return self.record._summary()

    def _solve(self, b: Any, trans: Trans, full_output: bool, options: Mapping[str, Any]) -> Steps[Any]:
        solution = yield from self._surviving(
            lambda record: _requests.solve(record, b, trans=trans, **options)
        )
        return solution if full_output else solution.x

    def _refactor(self, A: Any, options: Mapping[str, Any]) -> Steps[Any]:
        if self._origin is not None:
            A = copy_of(A)
        self._record = yield from self._surviving(lambda record: _requests.refactorize(record, A, **options))
        self._replace_origin(A, options)
        warn_of_factor(self._record)
        return self

    def _estimate_rcond(self) -> Steps[float]:
        """Estimate rcond and store it. Starts again if another client replaces the factor meanwhile."""
        return (yield from self._surviving(self._estimate_rcond_of))

    def _estimate_rcond_of(self, record: FactorRecord) -> Steps[float]:
        for _ in range(_MAX_VERSIONS):
            if record.rcond is None:
                inverse = yield from _inverse_norm(record)
                if inverse is None:
                    record = yield from _handles.describe(record.handle)
                    continue
                record = _linalg.with_rcond(record, inverse)
            if record.version >= self.version:  # another thread may have replaced the record
                self._record = record
            assert record.rcond is not None
            return record.rcond
        raise CroutError(
            f"the factor was replaced {_MAX_VERSIONS} times while its condition was estimated: pass "
            "rcond=True to lu_factor or refactor",
            code="ABORTED",
        )

    def _slogdet(self) -> Steps[SlogDet]:
        known = _linalg.known_determinant(self._record)
        if known is not None:
            return known
        if self._record.sparse is None:
            return (yield from self._surviving(_handles.get_factors)).slogdet()
        return (yield from self._surviving(_handles.get_sparse_factors)).slogdet()

    def _iterations(self) -> Steps[Iterations]:
        pages = [(yield from _handles.get_iterations(self._handle, ""))]
        while token := pages[-1].next_page_token:
            pages.append((yield from _handles.get_iterations(self._handle, token)))
        return _messages.iterations(pages)


def _inverse_norm(record: FactorRecord) -> Steps[float | None]:
    """Estimate the 1-norm of A^-1. Returns None if a solution belongs to another version of the factor."""
    if record.info > 0:
        return np.inf
    estimate = _linalg.inverse_norm(record.n)
    try:
        b, trans = next(estimate)
        while True:
            solution = yield from _requests.solve(record, b, trans=trans, verify=False)
            if solution.factor_version != record.version:
                return None
            b, trans = estimate.send(solution.x)
    except StopIteration as end:
        return float(end.value)


class BatchView(Cached[BatchRecord]):
    """Attributes of a batch that need no call, and operations of a batch."""

    _factorize = staticmethod(_batch.factorize)

    @staticmethod
    def _handle_of(record: BatchRecord) -> str:
        return record.factor.handle

    @property
    def version(self) -> int:
        """1 for a new batch; each refactor adds 1."""
        return self._record.factor.version

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of all members."""
        return self._record.factor.dtype

    @property
    def shapes(self) -> Array:
        """Rows and columns of each member."""
        return self._record.shapes

    @property
    def info(self) -> Array:
        """LAPACK's info of each member: 0, or the 1-based index of the first pivot that is exactly zero."""
        return self._record.info

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._record.shapes)

    def _summary(self) -> dict[str, Any]:
        return self.record._summary()

    def _solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None,
        full_output: bool,
        options: Mapping[str, Any],
    ) -> Steps[Any]:
        solution = yield from self._surviving(lambda record: _batch.solve(record, b, members, **options))
        warn_of_batch_solution(solution)
        return solution if full_output else solution.x

    def _refactor(self, matrices: Iterable[Any], options: Mapping[str, Any]) -> Steps[Any]:
        if self._origin is not None:
            matrices = copy_of(matrices)
        self._record = yield from self._surviving(
            lambda record: _batch.refactorize(record, matrices, **options)
        )
        self._replace_origin(matrices, options)
        warn_of_batch(self._record)
        return self


class ClientBase:
    """Operations of a client, and the types of its factors and batches."""

    _factor_type: ClassVar[type[FactorView]]
    _batch_type: ClassVar[type[BatchView]]
    _releases: Releases | None = None  # releases unreferenced factors
    _server: Server

    @property
    def address(self) -> str:
        """Address of the server: "host:port" or "unix:PATH"."""
        return self._server.address

    def _handle_of(self, f: object) -> str:
        """Return the handle of a factor or batch. A str is returned unchanged."""
        if isinstance(f, str):
            return f
        return f.handle if isinstance(f, self._batch_type) else self._checked(f).handle

    def _checked(self, f: object) -> FactorView:
        """Return `f` if it is a factor of this kind of client. Otherwise raise TypeError with the remedy."""
        if isinstance(f, self._factor_type):
            return f
        hint = ""
        if isinstance(f, tuple):
            hint = ". Solve with the pair (lu, piv) of scipy.linalg.lu_factor by scipy.linalg.lu_solve"
        elif isinstance(f, FactorView):
            hint = ", which belongs to a client of the other kind. Pass its handle"
        raise TypeError(
            f"expected a {self._factor_type.__name__}, from lu_factor of a matrix, or a handle; "
            f"got {type(f).__name__}{hint}"
        )

    def _lu_factor(self, A: Any, options: Mapping[str, Any]) -> Steps[Any]:
        lifetime, others = Lifetime.split(options)
        if lifetime.release_unreferenced and self._releases is None:
            raise InvalidRequest("an asynchronous client has no release_unreferenced: use ``async with``")
        if lifetime.refactor_if_lost:
            A = copy_of(A)
        factor: FactorView | BatchView
        if _batch.is_batch(A):
            record = yield from _batch.factorize(A, **others)
            yield from _warn_or_release(warn_of_batch, record, record.factor.handle, others)
            factor = self._batch_type(self, record, others.get("lease"))
        else:
            factor = yield from self._factor_matrix(A, others)
        factor._live(lifetime, A, others)
        return factor

    def _factor_matrix(self, A: Any, options: Mapping[str, Any]) -> Steps[FactorView]:
        record = yield from _requests.factorize(A, **options)
        yield from _warn_or_release(warn_of_factor, record, record.handle, options)
        return self._factor_type(self, record, options.get("lease"))

    def _factor_and_solve(self, A: Any, b: Any, full_output: bool, options: Mapping[str, Any]) -> Steps[Any]:
        if not _batch.is_batch(A):
            solution = yield from _requests.factorize_and_solve(A, b, **options)
            return solution if full_output else solution.x
        record, solutions = yield from _batch.factorize_and_solve(A, b, **options)
        warn_of_batch(record)
        warn_of_batch_solution(solutions)
        return solutions if full_output else solutions.x

    def _lu_solve(self, f: object, b: Any, trans: Trans, options: Mapping[str, Any]) -> Steps[Array]:
        factor = (yield from self._attach(f)) if isinstance(f, str) else self._checked(f)
        x: Array = yield from factor._solve(b, trans, False, options)
        return x

    def _schur_complement(
        self, A: Any, leading_order: int | None, keep: Iterable[int] | None, options: Mapping[str, Any]
    ) -> Steps[Any]:
        complement: Complement
        complement = yield from _requests.schur_complement(A, leading_order, keep, **options)
        if keep is not None:
            warn_of_complement(complement)
            return complement
        yield from _warn_or_release(warn_of_complement, complement, complement.record.handle, options)
        return complement, self._factor_type(self, complement.record, options.get("lease"))

    def _rref(self, A: Any, options: Mapping[str, Any]) -> Steps[EchelonForm]:
        form = yield from _requests.rref(A, **options)
        warn_of_echelon_form(form)
        return form

    def _slogdet(self, A: Any, options: Mapping[str, Any]) -> Steps[SlogDet]:
        factor = yield from self._factor_matrix(A, {**options, "determinant": True})
        try:
            return (yield from factor._slogdet())
        finally:
            yield from _handles.release(factor._handle)

    def _attach(self, handle: str) -> Steps[Any]:
        return self._factor_type(self, (yield from _handles.describe(_handles.checked_handle(handle))))


def _warn_or_release(
    warn: Callable[[R], None], result: R, handle: str, options: Mapping[str, Any]
) -> Steps[None]:
    """Issue the warnings of a new factor. If one is raised as an error, release the factor.

    The caller then gets no handle. A factor with a request_id stays, because other calls may share it.
    """
    try:
        warn(result)
    except BaseException:
        if not options.get("request_id"):
            # The warning is reported instead of the error. The factor lives until its lease ends.
            with contextlib.suppress(CroutError):
                yield from _handles.release(handle)
        raise


def det(slogdet: Steps[SlogDet]) -> Steps[complex]:
    """Return the determinant, from the steps that compute its sign and logarithm."""
    sign, logarithm = yield from slogdet
    return sign * float(np.exp(logarithm))
