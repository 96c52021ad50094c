# SPDX-License-Identifier: Apache-2.0
"""Results of batches of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout._factor_record import FactorRecord

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class BatchRecord:
    """Description of a batch.

    Attributes
    ----------
    factor : FactorRecord
        Record of the whole batch: handle, lease, largest growth and quality.
    shapes : ndarray of int, shape (members, 2)
    info : ndarray of int, shape (members,)
        LAPACK's info of each member: 0, or the 1-based index of the first pivot that is exactly zero.
    pivot_growth, quality : ndarray, shape (members,)
        Growth and quality of each member, defined in `FactorRecord`; infinite if a member's factors hold an
        infinity or NaN.
    poor, nearly_singular : int
        Number of members with poor factors, and of members that are singular to working precision; exactly
        singular members are not counted.
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
    """Solutions with members of a batch, and their figures.

    Attributes
    ----------
    x : list of ndarray
        With the shapes of the right-hand sides; NaN for a singular member.
    backward_error : ndarray
        One value a solution; NaN if it was not verified, or is not finite.
    info : ndarray of int
        The info of each member.
    factor_version : int
        Version of the batch that was used.
    timings : Mapping of str to float
        Seconds in each phase.
    inaccurate : int
        Number of solutions whose backward error is not accepted, or that are not finite.
    warnings : tuple of str
        Reasons to doubt any of the solutions, defined in `Solution`.
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
        L strictly below the diagonal (unit diagonal not stored), U on and above it.
    piv : ndarray of int, shape (min(m, n),)
        Row i was interchanged with row piv[i]. 0-based, as in SciPy.
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
