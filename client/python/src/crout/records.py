# SPDX-License-Identifier: Apache-2.0
"""Descriptions of factors, batches and servers, and the base class of results."""

from __future__ import annotations

import datetime
import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Summarized:
    """Base class of results. Shows a result on one line, and as a table in notebooks."""

    _shown: ClassVar[str]  # names of the attributes to show

    def _summary(self) -> dict[str, Any]:
        """Return the attributes to show, by name. None and empty values are not shown."""
        return {name: getattr(self, name) for name in self._shown.split()}

    def _texts(self) -> dict[str, str]:
        return {name: text for name, value in self._summary().items() if (text := _text(value))}

    def __repr__(self) -> str:
        shown = "".join(f" {name}={text}" for name, text in self._texts().items())
        return f"<{type(self).__name__}{shown}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in self._texts().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def _text(value: Any) -> str:
    """Format a value on one line: an array by type and shape, a list by length."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return f"{len(value)} arrays"
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{value.shape}"
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)


class SlogDet(NamedTuple):
    """A determinant, sign * exp(logabsdet), like the result of `numpy.linalg.slogdet`."""

    sign: complex  # a float if A is real
    logabsdet: float


@dataclass(frozen=True)
class SparseInfo:
    """Results of a sparse factorization.

    Attributes
    ----------
    lu_entries : int
        Stored entries of L and U, without the unit diagonal.
    flops : float
        Arithmetic operations of the factorization; a complex operation counts as one.
    perturbed_pivots : int
        Pivots that were too small and were perturbed (increased). Solves are then corrected.
    negative_pivots : int or None
        Number of negative eigenvalues. Set for a real symmetric matrix without row interchanges.
    fronts, levels, largest_front : int
        Fronts of the elimination tree, its levels, and the order of its largest front.
    ordering : str
        Fill-reducing ordering: "amd", "metis".
    analysis_reused : bool
        Whether the analysis of another factor with this pattern was reused.
    postponements : int
        Number of repeated factorizations in which small pivots were delayed.
    pattern_digest : str
        Digest of the positions of A's entries, stored zeros included.
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
    pattern_digest: str = ""


@dataclass(frozen=True, repr=False)
class FactorRecord(Summarized):
    """Description of a factor, P A = L U. factor.proto documents every field.

    Attributes
    ----------
    handle, name : str
        The server's identifier, and the name that the caller gave.
    version : int
        1 for a new factor; each refactor adds 1.
    n : int
        Order of the matrix.
    algorithm, device : str
        Method that ran, and its device.
    dtype, matrix_dtype : numpy.dtype
        Type of L and U; type of the matrix as it was sent.
    unit_diagonal : str
        Triangular factor with the unit diagonal, which is not stored: "l" or "u".
    info : int
        LAPACK's info: 0, or the 1-based index of the first pivot that is exactly zero.
    pivot_growth : float
        Largest |entry| of U over largest |entry| of A.
    quality : float or None
        Estimate of ||P A - L U|| / (n ||A|| eps); near 1 or below is as good as rounding allows.
    warnings : tuple of str
        Reasons to check the factor: "poor_factor", "nearly_singular", "perturbed_rcond".
    norm_one, norm_inf : float
        1-norm and infinity-norm of A as it was sent.
    rcond, rcond_scaled : float or None
        Reciprocal condition estimates, on request: of A, and of the scaled matrix if A was scaled.
    determinant : SlogDet or None
        On request. None for a sparse factor with perturbed pivots and for a low-precision factor
        (`precision`).
    row_scaled, col_scaled, has_matrix : bool
        Whether rows and columns of A were scaled; whether A is kept, for verification and refinement.
    nnz : int or None
        Entries of a sparse upload.
    tier : str
        Memory that holds the factor: "device", "host" or "store" (a file).
    bytes : int
        Bytes charged to the server's cache.
    create_time, lease_expire_time : datetime.datetime
        Creation of version 1 and end of the lease, on the server's clock.
    timings : Mapping of str to float
        Seconds in each phase of the call that made this version.
    singular_reason : str or None
        "zero_pivot", "empty_row", "empty_column" or "structure" (structurally singular), if info is not 0.
    empty_index : int or None
        1-based index of the empty row or column, or of a row without a matching column.
    precision : str or None
        "single" or "tf32" if the factor has a lower precision than A; solves are then corrected.
    precision_fallback : str or None
        "unusable", "condition" or "stagnation": reason why the factor has A's type although a lower
        precision was requested.
    sparse : SparseInfo or None
        Set for a sparse factor.
    pinned : bool
        Whether the factor is protected from eviction.
    durable : bool
        Whether the factor is on the server's disk.
    """

    _shown = "handle name version n dtype algorithm device precision info quality warnings"

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
    pinned: bool = False
    durable: bool = False


@dataclass(frozen=True)
class FactorPage:
    """A page of factors, and the token of the next page."""

    records: tuple[FactorRecord, ...]
    next_page_token: str


@dataclass(frozen=True, eq=False, repr=False)
class BatchRecord(Summarized):
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

    def _summary(self) -> dict[str, Any]:
        return {
            "handle": self.factor.handle,
            "name": self.factor.name,
            "version": self.factor.version,
            "members": len(self.shapes),
            "dtype": self.factor.dtype,
            "device": self.factor.device,
            "singular": int(np.count_nonzero(self.info)),
            "poor": self.poor,
        }


@dataclass(frozen=True, repr=False)
class DeviceStatus(Summarized):
    """A device of the server; factorization_service.proto documents every field."""

    _shown = "name description healthy memory_bytes reserved_bytes streams streams_busy queue_depth"

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
    sparse_algorithms: tuple[str, ...] = ()


@dataclass(frozen=True)
class TenantQuota:
    """Limits of a tenant; factorization_service.proto documents every field. None: no limit."""

    device_bytes: int | None = None
    host_bytes: int | None = None
    soft: bool = False
    pinned_bytes: int | None = None
    factors: int | None = None
    bytes_in_flight: int | None = None
    queued_jobs: int | None = None
    running_jobs: int | None = None
    max_n: int | None = None
    device_seconds_per_minute: float | None = None
    store_bytes: int | None = None


@dataclass(frozen=True)
class TenantLoad:
    """Usage of a tenant; factorization_service.proto documents every field."""

    tenant: str
    cached_factors: int
    device_bytes: int
    host_bytes: int
    calls: int
    pinned_bytes: int = 0
    store_bytes: int = 0
    bytes_in_flight: int = 0
    queued_jobs: int = 0
    running_jobs: int = 0
    device_seconds: float = 0.0
    quota: TenantQuota | None = None


@dataclass(frozen=True)
class StoreStatus:
    """The server's directory of factors; factorization_service.proto documents every field."""

    limit_bytes: int
    used_bytes: int
    degraded: bool


@dataclass(frozen=True, repr=False)
class ServerInfo(Summarized):
    """A server, its devices and its limits.

    Attributes
    ----------
    version, commit : str
        Release and commit of the server's source.
    draining : bool
        Whether the server is stopping.
    devices : tuple of DeviceStatus
        All devices, including fenced ones, which run no more jobs.
    cached_factors : int
        Number of cached factors of all tenants.
    max_n : int
        Largest dimension of a matrix.
    max_sparse_n : int
        Largest order of a matrix that is factored as sparse, on a device with sparse_algorithms; 0 from older
        servers.
    max_pinned_bytes : int
        Largest number of bytes of the tenant's pinned factors; 0 from older servers.
    default_lease, max_lease : float
        Lease of a factor whose request names none, and longest lease, in seconds.
    tenants : tuple of TenantLoad
        Tenants with factors or calls in progress, ordered by bytes. Only the caller's own tenant if callers
        are authenticated and the caller lacks the role ``admin``. Empty from older servers.
    store : StoreStatus or None
        The directory for durable factors and for factors that leave memory; None if the server has none.
    own : TenantLoad or None
        Usage and quotas of the caller's tenant; None from older servers.
    """

    _shown = "version commit draining devices cached_factors max_n max_sparse_n"

    version: str
    commit: str
    draining: bool
    devices: tuple[DeviceStatus, ...]
    cached_factors: int
    max_n: int
    default_lease: float
    max_lease: float
    tenants: tuple[TenantLoad, ...] = ()
    max_sparse_n: int = 0
    max_pinned_bytes: int = 0
    store: StoreStatus | None = None
    own: TenantLoad | None = None

    def _summary(self) -> dict[str, Any]:
        return {**super()._summary(), "devices": tuple(device.name for device in self.devices)}
