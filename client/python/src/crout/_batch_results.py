"""What the server says of batches of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout._factor_record import FactorRecord

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class BatchRecord:
    """What the server says of a batch.

    Attributes
    ----------
    factor : FactorRecord
        Of all of it: handle, lease, the worst growth and quality.
    shapes : ndarray of int, shape (members, 2)
    info : ndarray of int, shape (members,)
        LAPACK's, of each member: 0, or the 1-based index of the first pivot that is exactly zero.
    pivot_growth, quality : ndarray, shape (members,)
        As `FactorRecord` has them; infinite where a member's factors hold an infinity or NaN.
    poor, nearly_singular : int
        Members whose factors are poor, and those that may as well be singular; singular ones aside.
    first_poor, first_nearly_singular : int
        The first of each.
    """

    factor: FactorRecord
    shapes: Array
    info: Array
    pivot_growth: Array
    quality: Array
    poor: int = 0
    first_poor: int = 0
    nearly_singular: int = 0
    first_nearly_singular: int = 0


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """Solutions with members of a batch, and what is known of them.

    Attributes
    ----------
    x : list of ndarray
        Of the shapes that the right-hand sides had; NaN where the member is singular.
    backward_error : ndarray
        One for each; NaN where it was not verified, or is not finite.
    info : ndarray of int
        The members'.
    factor_version : int
        Of the batch that was used.
    timings : Mapping of str to float
        Seconds in each phase.
    inaccurate : int
        How many of them have a backward error that is not accepted, or are not finite.
    warnings : tuple of str
        As `Solution` has them, of any.
    """

    x: list[Array]
    backward_error: Array
    info: Array
    factor_version: int
    timings: dict[str, float]
    inaccurate: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class MemberFactors:
    """L and U of a member in one array, and its row interchanges.

    Attributes
    ----------
    lu : ndarray, shape (m, n)
        L strictly below the diagonal, with ones on it; U on the diagonal and above.
    piv : ndarray of int, shape (min(m, n),)
        Row i was interchanged with row piv[i]. 0-based, as SciPy's.
    """

    lu: Array
    piv: Array

    def plu(self) -> tuple[Array, Array, Array]:
        """P, L and U with A = P L U, as `scipy.linalg.lu` returns them."""
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
