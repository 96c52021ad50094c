"""What the server says of a matrix that was eliminated in part, or to its echelon form."""

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
        Of the block elimination; None where S is empty.
    warnings : tuple of str
        What of S should be looked at; the factor has its own.
    device : str
        Where it was computed.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    record : FactorRecord
        Of the factor of A11, which has no handle where it did not stay.
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
        Row i < rank has its first nonzero, 1, in column pivots[i], where all other rows are zero; rows
        from `rank` on are zero but for augmented columns.
    rank : int
        Rows with a pivot.
    pivots : ndarray of int64, shape (rank,)
        Columns of the pivots, ascending, from 0.
    tolerance : float
        What is no larger is no pivot.
    least_pivot : float or None
        Size of the smallest pivot; None for rank 0.
    largest_rejected : float or None
        Size of the largest candidate in a column without a pivot; None where each column with
        candidates has one. The rank is as certain as this is far below `least_pivot`.
    device : str
        Where it was computed.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    R: Array
    rank: int
    pivots: Array
    tolerance: float
    least_pivot: float | None
    largest_rejected: float | None
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
        device=message.device,
        timings=timings(message.timings),
    )
