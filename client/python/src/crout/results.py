"""What the server says of factors, solutions and itself."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crout._payload import numpy_dtype
from crout._server_info import DeviceStatus, Estimate, ServerInfo, TenantLoad
from crout._words import algorithm, optional, solver, time_of, timings, word
from crout.v1 import factor_pb2, factorization_service_pb2, matrix_pb2

__all__ = [
    "Complement",
    "DeviceStatus",
    "Estimate",
    "FactorPage",
    "FactorRecord",
    "Iterations",
    "Progress",
    "SeriesStep",
    "ServerInfo",
    "SlogDet",
    "Solution",
    "SparseInfo",
    "TenantLoad",
    "complement",
    "factor_page",
    "factor_record",
    "lease_end",
    "progress",
    "series_step",
    "solution",
    "timings",
]

Array = npt.NDArray[Any]


class SlogDet(NamedTuple):
    """A determinant, sign * exp(logabsdet), as `numpy.linalg.slogdet` returns it."""

    sign: complex  # a float where A is real
    logabsdet: float


@dataclass(frozen=True)
class SparseInfo:
    """What the factorization of a sparse matrix came to, by a method that keeps it sparse.

    Attributes
    ----------
    lu_entries : int
        Entries of L and U as they are stored, the unit diagonal not counted.
    flops : float
        Operations of the factorization, a complex one counted as one.
    perturbed_pivots : int
        Pivots that stayed too small and were made larger: solves are corrected for them.
    negative_pivots : int or None
        Of a symmetric real matrix whose rows were not exchanged: how many eigenvalues are negative.
    fronts, levels, largest_front : int
        Of the elimination tree: its nodes, its depth, and the order of the largest dense block.
    ordering : str
        What ordered it: "amd", "metis".
    analysis_reused : bool
        The pattern was known from another factor: nothing was ordered.
    postponements : int
        How often pivots that were too small were eliminated later instead, and all factored again.
    """

    lu_entries: int
    flops: float
    perturbed_pivots: int
    negative_pivots: int | None
    fronts: int
    levels: int
    largest_front: int
    ordering: str
    analysis_reused: bool
    postponements: int = 0


def _sparse_info(message: factor_pb2.SparseInfo) -> SparseInfo:
    return SparseInfo(
        lu_entries=message.lu_entries,
        flops=message.flops,
        perturbed_pivots=message.perturbed_pivots,
        negative_pivots=optional(message, "negative_pivots"),
        fronts=message.fronts,
        levels=message.levels,
        largest_front=message.largest_front,
        ordering=message.ordering,
        analysis_reused=message.analysis_reused,
        postponements=message.postponements,
    )


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
        When asked for.
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
        sparse=_sparse_info(message.sparse) if message.HasField("sparse") else None,
    )


@dataclass(frozen=True)
class Solution:
    """X of op(A) X = B, and how far it can be trusted.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs)
        As B is.
    backward_error : float or None
        Largest over the columns, in the infinity-norm; None where it was not verified.
    componentwise_error, forward_error_bound : float or None
        When asked for.
    refinement_steps : int
        Steps whose corrections X holds.
    solver, fallback : str
        Whose answer X is, and why it took another's place ("none": it did not).
    factor_version : int
        The version of the factor that was used.
    device : str
        Where it was solved.
    promoted : bool
        The factor had to come back from host memory first.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    factor : FactorRecord or None
        Where the call factored as well.
    corrections : int or None
        With a factor in lower precision, or a sparse one with perturbed pivots: how often it was
        applied to correct X.
    warnings : tuple of str
        "not_accurate": corrections did not get X to the accuracy of its type; refactor with
        ``precision=None``, or, where pivots were perturbed, with another algorithm.
    """

    x: Array
    backward_error: float | None
    componentwise_error: float | None
    forward_error_bound: float | None
    refinement_steps: int
    solver: str
    fallback: str
    factor_version: int
    device: str
    promoted: bool
    timings: Mapping[str, float]
    factor: FactorRecord | None = None
    corrections: int | None = None
    warnings: tuple[str, ...] = ()


def solution(
    x: Array, message: factorization_service_pb2.SolveResult, factor: FactorRecord | None
) -> Solution:
    """The solution of a SolveResult message."""
    return Solution(
        x=x,
        backward_error=optional(message, "backward_error"),
        componentwise_error=optional(message, "componentwise_error"),
        forward_error_bound=optional(message, "forward_error_bound"),
        refinement_steps=message.refinement_steps,
        solver=solver(message.solver),
        fallback=word(factor_pb2.SolverFallback, "SOLVER_FALLBACK_", message.fallback),
        factor_version=message.factor_version,
        device=message.device,
        promoted=message.promoted,
        timings=timings(message.timings),
        factor=factor,
        corrections=optional(message, "corrections"),
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
    )


@dataclass(frozen=True)
class SeriesStep:
    """One step of a series: X, how far it can be trusted, and what was done for it.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs), or None
        As B is; None where the matrix is singular.
    accurate : bool
        The backward error is what was asked, or better.
    backward_error : float or None
        Largest over the columns, in the infinity-norm; None without x.
    accuracy : float
        The backward error that was asked.
    strategy : str
        What solved it: "reuse" of the factor that was there, that with an "update", or "refactor".
    old_iterations, new_iterations : int
        Applications of the factor that was there, and of a new one.
    age : int
        Steps since the factor that is there now was made; 0 where this one made it.
    update_rank : int
        Rank of the changes that an "update" was of; else 0.
    amplification : float
        A lower bound of the matrix's condition number.
    warnings : tuple of str
        What should be looked at: "not_accurate", "nearly_singular".
    solver : str
        Whose answer X is.
    factor : FactorRecord or None
        Of the factor that is there now; its handle is good for any call while the series lasts.
    device : str
        Where it was solved.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    x: Array | None
    accurate: bool
    backward_error: float | None
    accuracy: float
    strategy: str
    old_iterations: int
    new_iterations: int
    age: int
    update_rank: int
    amplification: float
    warnings: tuple[str, ...]
    solver: str
    factor: FactorRecord | None
    device: str
    timings: Mapping[str, float]


def series_step(
    x: Array | None, message: factorization_service_pb2.SeriesResult, factor: FactorRecord | None
) -> SeriesStep:
    """The step of a SeriesResult message."""
    return SeriesStep(
        x=x,
        accurate=message.accurate,
        backward_error=message.backward_error if message.solved else None,
        accuracy=message.accuracy,
        strategy=word(factorization_service_pb2.SeriesStrategy, "SERIES_STRATEGY_", message.strategy),
        old_iterations=message.old_iterations,
        new_iterations=message.new_iterations,
        age=message.age,
        update_rank=message.update_rank,
        amplification=message.amplification,
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        solver=solver(message.solver),
        factor=factor,
        device=message.device,
        timings=timings(message.timings),
    )


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
    device : str
        Where it was computed.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    R: Array
    rank: int
    pivots: Array
    tolerance: float
    device: str
    timings: Mapping[str, float]


def echelon_form(r: Array, message: factorization_service_pb2.EchelonFormResult) -> EchelonForm:
    """The form of an EchelonFormResult message."""
    return EchelonForm(
        R=r,
        rank=message.rank,
        pivots=np.array(message.pivot_columns, np.int64),
        tolerance=message.tolerance,
        device=message.device,
        timings=timings(message.timings),
    )


@dataclass(frozen=True)
class Progress:
    """How far a call is.

    Attributes
    ----------
    bytes_sent : int
        Of the payload, handed to gRPC.
    phase : str
        "receive", "analyze", "queue", "factor" or "solve"; "" until the server has named one.
    jobs_ahead : int
        In the queue.
    columns_done, columns : int
        Of L and U that are final, of all; 0 where the method does not tell.
    steps_done, steps : int
        Of the analysis of a sparse matrix, where that takes long; 0 in other phases.
    """

    bytes_sent: int
    phase: str = ""
    jobs_ahead: int = 0
    columns_done: int = 0
    columns: int = 0
    steps_done: int = 0
    steps: int = 0


def progress(message: factorization_service_pb2.Progress, bytes_sent: int) -> Progress:
    """The progress of a Progress message."""
    return Progress(
        bytes_sent=bytes_sent,
        phase=word(factorization_service_pb2.Phase, "PHASE_", message.phase),
        jobs_ahead=message.jobs_ahead,
        columns_done=message.columns_done,
        columns=message.columns,
        steps_done=message.steps_done,
        steps=message.steps,
    )


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
