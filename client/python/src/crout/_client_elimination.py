# SPDX-License-Identifier: Apache-2.0
"""Calls of a client that eliminate without a complete factorization: Schur complements, echelon forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crout import _options, _requests
from crout._connection import Connection, release_on_error
from crout._diagnostics import warn_of_complement, warn_of_echelon_form
from crout.factor import Factor
from crout.results import Complement, EchelonForm

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crout._options import FactorizeOptions, RrefOptions, SchurOptions


class EliminationCalls(Connection):
    """The calls of `crout.Client` that eliminate a part of a matrix, or reduce it to echelon form."""

    @_options.takes(_options.cache_options, _options.factorize_options, _options.call_options)
    def schur_complement(
        self, A: Any, leading_order: int, **options: Unpack[SchurOptions]
    ) -> tuple[Complement, Factor]:
        """Eliminate the leading block: S = A22 - A21 A11^-1 A12.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n)
            [A11 A12; A21 A22].
        leading_order : int
            Order of A11, 0 to n.
        **options
            Options of `lu_factor`, for A11.

        Returns
        -------
        complement : Complement
            S, of shape (n - leading_order, n - leading_order), with its accuracy.
        factor : Factor
            Factor of A11, which stays on the server.

        Raises
        ------
        Singular
            A11 is singular.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        complement = self._run(_requests.schur_complement(A, leading_order, **options))
        factor = Factor(self, complement.record, options.get("lease"))
        with release_on_error(factor):
            warn_of_complement(complement)
        return complement, factor

    @_options.takes(_options.echelon_options, _options.call_options)
    def rref(self, A: Any, **options: Unpack[RrefOptions]) -> EchelonForm:
        """Reduced row echelon form of a matrix of any shape, by Gauss-Jordan elimination.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (m, n)
            A matrix, or [A B] with right-hand sides.
        **options
            augmented : number of trailing columns that are right-hand sides, without pivots.
            tolerance : absolute; pivots must be larger. Default: max(m, k) eps ||A||_inf of the k columns
            that are not augmented.
            device, timeout, progress : as in `lu_factor`.

        Returns
        -------
        EchelonForm
            R, rank and pivot columns. Emits a LinAlgWarning if growth of entries makes them doubtful.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        form = self._run(_requests.rref(A, **options))
        warn_of_echelon_form(form)
        return form

    @_options.takes(_options.factorize_options, _options.call_options)
    def schur_complement_of(self, A: Any, keep: Any, **options: Unpack[FactorizeOptions]) -> Complement:
        """Eliminate all but chosen unknowns of a sparse matrix without a dense form.

        Parameters
        ----------
        A : sparse matrix or path, shape (n, n)
        keep : sequence of int
            The remaining unknowns, 0-based and distinct.
        **options
            Options of `lu_factor`, for the block of the eliminated unknowns, A11. Its factor is not kept.

        Returns
        -------
        Complement
            S, with rows and columns in the order of `keep`, and its accuracy.

        Raises
        ------
        Singular
            A11 is singular.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        complement = self._run(_requests.schur_complement_of(A, keep, **options))
        warn_of_complement(complement)
        return complement
