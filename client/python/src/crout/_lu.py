# SPDX-License-Identifier: Apache-2.0
"""Downloaded factors in the forms of SciPy and NumPy.

The server stores P^T (R A C) = L U. R and C are diagonal matrices of powers of two if A was equilibrated.
The unit diagonal is in L or in U. SciPy's form, A = P L U with the unit diagonal in L, follows with D =
P^T R^-1 P:

    A = R^-1 P L U C^-1 = P (D L D^-1) (D U C^-1).

This is exact, because D and C are powers of two. If the unit diagonal is in U, L U = (L E^-1) (E U) with E
= diag(L), with one rounding an entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _wire, results
from crout._replies import Target, checked_record, convert, parse
from crout.errors import CroutError, ProtocolError, Singular
from crout.results import FactorRecord, SlogDet
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]


def _exponents(scales: Array) -> Array:
    exponents: Array = np.frexp(scales)[1] - 1  # of mantissas from 1 on
    return exponents


def _times_powers_of_two(a: Array, exponents: Array) -> Array:
    """Scale exactly, even if a quotient of two scales is beyond the range of the type."""
    if not np.iscomplexobj(a):
        scaled: Array = np.ldexp(a, exponents)
        return scaled
    a = a.copy()
    a.real = np.ldexp(a.real, exponents)
    a.imag = np.ldexp(a.imag, exponents)
    return a


@dataclass(frozen=True)
class PackedFactors:
    """L and U in one array, as the server stores them.

    Attributes
    ----------
    lu : ndarray, shape (n, n)
        L strictly below the diagonal, U above. The diagonal belongs to the factor without the unit
        diagonal.
    permutation : ndarray of int, shape (n,)
        Row i of L U is row permutation[i] of R A C. 0-based.
    piv : ndarray of int, shape (n,)
        Row i was interchanged with row piv[i]. 0-based, as in SciPy.
    row_scales, col_scales : ndarray, shape (n,)
        The diagonals of R and C; ones if A was not scaled.
    record : FactorRecord
        Record of the downloaded version.
    """

    lu: Array
    permutation: Array
    piv: Array
    row_scales: Array
    col_scales: Array
    record: FactorRecord

    def lu_piv(self) -> tuple[Array, Array]:
        """The form that `scipy.linalg.lu_factor` returns, for `scipy.linalg.lu_solve`."""
        lower, upper = self._triangles()
        return np.tril(lower, -1) + upper, self.piv

    def plu(self) -> tuple[Array, Array, Array]:
        """P, L and U with A = P L U, as `scipy.linalg.lu` returns them."""
        lower, upper = self._triangles()
        n = len(self.permutation)
        permutation = np.zeros((n, n), self.lu.real.dtype)
        permutation[self.permutation, np.arange(n)] = 1
        return permutation, lower, upper

    def _triangles(self) -> tuple[Array, Array]:
        """L, with the unit diagonal, and U."""
        diagonal = np.diagonal(self.lu)
        lower = np.tril(self.lu, -1)
        upper = np.triu(self.lu, 1)
        if self.record.unit_diagonal == "u":
            if self.record.info > 0:
                raise Singular(
                    f"the matrix is singular (info = {self.record.info}), and this factor has the unit "
                    "diagonal in U, from which P L U cannot be had: factor with algorithm='getrf'"
                )
            lower /= diagonal
            upper *= diagonal[:, None]
        rows = -_exponents(self.row_scales[self.permutation])  # of the diagonal of D
        lower = _times_powers_of_two(lower, rows[:, None] - rows)
        upper += np.diag(diagonal)
        upper = _times_powers_of_two(upper, rows[:, None] - _exponents(self.col_scales))
        np.fill_diagonal(lower, 1)
        return lower, upper

    def slogdet(self) -> SlogDet:
        """The determinant of A."""
        swaps = np.count_nonzero(self.piv != np.arange(len(self.piv)))
        return determinant(np.diagonal(self.lu), (-1) ** swaps, self.row_scales, self.col_scales)


def determinant(pivots: Array, sign: int, row_scales: Array, col_scales: Array) -> SlogDet:
    """The determinant of A from the pivots of its scaled form and the sign of their permutation."""
    wide = pivots.astype(complex if np.iscomplexobj(pivots) else float)
    if not wide.all():
        return SlogDet(0.0, -np.inf)
    scales = np.log(row_scales).sum() + np.log(col_scales).sum()
    phase = np.prod(wide / np.abs(wide)) * sign
    return SlogDet(phase.item(), float(np.log(np.abs(wide)).sum() - scales))


class FactorsReply:
    """Reply of GetFactors."""

    repeatable = True

    def __init__(self, n: int) -> None:
        self._n = n
        self._target = Target(n, n, None)
        self._header: service.GetFactorsHeader | None = None

    def feed(self, message: bytes) -> None:
        """See `Reply`."""
        rest, pieces = _wire.split(message, 2)
        response = parse(service.GetFactorsResponse, rest)
        if response.HasField("header"):
            self._header = response.header
            self._target.begin(response.header.lu)
        for piece in pieces:
            self._target.append(piece)

    def finish(self) -> PackedFactors:
        """See `Reply`."""
        lu = self._target.finish()
        if self._header is None:
            raise ProtocolError("the server sent no header")
        header, n = self._header, self._n
        permutation = convert(np.array, header.permutation).astype(np.intp)
        piv = convert(np.array, header.ipiv).astype(np.intp) - 1
        if not np.array_equal(np.sort(permutation), np.arange(n)):
            raise ProtocolError("the server sent no permutation")
        if piv.shape != (n,) or not ((piv >= 0) & (piv < n)).all():
            raise ProtocolError("the server sent interchanges of rows that do not exist")
        return PackedFactors(
            lu=lu,
            permutation=permutation,
            piv=piv,
            row_scales=self._scales(header.row_scales),
            col_scales=self._scales(header.col_scales),
            record=checked_record(header.factor, n),
        )

    def _scales(self, sent: Any) -> Array:
        if not sent:
            return np.ones(self._n)
        scales = np.array(sent)
        if scales.shape != (self._n,) or not (np.isfinite(scales) & (scales > 0)).all():
            raise ProtocolError("the server sent impossible scales")
        return scales

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""


def iterations(pages: list[service.IterationPage]) -> results.Iterations:
    """Concatenate all pages of counts. Raises ProtocolError if counts are missing."""
    sections = pages[0].sections
    sweeps = [count for page in pages for count in page.sweeps]
    pivots = [count for page in pages for count in page.pivots]
    bad_elements = [count for page in pages for count in page.bad_elements]
    if (
        len(sweeps) != sections * sections
        or len(pivots) != sections
        or len(bad_elements) not in (0, sections)
    ):
        raise ProtocolError("the server sent another number of counts than it announced")
    return results.Iterations(
        version=pages[0].version,
        sweeps=np.array(sweeps, int).reshape(sections, sections, order="F"),
        pivots=np.array(pivots, int),
        bad_elements=np.array(bad_elements, int) if len(bad_elements) == sections else None,
    )
