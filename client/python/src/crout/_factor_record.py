"""What the server says of factors."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crout._payload import numpy_dtype
from crout._sparse_info import SparseInfo, sparse_info
from crout._words import algorithm, optional, time_of, timings, word
from crout.errors import InvalidRequest
from crout.v1 import factor_pb2, factorization_service_pb2, matrix_pb2

Array = npt.NDArray[Any]


class SlogDet(NamedTuple):
    """A determinant, sign * exp(logabsdet), as `numpy.linalg.slogdet` returns it."""

    sign: complex  # a float where A is real
    logabsdet: float


@dataclass(frozen=True)
class FactorRecord:
    """What the server says of a factor, P A = L U. factor.proto explains every field in full.

    Attributes
    ----------
    handle, name : str
        The factor's names: the server's, and the caller's.
    version : int
        1, and 1 more with each refactor.
    n : int
        Order of the matrix.
    algorithm, device : str
        What ran, and where.
    dtype, matrix_dtype : numpy.dtype
        Of L and U; of the matrix as it arrived.
    unit_diagonal : str
        Which factor's diagonal is 1 and not stored: "l" or "u".
    info : int
        LAPACK's: 0, or the 1-based index of the first pivot that is exactly zero.
    pivot_growth : float
        Largest entry of U over largest of A.
    quality : float or None
        Estimate of ||P A - L U|| / (n ||A|| eps); around 1 or below is as good as rounding lets it be.
    warnings : tuple of str
        What of this should be looked at.
    norm_one, norm_inf : float
        Of A as it arrived.
    rcond, rcond_scaled : float or None
        Reciprocal condition estimates, of A and of what was factored; when asked for.
    determinant : SlogDet or None
        When asked for; None where pivots of a sparse factor were made larger, and of a factor in lower
        precision (`precision`), too.
    row_scaled, col_scaled, has_matrix : bool
        Whether A was equilibrated; whether it is kept, for verification and refinement.
    nnz : int or None
        Entries of a sparse upload.
    tier : str
        Where the factor is: "device" or "host".
    bytes : int
        What it takes of the cache.
    create_time, lease_expire_time : datetime.datetime
        On the server's clock.
    timings : Mapping of str to float
        Seconds in each phase of the call that made this version.
    singular_reason : str or None
        "zero_pivot", "empty_row", "empty_column" or "structure", where info is not 0.
    empty_index : int or None
        1-based index of the row or column that is empty, or of the row that no column is left for.
    precision : str or None
        "single" or "tf32" where it was computed in less than A's type and solves are corrected.
    precision_fallback : str or None
        "unusable", "condition" or "stagnation": why it is in A's type though less was asked for.
    sparse : SparseInfo or None
        Where the matrix stayed sparse, and L and U with it.
    """

    handle: str
    name: str
    version: int
    n: int
    algorithm: str
    device: str
    dtype: np.dtype[Any]
    matrix_dtype: np.dtype[Any]
    unit_diagonal: str
    info: int
    pivot_growth: float
    quality: float | None
    warnings: tuple[str, ...]
    norm_one: float
    norm_inf: float
    rcond: float | None
    rcond_scaled: float | None
    determinant: SlogDet | None
    row_scaled: bool
    col_scaled: bool
    has_matrix: bool
    nnz: int | None
    tier: str
    bytes: int
    create_time: datetime.datetime
    lease_expire_time: datetime.datetime
    timings: Mapping[str, float]
    singular_reason: str | None
    empty_index: int | None
    precision: str | None = None
    precision_fallback: str | None = None
    sparse: SparseInfo | None = None


def factor_record(message: factor_pb2.Factor) -> FactorRecord:
    """The record of a Factor message."""
    determinant = None
    if message.HasField("determinant"):
        sign: complex = message.determinant.sign
        if message.matrix_dtype in (matrix_pb2.DTYPE_COMPLEX64, matrix_pb2.DTYPE_COMPLEX128):
            sign = complex(message.determinant.sign, message.determinant.sign_imaginary)
        determinant = SlogDet(sign, message.determinant.log_abs)
    reason = optional(message, "singular_reason")
    return FactorRecord(
        handle=message.handle,
        name=message.name,
        version=message.version,
        n=message.n,
        algorithm=algorithm(message.algorithm),
        device=message.device,
        dtype=numpy_dtype(message.factor_dtype),
        matrix_dtype=numpy_dtype(message.matrix_dtype),
        unit_diagonal=word(factor_pb2.UnitDiagonal, "UNIT_DIAGONAL_", message.unit_diagonal),
        info=message.info,
        pivot_growth=message.pivot_growth,
        quality=optional(message, "quality"),
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        norm_one=message.norm_one,
        norm_inf=message.norm_inf,
        rcond=optional(message, "rcond"),
        rcond_scaled=optional(message, "rcond_scaled"),
        determinant=determinant,
        row_scaled=message.row_scaled,
        col_scaled=message.col_scaled,
        has_matrix=message.has_matrix,
        nnz=optional(message, "nnz"),
        tier=word(factor_pb2.Tier, "TIER_", message.tier),
        bytes=message.bytes,
        create_time=time_of(message.create_time),
        lease_expire_time=time_of(message.lease_expire_time),
        timings=timings(message.timings),
        singular_reason=(
            None if reason is None else word(factor_pb2.SingularReason, "SINGULAR_REASON_", reason)
        ),
        empty_index=optional(message, "empty_index"),
        precision=(
            word(factor_pb2.FactorPrecision, "FACTOR_PRECISION_", message.precision)
            if message.precision
            else None
        ),
        precision_fallback=(
            word(factor_pb2.PrecisionFallback, "PRECISION_FALLBACK_", message.precision_fallback)
            if message.precision_fallback
            else None
        ),
        sparse=sparse_info(message.sparse) if message.HasField("sparse") else None,
    )


def known_determinant(record: FactorRecord) -> SlogDet | None:
    """The determinant of A, where its record has it: the server's, or zero.

    Raises InvalidRequest for a factor in lower precision, whose determinant is not that of A.
    """
    if record.precision is not None and record.info == 0:
        raise InvalidRequest(
            f"this factor was computed in lower precision ({record.precision}), and its determinant is not "
            "that of A: factor A without precision="
        )
    # A zero pivot of a method that does not pivot says nothing of A; those for sparse matrices do,
    # and what they leave of such a factor, if anything, has another number in its place.
    pivots = record.singular_reason in (None, "zero_pivot")
    if record.determinant is None and (not pivots or (record.info > 0 and record.sparse is not None)):
        return SlogDet(0.0, -np.inf)
    return record.determinant


@dataclass(frozen=True)
class FactorPage:
    """Some factors of a list, and where the next begin."""

    records: tuple[FactorRecord, ...]
    next_page_token: str


def factor_page(message: factorization_service_pb2.ListFactorsResponse) -> FactorPage:
    """The page of a ListFactorsResponse message."""
    return FactorPage(tuple(map(factor_record, message.factors)), message.next_page_token)


def lease_end(message: factorization_service_pb2.RenewLeaseResponse) -> datetime.datetime:
    """When the lease of a RenewLeaseResponse message ends."""
    return time_of(message.lease_expire_time)


@dataclass(frozen=True)
class Iterations:
    """What an iterative method did, section by section.

    Attributes
    ----------
    version : int
        Of the factor.
    sweeps : ndarray of int, shape (sections, sections)
        Sweeps of each section: executed ones, or, where a GPU went through columns instead, those
        that these stand for.
    pivots : ndarray of int, shape (sections,)
        Rows moved under each diagonal section.
    bad_elements : ndarray of int, shape (sections,), or None
        Bad elements handled there, with those that were the largest candidate themselves; None where
        the device does not count them.
    """

    version: int
    sweeps: Array
    pivots: Array
    bad_elements: Array | None
