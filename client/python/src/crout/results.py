"""What the server says of factors, solutions and itself."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crout._payload import numpy_dtype
from crout.v1 import factor_pb2, factorization_service_pb2, matrix_pb2

Array = npt.NDArray[Any]


class SlogDet(NamedTuple):
    """A determinant, sign * exp(logabsdet), as `numpy.linalg.slogdet` returns it."""

    sign: complex  # a float where A is real
    logabsdet: float


class _EnumType(Protocol):
    def Name(self, number: Any) -> str: ...  # noqa: N802


def _word(enum: _EnumType, prefix: str, number: int) -> str:
    """Make "getrf" of ALGORITHM_GETRF; the number where a newer server has more."""
    try:
        return enum.Name(number).removeprefix(prefix).lower()
    except ValueError:
        return str(number)


def _algorithm(number: int) -> str:
    return _word(factor_pb2.Algorithm, "ALGORITHM_", number)


def _solver(number: int) -> str:
    return _word(factor_pb2.Solver, "SOLVER_", number)


def _time(message: Any) -> datetime.datetime:
    """Of a Timestamp; microseconds are as fine as Python tells."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _seconds(message: Any) -> float:
    return float(message.seconds + message.nanos * 1e-9)


def timings(message: factor_pb2.Timings) -> dict[str, float]:
    """Seconds by phase, of those that happened."""
    return {field.name.removesuffix("_seconds"): value for field, value in message.ListFields()}


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
        "zero_pivot", "empty_row" or "empty_column", where info is not 0.
    empty_index : int or None
        1-based index of the row or column that is empty.
    precision : str or None
        "single" or "tf32" where it was computed in less than A's type and solves are corrected.
    precision_fallback : str or None
        "unusable", "condition" or "stagnation": why it is in A's type though less was asked for.
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


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def factor_record(message: factor_pb2.Factor) -> FactorRecord:
    """The record of a Factor message."""
    determinant = None
    if message.HasField("determinant"):
        sign: complex = message.determinant.sign
        if message.matrix_dtype in (matrix_pb2.DTYPE_COMPLEX64, matrix_pb2.DTYPE_COMPLEX128):
            sign = complex(message.determinant.sign, message.determinant.sign_imaginary)
        determinant = SlogDet(sign, message.determinant.log_abs)
    reason = _optional(message, "singular_reason")
    return FactorRecord(
        handle=message.handle,
        name=message.name,
        version=message.version,
        n=message.n,
        algorithm=_algorithm(message.algorithm),
        device=message.device,
        dtype=numpy_dtype(message.factor_dtype),
        matrix_dtype=numpy_dtype(message.matrix_dtype),
        unit_diagonal=_word(factor_pb2.UnitDiagonal, "UNIT_DIAGONAL_", message.unit_diagonal),
        info=message.info,
        pivot_growth=message.pivot_growth,
        quality=_optional(message, "quality"),
        warnings=tuple(_word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        norm_one=message.norm_one,
        norm_inf=message.norm_inf,
        rcond=_optional(message, "rcond"),
        rcond_scaled=_optional(message, "rcond_scaled"),
        determinant=determinant,
        row_scaled=message.row_scaled,
        col_scaled=message.col_scaled,
        has_matrix=message.has_matrix,
        nnz=_optional(message, "nnz"),
        tier=_word(factor_pb2.Tier, "TIER_", message.tier),
        bytes=message.bytes,
        create_time=_time(message.create_time),
        lease_expire_time=_time(message.lease_expire_time),
        timings=timings(message.timings),
        singular_reason=(
            None if reason is None else _word(factor_pb2.SingularReason, "SINGULAR_REASON_", reason)
        ),
        empty_index=_optional(message, "empty_index"),
        precision=(
            _word(factor_pb2.FactorPrecision, "FACTOR_PRECISION_", message.precision)
            if message.precision
            else None
        ),
        precision_fallback=(
            _word(factor_pb2.PrecisionFallback, "PRECISION_FALLBACK_", message.precision_fallback)
            if message.precision_fallback
            else None
        ),
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
        With a factor in lower precision: how often it was applied to correct X.
    warnings : tuple of str
        "not_accurate": corrections did not get X to the accuracy of its type; refactor with
        ``precision=None``.
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
        backward_error=_optional(message, "backward_error"),
        componentwise_error=_optional(message, "componentwise_error"),
        forward_error_bound=_optional(message, "forward_error_bound"),
        refinement_steps=message.refinement_steps,
        solver=_solver(message.solver),
        fallback=_word(factor_pb2.SolverFallback, "SOLVER_FALLBACK_", message.fallback),
        factor_version=message.factor_version,
        device=message.device,
        promoted=message.promoted,
        timings=timings(message.timings),
        factor=factor,
        corrections=_optional(message, "corrections"),
        warnings=tuple(_word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
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
        strategy=_word(factorization_service_pb2.SeriesStrategy, "SERIES_STRATEGY_", message.strategy),
        old_iterations=message.old_iterations,
        new_iterations=message.new_iterations,
        age=message.age,
        update_rank=message.update_rank,
        amplification=message.amplification,
        warnings=tuple(_word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        solver=_solver(message.solver),
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
        Of the factor of A11.
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
        backward_error=_optional(message, "backward_error"),
        growth=_optional(message, "growth"),
        warnings=tuple(_word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        device=message.device,
        timings=timings(message.timings),
        record=record,
    )


@dataclass(frozen=True)
class Progress:
    """How far a call is.

    Attributes
    ----------
    bytes_sent : int
        Of the payload, handed to gRPC.
    phase : str
        "receive", "queue", "factor" or "solve"; "" until the server has named one.
    jobs_ahead : int
        In the queue.
    columns_done, columns : int
        Of L and U that are final, of all; 0 where the method does not tell.
    """

    bytes_sent: int
    phase: str = ""
    jobs_ahead: int = 0
    columns_done: int = 0
    columns: int = 0


def progress(message: factorization_service_pb2.Progress, bytes_sent: int) -> Progress:
    """The progress of a Progress message."""
    return Progress(
        bytes_sent=bytes_sent,
        phase=_word(factorization_service_pb2.Phase, "PHASE_", message.phase),
        jobs_ahead=message.jobs_ahead,
        columns_done=message.columns_done,
        columns=message.columns,
    )


@dataclass(frozen=True)
class Iterations:
    """What an iterative method did, section by section.

    Attributes
    ----------
    version : int
        Of the factor.
    sweeps : ndarray of int, shape (sections, sections)
        Sweeps executed for each section.
    pivots : ndarray of int, shape (sections,)
        Row interchanges under each diagonal section.
    """

    version: int
    sweeps: Array
    pivots: Array


@dataclass(frozen=True)
class Estimate:
    """What a factorization would take.

    Attributes
    ----------
    algorithm, device : str
        What would run, and where.
    peak_bytes, cached_bytes : int
        Reserved while it runs; charged to the cache afterwards.
    predicted_seconds, predicted_queue_seconds : float
        Of the factorization alone; of the jobs ahead of it.
    fits : bool
        Whether it could be done at all, everything idle evicted.
    precision : str or None
        Where one was asked for and a lower one would be taken: "single" or "tf32".
    """

    algorithm: str
    device: str
    peak_bytes: int
    cached_bytes: int
    predicted_seconds: float
    predicted_queue_seconds: float
    fits: bool
    precision: str | None = None


def estimate(message: factorization_service_pb2.EstimateFactorizeResponse) -> Estimate:
    """The estimate of an EstimateFactorizeResponse message."""
    return Estimate(
        algorithm=_algorithm(message.algorithm),
        device=message.device,
        peak_bytes=message.peak_bytes,
        cached_bytes=message.cached_bytes,
        predicted_seconds=message.predicted_seconds,
        predicted_queue_seconds=message.predicted_queue_seconds,
        fits=message.fits,
        precision=(
            _word(factor_pb2.FactorPrecision, "FACTOR_PRECISION_", message.precision)
            if message.precision
            else None
        ),
    )


@dataclass(frozen=True)
class DeviceStatus:
    """A device of the server; factorization_service.proto explains every field."""

    name: str
    description: str
    healthy: bool
    algorithms: tuple[str, ...]
    solvers: tuple[str, ...]
    memory_bytes: int
    budget_bytes: int
    reserved_bytes: int
    streams: int
    streams_busy: int
    queue_depth: int
    batch_algorithms: tuple[str, ...]


@dataclass(frozen=True)
class TenantLoad:
    """What a tenant holds and does; factorization_service.proto explains every field."""

    tenant: str
    cached_factors: int
    device_bytes: int
    host_bytes: int
    calls: int


@dataclass(frozen=True)
class ServerInfo:
    """A server, its devices and its limits.

    Attributes
    ----------
    version, commit : str
        Of the server's source.
    draining : bool
        It was asked to stop.
    devices : tuple of DeviceStatus
        Fenced ones too.
    cached_factors : int
        Of all tenants.
    max_n : int
        Largest dimension of a matrix.
    default_lease, max_lease : float
        Seconds.
    tenants : tuple of TenantLoad
        Those of most bytes first; the caller's own alone, where callers have identities and it is
        no admin. Empty from older servers.
    """

    version: str
    commit: str
    draining: bool
    devices: tuple[DeviceStatus, ...]
    cached_factors: int
    max_n: int
    default_lease: float
    max_lease: float
    tenants: tuple[TenantLoad, ...] = ()


def _tenant(message: factorization_service_pb2.TenantLoad) -> TenantLoad:
    return TenantLoad(
        tenant=message.tenant,
        cached_factors=message.cached_factors,
        device_bytes=message.device_bytes,
        host_bytes=message.host_bytes,
        calls=message.calls,
    )


def _device(message: factorization_service_pb2.DeviceStatus) -> DeviceStatus:
    return DeviceStatus(
        name=message.name,
        description=message.description,
        healthy=message.healthy,
        batch_algorithms=tuple(map(_algorithm, message.batch_algorithms)),
        algorithms=tuple(map(_algorithm, message.algorithms)),
        solvers=tuple(map(_solver, message.solvers)),
        memory_bytes=message.memory_bytes,
        budget_bytes=message.budget_bytes,
        reserved_bytes=message.reserved_bytes,
        streams=message.streams,
        streams_busy=message.streams_busy,
        queue_depth=message.queue_depth,
    )


def server_info(message: factorization_service_pb2.GetServerInfoResponse) -> ServerInfo:
    """The server of a GetServerInfoResponse message."""
    return ServerInfo(
        version=message.version,
        commit=message.commit,
        draining=message.draining,
        devices=tuple(map(_device, message.devices)),
        cached_factors=message.cached_factors,
        max_n=message.limits.max_n,
        default_lease=_seconds(message.limits.default_lease),
        max_lease=_seconds(message.limits.max_lease),
        tenants=tuple(map(_tenant, message.tenants)),
    )


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
    return _time(message.lease_expire_time)
