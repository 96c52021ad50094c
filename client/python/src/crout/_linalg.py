# SPDX-License-Identifier: Apache-2.0
"""Linear algebra on the client: condition estimates, determinants, and downloaded factors."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crout._diagnostics import perturbed_pivots
from crout.errors import InvalidRequest, Singular
from crout.records import FactorRecord, SlogDet, Summarized

Array = npt.NDArray[Any]

_MAX_STEPS = 5  # LAPACK's limit; two steps are usually enough
_ROWS_AT_ONCE = 1 << 16  # rows of L or U that are scaled at once


def _signs(y: Array) -> Array:
    """Divide each number by its modulus. 0 becomes 1."""
    if not np.iscomplexobj(y):
        return np.where(y < 0, -1.0, 1.0)
    modulus = np.abs(y)
    return np.where(modulus > 0, y / np.where(modulus > 0, modulus, 1), 1)


def inverse_norm(n: int) -> Generator[tuple[Array, Literal[0, 2]], Array, float]:
    """Estimate the 1-norm of A^-1 with a few solves, like LAPACK's lacn2.

    N. J. Higham, "FORTRAN codes for estimating the one-norm of a real or complex matrix, with applications
    to condition estimation", ACM TOMS 14 (1988). The estimate is a lower bound, rarely too small by more
    than a factor of 3.

    Yields
    ------
    b : ndarray, shape (n,)
    trans : 0 or 2
        The system to solve: A x = b for 0, A^H x = b for 2. The caller sends x.

    Returns
    -------
    float
        The estimate; 0 for n = 0.
    """
    if n == 0:
        return 0.0
    y = yield np.full(n, 1 / n), 0
    estimate = float(np.abs(y).sum())
    signs = _signs(y)
    column = -1
    for _ in range(_MAX_STEPS if n > 1 else 0):
        z = yield signs, 2
        steepest = int(np.argmax(np.abs(z)))
        if column >= 0 and abs(z[steepest]) == abs(z[column]):
            break
        column = steepest
        unit = np.zeros(n)
        unit[column] = 1
        y = yield unit, 0
        previous, estimate = estimate, max(estimate, float(np.abs(y).sum()))
        before, signs = signs, _signs(y)
        if estimate <= previous or np.array_equal(signs, before):
            break
    if n > 1:  # lower bound for matrices on which the steps above fail
        i = np.arange(n)
        y = yield (-1.0) ** i * (1 + i / (n - 1)), 0
        estimate = max(estimate, 2 * float(np.abs(y).sum()) / (3 * n))
    return estimate


def with_rcond(record: FactorRecord, inverse: float) -> FactorRecord:
    """Return the record with rcond, computed from the 1-norm of A^-1; 0 if a norm overflowed."""
    if record.n == 0:
        return dataclasses.replace(record, rcond=1.0)
    product = record.norm_one * inverse
    rcond = 1 / product if np.isfinite(product) and product > 0 else 0.0
    return dataclasses.replace(record, rcond=min(rcond, 1.0))


def _exponents(scales: Array) -> Array:
    exponents: Array = np.frexp(scales)[1] - 1  # frexp's mantissas are in [0.5, 1)
    return exponents


def _times_powers_of_two(a: Array, exponents: Array) -> Array:
    """Scale by 2^exponents, exactly, even if a power of two is beyond the range of the type."""
    if not np.iscomplexobj(a):
        scaled: Array = np.ldexp(a, exponents)
        return scaled
    a = a.copy()
    a.real = np.ldexp(a.real, exponents)
    a.imag = np.ldexp(a.imag, exponents)
    return a


@dataclass(frozen=True)
class PackedFactors:
    """L and U in one array, as the server stores them: P^T (R A C) = L U.

    R and C are the identity or, if A was equilibrated, diagonal matrices of powers of two. The unit diagonal
    is in L or in U. SciPy's form, A = P L U with the unit diagonal in L, follows with D = P^T R^-1 P:

        A = R^-1 P L U C^-1 = P (D L D^-1) (D U C^-1).

    This is exact, because the entries of D and C are powers of two. If the unit diagonal is in U, the form
    follows from L U = (L E^-1) (E U) with E = diag(L), with one rounding for each entry.

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
        """Return the factors as `scipy.linalg.lu_factor` does, for `scipy.linalg.lu_solve`."""
        lower, upper = self._triangles()
        return np.tril(lower, -1) + upper, self.piv

    def plu(self) -> tuple[Array, Array, Array]:
        """Return P, L and U with A = P L U, as `scipy.linalg.lu` does."""
        lower, upper = self._triangles()
        n = len(self.permutation)
        permutation = np.zeros((n, n), self.lu.real.dtype)
        permutation[self.permutation, np.arange(n)] = 1
        return permutation, lower, upper

    def _triangles(self) -> tuple[Array, Array]:
        """Return L, with the unit diagonal, and U."""
        diagonal = np.diagonal(self.lu)
        lower = np.tril(self.lu, -1)
        upper = np.triu(self.lu, 1)
        if self.record.unit_diagonal == "u":
            if self.record.info > 0:
                raise Singular(
                    f"the matrix is singular (info = {self.record.info}), and its factor has the unit "
                    "diagonal in U, which cannot be converted to P L U: factor with algorithm='getrf'"
                )
            lower /= diagonal
            upper *= diagonal[:, None]
        rows = -_exponents(self.row_scales[self.permutation])  # exponents of the diagonal of D
        lower = _times_powers_of_two(lower, rows[:, None] - rows)
        upper += np.diag(diagonal)
        upper = _times_powers_of_two(upper, rows[:, None] - _exponents(self.col_scales))
        np.fill_diagonal(lower, 1)
        return lower, upper

    def slogdet(self) -> SlogDet:
        """Return the determinant of A."""
        swaps = np.count_nonzero(self.piv != np.arange(len(self.piv)))
        return determinant(np.diagonal(self.lu), (-1) ** swaps, self.row_scales, self.col_scales)


@dataclass(frozen=True, eq=False, repr=False)
class SparseFactors(Summarized):
    """L and U of a sparse factor, as `scipy.sparse.linalg.splu` returns them.

    A = ``(L @ U)[perm_r][:, perm_c]``, except for perturbed pivots. In matrices, ``Pr.T @ (L @ U) @ Pc.T`` is
    A, where ``Pr[perm_r, arange(n)]`` and ``Pc[arange(n), perm_c]`` are ones.

    Attributes
    ----------
    L, U : scipy.sparse.csc_array, shape (n, n)
        L has ones on its diagonal. Zeros within fronts are stored. If A was scaled, these are factors of A
        itself.
    perm_r, perm_c : ndarray of int, shape (n,)
        Row i of A is row perm_r[i] of L U, and column j is column perm_c[j] of L U. 0-based.
    record : FactorRecord
        Record of the downloaded version.
    """

    _shown = "L U perm_r perm_c"

    L: Any
    U: Any
    perm_r: Array
    perm_c: Array
    record: FactorRecord
    _determinant: SlogDet  # for L U and permutations; without rounding and overflow of the scales in U

    def slogdet(self) -> SlogDet:
        """Return the determinant of A.

        Raises
        ------
        InvalidRequest
            The factor has the determinant of another matrix, because pivots were perturbed
            (``record.sparse.perturbed_pivots``) or because it has a lower precision (``record.precision``).
        """
        known = known_determinant(self.record)
        if known is not None:
            return known
        if self.record.sparse is not None and self.record.sparse.perturbed_pivots > 0:
            scaled = self.record.row_scaled or self.record.col_scaled
            raise InvalidRequest(
                "the determinant of the factor belongs to a nearby matrix, because "
                f"{perturbed_pivots(self.record)}: factor A by a dense method"
                + ("" if scaled else ", or with equilibrate=True")
            )
        return self._determinant


def sparse_factors(
    lower: Any,
    upper: Any,
    rows: Array,
    columns: Array,
    scales: tuple[Array, Array] | None,
    record: FactorRecord,
) -> SparseFactors:
    """Convert the factors that the server sends: L U = (R A C)[rows][:, columns].

    With D = P^T R^-1 P, as in `PackedFactors`, the factors of A itself are D L D^-1 and D U C^-1, in which C
    is permuted like the columns.

    Parameters
    ----------
    lower, upper : scipy.sparse.csr_matrix
        L, with its unit diagonal, and U.
    rows, columns : ndarray of int
        Row i of L U is row rows[i] of R A C.
    scales : tuple of ndarray, or None
        The diagonals of R and C; None if A was not scaled.
    record : FactorRecord
    """
    from scipy.sparse import csc_array

    n = len(rows)
    r, c = (np.ones(n), np.ones(n)) if scales is None else scales
    value = determinant(upper.diagonal(), _sign(rows) * _sign(columns), r, c)
    if scales is not None:
        _scale(lower, 1 / r[rows], r[rows])
        lower.data[lower.indptr[1:] - 1] = 1  # the diagonal is the last entry of each row
        _scale(upper, 1 / r[rows], 1 / c[columns])
    perm_r, perm_c = np.empty(n, np.int32), np.empty(n, np.int32)
    perm_r[rows] = perm_c[columns] = np.arange(n)
    return SparseFactors(csc_array(lower), csc_array(upper), perm_r, perm_c, record, value)


def _scale(a: Any, rows: Array, columns: Array) -> None:
    """Multiply the rows and columns of compressed rows in place."""
    for begin in range(0, a.shape[0], _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, a.shape[0])
        counts = np.diff(a.indptr[begin : end + 1])
        entries = slice(int(a.indptr[begin]), int(a.indptr[end]))
        a.data[entries] *= np.repeat(rows[begin:end], counts) * columns[a.indices[entries]]


@dataclass(frozen=True, eq=False)
class MemberFactors:
    """L and U of a member in one array, and its row interchanges.

    Attributes
    ----------
    lu : ndarray, shape (m, n)
        L strictly below the diagonal (unit diagonal not stored), U on and above it.
    piv : ndarray of int, shape (min(m, n),)
        Row i was interchanged with row piv[i]. 0-based, as in SciPy.
    """

    lu: Array
    piv: Array

    def lu_piv(self) -> tuple[Array, Array]:
        """Return the factors as `scipy.linalg.lu_factor` does."""
        return self.lu, self.piv

    def plu(self) -> tuple[Array, Array, Array]:
        """Return P, L and U with A = P L U, as `scipy.linalg.lu` does."""
        rows, cols = self.lu.shape
        order = np.arange(rows)
        for i, k in enumerate(self.piv.tolist()):
            order[[i, k]] = order[[k, i]]
        permutation = np.zeros((rows, rows), self.lu.real.dtype)
        permutation[order, np.arange(rows)] = 1
        diagonal = min(rows, cols)
        lower = np.tril(self.lu[:, :diagonal], -1)
        np.fill_diagonal(lower, 1)
        return permutation, lower, np.triu(self.lu[:diagonal])


def determinant(pivots: Array, sign: int, row_scales: Array, col_scales: Array) -> SlogDet:
    """Compute the determinant of A from its pivots, the sign of its permutations, and its scales."""
    wide = pivots.astype(complex if np.iscomplexobj(pivots) else float)
    if not wide.all():
        return SlogDet(0.0, -np.inf)
    scales = np.log(row_scales).sum() + np.log(col_scales).sum()
    phase = np.prod(wide / np.abs(wide)) * sign
    return SlogDet(phase.item(), float(np.log(np.abs(wide)).sum() - scales))


def known_determinant(record: FactorRecord) -> SlogDet | None:
    """Return the determinant of A if the record determines it; otherwise None.

    Raises InvalidRequest for a low-precision factor, because its determinant differs from A's.
    """
    if record.precision is not None and record.info == 0:
        raise InvalidRequest(
            f"the factor has lower precision ({record.precision}), and its determinant differs from the "
            "determinant of A: factor A without precision="
        )
    # Without pivoting, a zero pivot does not prove that A is singular. Sparse methods pivot, and replace a
    # zero pivot by another number, so that the factors of a singular matrix have another determinant.
    pivots = record.singular_reason in (None, "zero_pivot")
    if record.determinant is None and (not pivots or (record.info > 0 and record.sparse is not None)):
        return SlogDet(0.0, -np.inf)
    return record.determinant


def _sign(permutation: Array) -> int:
    """Return the sign of a permutation, 1 or -1, from its numbers of elements and cycles."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(permutation)
    edges = csr_array((np.ones(n, np.int8), (np.arange(n), permutation)), (n, n))
    cycles = connected_components(edges, directed=False, return_labels=False)
    return -1 if (n - int(cycles)) % 2 else 1
