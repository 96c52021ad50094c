# SPDX-License-Identifier: Apache-2.0
"""Batches of factors on the server: many matrices of different sizes, one handle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from crout import _batch, _options
from crout._connection import Connection
from crout._linalg import MemberFactors
from crout._options import BatchRefactorOptions, BatchSolveOptions
from crout._shared import BatchView
from crout.factor import Held
from crout.results import BatchSolution

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Array = npt.NDArray[Any]


class BatchFactor(BatchView, Held):
    """LU factorizations of many matrices on the server, from `Client.lu_factor`, under one handle.

    Several threads may use it at once, and it can be pickled. In a ``with`` block its lease is renewed in
    the background, and the batch is released at the end. Otherwise it lives until its lease ends.
    """

    _client: Connection

    @overload
    def solve(  # type: ignore[overload-overlap]  # an array is an iterable, too
        self,
        b: Array,
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchSolveOptions],
    ) -> Array: ...
    @overload
    def solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchSolveOptions],
    ) -> list[Array]: ...
    @overload
    def solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[True],
        **options: Unpack[BatchSolveOptions],
    ) -> BatchSolution: ...

    @_options.takes(_batch.batch_solve_options, _options.call_options)
    def solve(
        self,
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: bool = False,
        **options: Unpack[BatchSolveOptions],
    ) -> Array | list[Array] | BatchSolution:
        """Solve A_i x_i = b_i, or the transposed systems, for all or some members.

        Parameters
        ----------
        b : sequence of array_like, shape (n_i,) or (n_i, nrhs_i), or one array
            A right-hand side for each of `members`, converted to the batch's type. The numbers of columns
            may differ.
        members : sequence of int, optional
            0-based members, in any order; default: all.
        full_output : bool
            Return a `BatchSolution`, with errors and timings, instead of the solutions alone.
        trans : {0, 1, 2} or {"N", "T", "C", "H"}
            0: A x = b. 1: A^T x = b. 2, "C" and "H": A^H x = b.
        verify : bool
            Compute backward errors. Without ``keep_matrix`` they are NaN.
        timeout, progress
            See `Factor.solve`.

        Returns
        -------
        list of ndarray, or ndarray
            In the order and with the shapes of `b`; NaN for a singular member. One array if `b` is one.

        Raises
        ------
        InvalidRequest
            A member does not exist or is not square, or a right-hand side has the wrong number of rows.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        result: Array | list[Array] | BatchSolution
        result = self._client._run(self._solve(b, members, full_output, options))
        return result

    @_options.takes(_batch.batch_options, _options.call_options)
    def refactor(self, matrices: Iterable[Any], **options: Unpack[BatchRefactorOptions]) -> Self:
        """Replace the batch by a batch with the same shapes. The replacement is atomic.

        Parameters
        ----------
        matrices : sequence of array_like
            The members, as in `Client.lu_factor`.
        device, keep_matrix, timeout, progress
            See `Client.lu_factor`.

        Returns
        -------
        BatchFactor
            This object, with the next version.

        Raises
        ------
        InvalidRequest, HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        batch: Self = self._client._run(self._refactor(matrices, options))
        return batch

    def to_lu(self, member: int) -> tuple[Array, Array, Array]:
        """Download a member's factors: P, L and U with A = P L U, as `scipy.linalg.lu` returns them.

        Parameters
        ----------
        member : int
            0-based.

        Returns
        -------
        P : ndarray, shape (m, m)
        L : ndarray, shape (m, min(m, n))
        U : ndarray, shape (min(m, n), n)

        Raises
        ------
        InvalidRequest
            The member does not exist.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(
            self._surviving(lambda record: _batch.get_member(record, member, MemberFactors.plu))
        )

    def to_lu_piv(self, member: int) -> tuple[Array, Array]:
        """Download a member's factors as `scipy.linalg.lu_factor` returns them.

        Parameters
        ----------
        member : int
            0-based.

        Returns
        -------
        lu : ndarray, shape (m, n)
            L strictly below the diagonal (unit diagonal not stored), U on and above it.
        piv : ndarray of int, shape (min(m, n),)
            Row i was interchanged with row piv[i], 0-based.

        Raises
        ------
        InvalidRequest, HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
            As `to_lu`.
        """
        return self._client._run(
            self._surviving(lambda record: _batch.get_member(record, member, MemberFactors.lu_piv))
        )
