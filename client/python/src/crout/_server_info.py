"""What the server says of itself, its devices, and of what it would do."""

from __future__ import annotations

from dataclasses import dataclass

from crout._words import algorithm, seconds, solver, word
from crout.v1 import factor_pb2, factorization_service_pb2


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
    rough : bool
        A sparse matrix of which the number of entries alone is known: what they fill in may be ten
        times as much, or as little, and with it bytes and seconds.
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
    sparse_algorithms: tuple[str, ...] = ()


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
    max_sparse_n : int
        Largest order of one that stays sparse, on a device with sparse_algorithms; 0 from older
        servers.
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
