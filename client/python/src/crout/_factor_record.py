# SPDX-License-Identifier: Apache-2.0
"""Descriptions of factors."""

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

    sign: complex  # a float if A is real
    logabsdet: float


@dataclass(frozen=True)
class FactorRecord:
    """Description of a factor, P A = L U. factor.proto documents every field.

    Attributes
    ----------
    handle, name : str
        The server's identifier, and the caller's name.
    version : int
        1; each refactor adds 1.
    n : int
        Order of the matrix.
    algorithm, device : str
        Method that ran, and its device.
    dtype, matrix_dtype : numpy.dtype
        Type of L and U; type of the matrix as it was sent.
    unit_diagonal : str
        Factor whose unit diagonal is not stored: "l" or "u".
    info : int
        LAPACK's: 0, or the 1-based index of the first pivot that is exactly zero.
    pivot_growth : float
        Largest |entry| of U over largest |entry| of A.
    quality : float or None
        Estimate of ||P A - L U|| / (n ||A|| eps); near 1 or below is as good as rounding allows.
    warnings : tuple of str
        Reasons to check the factor.
    norm_one, norm_inf : float
        Norms of A as it was sent.
    rcond, rcond_scaled : float or None
        Reciprocal condition estimates of A and of the factored matrix; on request.
    determinant : SlogDet or None
        On request. None for a sparse factor with perturbed pivots and for a low-precision factor
        (`precision`).
    row_scaled, col_scaled, has_matrix : bool
        Whether A was equilibrated; whether it is kept, for verification and refinement.
    nnz : int or None
        Entries of a sparse upload.
    tier : str
        Memory that holds the factor: "device" or "host".
    bytes : int
        Bytes charged to the cache.
    create_time, lease_expire_time : datetime.datetime
        On the server's clock.
    timings : Mapping of str to float
        Seconds in each phase of the call that made this version.
    singular_reason : str or None
        "zero_pivot", "empty_row", "empty_column" or "structure", if info is not 0.
    empty_index : int or None
        1-based index of the empty row or column, or of the row without a matching column.
    precision : str or None
        "single" or "tf32" if the factor has a lower precision than A and solves are corrected.
    precision_fallback : str or None
        "unusable", "condition" or "stagnation": reason why it is in A's type although a lower precision
        was requested.
    sparse : SparseInfo or None
        Set for a sparse factor.
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
    """The determinant of A if the record has it: the server's, or zero.

    Raises InvalidRequest for a low-precision factor, whose determinant differs from A's.
    """
    if record.precision is not None and record.info == 0:
        raise InvalidRequest(
            f"this factor was computed in lower precision ({record.precision}), and its determinant is not "
            "that of A: factor A without precision="
        )
    # Without pivoting, a zero pivot is no evidence that A is singular. Sparse methods pivot; in their factors
    # of a singular matrix, if any, another number replaces the zero pivot.
    pivots = record.singular_reason in (None, "zero_pivot")
    if record.determinant is None and (not pivots or (record.info > 0 and record.sparse is not None)):
        return SlogDet(0.0, -np.inf)
    return record.determinant


@dataclass(frozen=True)
class FactorPage:
    """A page of factors, and the token of the next page."""

    records: tuple[FactorRecord, ...]
    next_page_token: str


def factor_page(message: factorization_service_pb2.ListFactorsResponse) -> FactorPage:
    """The page of a ListFactorsResponse message."""
    return FactorPage(tuple(map(factor_record, message.factors)), message.next_page_token)


def lease_end(message: factorization_service_pb2.RenewLeaseResponse) -> datetime.datetime:
    """The end of the lease in a RenewLeaseResponse message."""
    return time_of(message.lease_expire_time)


@dataclass(frozen=True)
class Iterations:
    """Record of an iterative method, section by section.

    Attributes
    ----------
    version : int
        Version of the factor.
    sweeps : ndarray of int, shape (sections, sections)
        Executed sweeps of each section; 0 if it was eliminated column by column instead.
    pivots : ndarray of int, shape (sections,)
        Rows interchanged under each diagonal section.
    bad_elements : ndarray of int, shape (sections,), or None
        Bad elements handled there, including those that were the largest candidate themselves; None if the
        device does not count them.
    """

    version: int
    sweeps: Array
    pivots: Array
    bad_elements: Array | None
