# SPDX-License-Identifier: Apache-2.0
"""Conversion of the server's messages to results."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from crout._payload import numpy_dtype
from crout.errors import ProtocolError
from crout.records import (
    DeviceStatus,
    FactorPage,
    FactorRecord,
    ServerInfo,
    SlogDet,
    SparseInfo,
    StoreStatus,
    TenantLoad,
    TenantQuota,
)
from crout.results import (
    Complement,
    EchelonForm,
    Estimate,
    Iterations,
    Progress,
    SeriesStep,
    Solution,
)
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]
T = TypeVar("T")
M = TypeVar("M", bound=Message)
R = TypeVar("R")


class _EnumType(Protocol):
    def Name(self, number: Any) -> str: ...  # noqa: N802


def word(enum: _EnumType, prefix: str, number: int) -> str:
    """Convert ALGORITHM_GETRF to "getrf". An unknown value of a newer server becomes its number."""
    try:
        return enum.Name(number).removeprefix(prefix).lower()
    except ValueError:
        return str(number)


def algorithm(number: int) -> str:
    """Return the name of an algorithm, such as "getrf"."""
    return word(factor_pb2.Algorithm, "ALGORITHM_", number)


def solver(number: int) -> str:
    """Return the name of a solver, such as "getrs"."""
    return word(factor_pb2.Solver, "SOLVER_", number)


def time_of(message: Any) -> datetime.datetime:
    """Convert a Timestamp to a datetime, which has a resolution of microseconds."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def seconds(message: Any) -> float:
    """Convert a Duration to seconds."""
    return float(message.seconds + message.nanos * 1e-9)


def timings(message: factor_pb2.Timings) -> dict[str, float]:
    """Return the seconds of each phase, without phases that did not run."""
    return {field.name.removesuffix("_seconds"): value for field, value in message.ListFields()}


def warnings(message: Any) -> tuple[str, ...]:
    """Return the names of a message's warnings."""
    return tuple(word(factor_pb2.Warning, "WARNING_", number) for number in message.warnings)


def optional(message: Any, name: str) -> Any:
    """Return a field; None if it is not set."""
    return getattr(message, name) if message.HasField(name) else None


def parse(kind: type[M], message: bytes) -> M:
    """Parse a message of the contract. Raises ProtocolError."""
    try:
        return kind.FromString(message)
    except DecodeError:
        raise ProtocolError("the server sent a malformed message") from None


def convert(make: Callable[[Any], T], message: Any) -> T:
    """Return ``make(message)``. Raises ProtocolError if it fails, such as for an impossible date."""
    try:
        return make(message)
    except (OverflowError, ValueError) as error:
        raise ProtocolError(f"the server sent an impossible value: {error}") from None


def _result(kind: type[R], message: Any, **converted: Any) -> R:
    """Make a result from `converted`; all other fields are copied from the message."""
    names = [field.name for field in dataclasses.fields(kind) if field.name not in converted]  # type: ignore[arg-type]
    return kind(**{name: getattr(message, name) for name in names}, **converted)


def _precision(message: Any) -> str | None:
    if not message.precision:
        return None
    return word(factor_pb2.FactorPrecision, "FACTOR_PRECISION_", message.precision)


def factor_record(message: factor_pb2.Factor) -> FactorRecord:
    """Convert a Factor message."""
    determinant = None
    if message.HasField("determinant"):
        sign: complex = message.determinant.sign
        if message.matrix_dtype in (matrix_pb2.DTYPE_COMPLEX64, matrix_pb2.DTYPE_COMPLEX128):
            sign = complex(message.determinant.sign, message.determinant.sign_imaginary)
        determinant = SlogDet(sign, message.determinant.log_abs)
    reason = optional(message, "singular_reason")
    return _result(
        FactorRecord,
        message,
        algorithm=algorithm(message.algorithm),
        dtype=numpy_dtype(message.factor_dtype),
        matrix_dtype=numpy_dtype(message.matrix_dtype),
        unit_diagonal=word(factor_pb2.UnitDiagonal, "UNIT_DIAGONAL_", message.unit_diagonal),
        quality=optional(message, "quality"),
        warnings=warnings(message),
        rcond=optional(message, "rcond"),
        rcond_scaled=optional(message, "rcond_scaled"),
        determinant=determinant,
        nnz=optional(message, "nnz"),
        tier=word(factor_pb2.Tier, "TIER_", message.tier),
        create_time=time_of(message.create_time),
        lease_expire_time=time_of(message.lease_expire_time),
        timings=timings(message.timings),
        singular_reason=(
            None if reason is None else word(factor_pb2.SingularReason, "SINGULAR_REASON_", reason)
        ),
        empty_index=optional(message, "empty_index"),
        precision=_precision(message),
        precision_fallback=(
            word(factor_pb2.PrecisionFallback, "PRECISION_FALLBACK_", message.precision_fallback)
            if message.precision_fallback
            else None
        ),
        sparse=sparse_info(message.sparse) if message.HasField("sparse") else None,
    )


def sparse_info(message: factor_pb2.SparseInfo) -> SparseInfo:
    """Convert a SparseInfo message."""
    return _result(SparseInfo, message, negative_pivots=optional(message, "negative_pivots"))


def factor_page(message: service.ListFactorsResponse) -> FactorPage:
    """Convert a ListFactorsResponse message."""
    return FactorPage(tuple(map(factor_record, message.factors)), message.next_page_token)


def lease_end(message: service.RenewLeaseResponse) -> datetime.datetime:
    """Return the end of the lease in a RenewLeaseResponse message."""
    return time_of(message.lease_expire_time)


def iterations(pages: list[service.IterationPage]) -> Iterations:
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
        raise ProtocolError("the server sent a number of counts that differs from its header")
    return Iterations(
        version=pages[0].version,
        sweeps=np.array(sweeps, int).reshape(sections, sections, order="F"),
        pivots=np.array(pivots, int),
        bad_elements=np.array(bad_elements, int) if len(bad_elements) == sections else None,
    )


def solution(x: Array, message: service.SolveResult, factor: FactorRecord | None) -> Solution:
    """Convert a SolveResult message."""
    return _result(
        Solution,
        message,
        x=x,
        backward_error=optional(message, "backward_error"),
        componentwise_error=optional(message, "componentwise_error"),
        forward_error_bound=optional(message, "forward_error_bound"),
        solver=solver(message.solver),
        fallback=word(factor_pb2.SolverFallback, "SOLVER_FALLBACK_", message.fallback),
        timings=timings(message.timings),
        factor=factor,
        corrections=optional(message, "corrections"),
        warnings=warnings(message),
    )


def series_step(x: Array | None, message: service.SeriesResult, factor: FactorRecord | None) -> SeriesStep:
    """Convert a SeriesResult message."""
    return _result(
        SeriesStep,
        message,
        x=x,
        backward_error=message.backward_error if message.solved else None,
        strategy=word(service.SeriesStrategy, "SERIES_STRATEGY_", message.strategy),
        warnings=warnings(message),
        solver=solver(message.solver),
        factor=factor,
        timings=timings(message.timings),
    )


def complement(s: Array, message: service.ComplementResult, record: FactorRecord) -> Complement:
    """Convert a ComplementResult message."""
    return _result(
        Complement,
        message,
        S=s,
        backward_error=optional(message, "backward_error"),
        growth=optional(message, "growth"),
        warnings=warnings(message),
        timings=timings(message.timings),
        record=record,
    )


def echelon_form(r: Array, message: service.EchelonFormResult) -> EchelonForm:
    """Convert an EchelonFormResult message."""
    return _result(
        EchelonForm,
        message,
        R=r,
        pivots=np.array(message.pivot_columns, np.int64),
        least_pivot=optional(message, "least_pivot"),
        largest_rejected=optional(message, "largest_rejected"),
        growth=message.pivot_growth,
        warnings=warnings(message),
        timings=timings(message.timings),
    )


def estimate(message: service.EstimateFactorizeResponse) -> Estimate:
    """Convert an EstimateFactorizeResponse message."""
    return _result(Estimate, message, algorithm=algorithm(message.algorithm), precision=_precision(message))


def server_info(message: service.GetServerInfoResponse) -> ServerInfo:
    """Convert a GetServerInfoResponse message."""
    return _result(
        ServerInfo,
        message,
        devices=tuple(map(_device, message.devices)),
        max_n=message.limits.max_n,
        max_sparse_n=message.limits.max_sparse_n,
        default_lease=seconds(message.limits.default_lease),
        max_lease=seconds(message.limits.max_lease),
        max_pinned_bytes=message.limits.max_pinned_bytes,
        store=_result(StoreStatus, message.store) if message.HasField("store") else None,
        tenants=tuple(map(_tenant, message.tenants)),
        own=_tenant(message.own) if message.HasField("own") else None,
    )


def _tenant(message: service.TenantLoad) -> TenantLoad:
    quota = None
    if message.HasField("quota"):
        names = [field.name for field in dataclasses.fields(TenantQuota) if field.name != "soft"]
        limits = {name: optional(message.quota, name) for name in names}
        quota = TenantQuota(soft=message.quota.soft, **limits)
    return _result(TenantLoad, message, quota=quota)


def _device(message: service.DeviceStatus) -> DeviceStatus:
    return _result(
        DeviceStatus,
        message,
        batch_algorithms=tuple(map(algorithm, message.batch_algorithms)),
        algorithms=tuple(map(algorithm, message.algorithms)),
        sparse_algorithms=tuple(map(algorithm, message.sparse_algorithms)),
        solvers=tuple(map(solver, message.solvers)),
    )


def progress_of(response: Any) -> service.Progress | None:
    """Return the Progress message of a response; None if it has none."""
    return response.progress if response.HasField("progress") else None


def progress(message: service.Progress, last: Progress) -> Progress:
    """Convert a Progress message. The bytes are those of the last report."""
    phase = word(service.Phase, "PHASE_", message.phase)
    return _result(Progress, message, bytes_sent=last.bytes_sent, bytes_total=last.bytes_total, phase=phase)
