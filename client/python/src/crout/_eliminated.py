# SPDX-License-Identifier: Apache-2.0
"""Results of an elimination: Schur complements and echelon forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout._factor_record import FactorRecord
from crout._words import optional, timings, word
from crout.v1 import factor_pb2, factorization_service_pb2

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Complement:
    """The Schur complement of a leading block.

    Attributes
    ----------
    S : ndarray, shape (n - k, n - k)
        A22 - A21 A11^-1 A12, where A11 is k x k.
    backward_error, growth : float or None
        Backward error and growth of the block elimination; None if S is empty.
    warnings : tuple of str
        Reasons to check S; the factor has its own warnings.
    device : str
        Device that computed S.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    record : FactorRecord
        Record of the factor of A11; without a handle if it was not kept.
    """

    S: Array
    backward_error: float | None
    growth: float | None
    warnings: tuple[str, ...]
    device: str
    timings: Mapping[str, float]
    record: FactorRecord


def complement(
    s: Array, message: factorization_service_pb2.ComplementResult, record: FactorRecord
) -> Complement:
    """The complement of a ComplementResult message."""
    return Complement(
        S=s,
        backward_error=optional(message, "backward_error"),
        growth=optional(message, "growth"),
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        device=message.device,
        timings=timings(message.timings),
        record=record,
    )


@dataclass(frozen=True)
class EchelonForm:
    """The reduced row echelon form of a matrix.

    Attributes
    ----------
    R : ndarray, shape (m, n)
        The first nonzero of row i < rank is a 1 in column pivots[i]; all other rows are zero there. Rows
        from `rank` on are zero, except in augmented columns.
    rank : int
        Number of rows with a pivot.
    pivots : ndarray of int64, shape (rank,)
        Columns of the pivots, ascending and 0-based.
    tolerance : float
        Threshold that pivots exceed. The default is raised for columns with large coefficients; this is the
        value before.
    least_pivot : float or None
        Size of the smallest pivot; None for rank 0.
    largest_rejected : float or None
        Size of the largest candidate in a column without a pivot; None if every column with candidates has
        a pivot. The rank is reliable if this is far below `least_pivot` and there are no warnings.
    growth : float
        Growth of entries in the elimination, at least 1: the factor by which rounding errors may have grown.
    warnings : tuple of str
        "poor_echelon_form": the growth is so large that the rank and R may be wrong.
    device : str
        Device that computed the form.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    R: Array
    rank: int
    pivots: Array
    tolerance: float
    least_pivot: float | None
    largest_rejected: float | None
    growth: float
    warnings: tuple[str, ...]
    device: str
    timings: Mapping[str, float]


def echelon_form(r: Array, message: factorization_service_pb2.EchelonFormResult) -> EchelonForm:
    """The form of an EchelonFormResult message."""
    return EchelonForm(
        R=r,
        rank=message.rank,
        pivots=np.array(message.pivot_columns, np.int64),
        tolerance=message.tolerance,
        least_pivot=optional(message, "least_pivot"),
        largest_rejected=optional(message, "largest_rejected"),
        growth=message.pivot_growth,
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        device=message.device,
        timings=timings(message.timings),
    )
