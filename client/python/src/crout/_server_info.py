# SPDX-License-Identifier: Apache-2.0
"""Description of a server and its devices, and estimates."""

from __future__ import annotations

from dataclasses import dataclass

from crout._words import algorithm, seconds, solver, word
from crout.v1 import factor_pb2, factorization_service_pb2


@dataclass(frozen=True)
class Estimate:
    """Predicted cost of a factorization.

    Attributes
    ----------
    algorithm, device : str
        Method that would run, and its device.
    peak_bytes, cached_bytes : int
        Bytes reserved while it runs; bytes charged to the cache afterwards.
    predicted_seconds, predicted_queue_seconds : float
        Seconds of the factorization alone; seconds of the jobs ahead of it.
    fits : bool
        Whether the bytes could be reserved if everything idle were evicted.
    precision : str or None
        "single" or "tf32" if a precision was requested and a lower one would be used.
    rough : bool
        A sparse matrix of which only the number of entries is known. Fill-in, and with it bytes and
        seconds, may be ten times larger or smaller.
    """

    algorithm: str
    device: str
    peak_bytes: int
    cached_bytes: int
    predicted_seconds: float
    predicted_queue_seconds: float
    fits: bool
    precision: str | None = None
    rough: bool = False


def estimate(message: factorization_service_pb2.EstimateFactorizeResponse) -> Estimate:
    """The estimate of an EstimateFactorizeResponse message."""
    return Estimate(
        algorithm=algorithm(message.algorithm),
        device=message.device,
        peak_bytes=message.peak_bytes,
        cached_bytes=message.cached_bytes,
        predicted_seconds=message.predicted_seconds,
        predicted_queue_seconds=message.predicted_queue_seconds,
        fits=message.fits,
        precision=(
            word(factor_pb2.FactorPrecision, "FACTOR_PRECISION_", message.precision)
            if message.precision
            else None
        ),
        rough=message.rough,
    )


@dataclass(frozen=True)
class DeviceStatus:
    """A device of the server; factorization_service.proto documents every field."""

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
class TenantLoad:
    """Usage of a tenant; factorization_service.proto documents every field."""

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
        Whether the server is stopping.
    devices : tuple of DeviceStatus
        All devices, fenced ones included.
    cached_factors : int
        Number of cached factors of all tenants.
    max_n : int
        Largest dimension of a matrix.
    max_sparse_n : int
        Largest order of a matrix that is factored as sparse, on a device with sparse_algorithms; 0 from older
        servers.
    default_lease, max_lease : float
        Seconds.
    tenants : tuple of TenantLoad
        Ordered by bytes. Only the caller's own tenant if callers are authenticated and this one is no
        admin. Empty from older servers.
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
    max_sparse_n: int = 0


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
        batch_algorithms=tuple(map(algorithm, message.batch_algorithms)),
        algorithms=tuple(map(algorithm, message.algorithms)),
        sparse_algorithms=tuple(map(algorithm, message.sparse_algorithms)),
        solvers=tuple(map(solver, message.solvers)),
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
        max_sparse_n=message.limits.max_sparse_n,
        default_lease=seconds(message.limits.default_lease),
        max_lease=seconds(message.limits.max_lease),
        tenants=tuple(map(_tenant, message.tenants)),
    )
