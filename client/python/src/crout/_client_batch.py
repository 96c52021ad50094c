# SPDX-License-Identifier: Apache-2.0
"""The batch calls of a client."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from crout import _batch, _options
from crout._connection import Connection, release_on_error
from crout._diagnostics import warn_of_batch, warn_of_batch_solution
from crout.batch import BatchFactor
from crout.results import BatchSolution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crout._options import BatchBothOptions, BatchOptions

Array = npt.NDArray[Any]


class BatchCalls(Connection):
    """The calls of `crout.Client` for batches of matrices."""

    @_options.takes(
        _options.cache_options,
        _options.request_id_option,
        _batch.batch_options,
        _options.call_options,
    )
    def lu_factor_batch(self, matrices: Iterable[Any], **options: Unpack[BatchOptions]) -> BatchFactor:
        """Factor many matrices of different sizes at once; the factors stay on the server.

        The factors of a matrix have the same bits in every batch.

        Parameters
        ----------
        matrices : sequence of array_like, shape (m_i, n_i), or array, shape (count, m, n)
            Any sizes, including rectangular and empty ones, converted to the one type that holds them all.
            Sparse matrices of at most 2^24 elements are sent dense; `lu_factor` keeps larger ones sparse.
        name, lease, request_id
            As in `lu_factor`.
        device : str
            "host", ...; default: the device expected to finish first.
        keep_matrix : bool
            Keep the matrices, for backward errors.
        timeout, progress
            As in `lu_factor`.

        Returns
        -------
        BatchFactor
            Also with singular members: their ``info`` is not 0, and there is a `LinAlgWarning`. There is
            also a `LinAlgWarning` if factors are poor or hold NaN.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        record = self._run(_batch.factorize(matrices, **options))
        factor = BatchFactor(self, record, options.get("lease"))
        # A factor with a request_id stays available for other calls with the id.
        with contextlib.nullcontext() if options.get("request_id") else release_on_error(factor):
            warn_of_batch(record)
        return factor

    @overload
    def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array]: ...
    @overload
    def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[True],
        **options: Unpack[BatchBothOptions],
    ) -> BatchSolution: ...

    @_options.takes(_batch.placement, _batch.batch_solve_options, _options.call_options)
    def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: bool = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array] | BatchSolution:
        """Factor many matrices of different sizes and solve with them in one call; no factor is kept.

        Parameters
        ----------
        matrices : sequence of array_like
            As in `lu_factor_batch`.
        b, members, full_output, trans, verify
            As in `BatchFactor.solve`.
        device, timeout, progress
            As in `lu_factor_batch`.

        Returns
        -------
        list of ndarray
            The solutions of `BatchFactor.solve`, bit for bit. Singular members cause a `LinAlgWarning`.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        record, solution = self._run(_batch.factorize_and_solve(matrices, b, members, **options))
        warn_of_batch(record)
        warn_of_batch_solution(solution)
        return solution if full_output else solution.x
