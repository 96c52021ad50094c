# SPDX-License-Identifier: Apache-2.0
"""The client of `crout.scipy`, and factors that belong to an object."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from crout import _handles, _requests
from crout._call import Call, Steps
from crout._diagnostics import warn_of_solution
from crout._options import Trans
from crout.client import Client, connect
from crout.errors import HandleExpired
from crout.records import FactorRecord
from crout.results import Solution

R = TypeVar("R")
T = TypeVar("T")

_LEASE = 900.0  # seconds that the factors of a killed program live, if the server permits it
_MAX_ATTEMPTS = 3  # limit of solves with a factor that the server loses again and again


class _Current:
    """The client of this process: the one from `use`, or one that the first call makes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.given: Client | None = None
        self.made: Client | None = None
        self.leases: weakref.WeakKeyDictionary[Client, float] = weakref.WeakKeyDictionary()


_current = _Current()


def _reset_after_fork() -> None:
    """Replace the lock, and the client that was made: gRPC's channels do not work in a forked child."""
    given = _current.given
    _current.__init__()  # type: ignore[misc]
    _current.given = given


os.register_at_fork(after_in_child=_reset_after_fork)


def use(client: Client | str | None) -> None:
    """Set the server for this module's functions.

    Parameters
    ----------
    client : Client, str or None
        A client from `crout.connect`, an address for it, or the name of a server. None: the default, which
        is ``crout.connect()``. It reads ``$CROUT_SERVER``.
    """
    if isinstance(client, str):
        client = connect(client)
    if not (client is None or isinstance(client, Client)):
        raise TypeError(f"expected a crout.Client, an address or None; got {type(client).__name__}")
    with _current.lock:
        _current.given = client


def current() -> Client:
    """Return the client of this process. The first call makes it."""
    with _current.lock:
        if _current.given is not None:
            return _current.given
        if _current.made is None or _current.made.closed:
            _current.made = connect()
        return _current.made


def _lease_of(client: Client) -> float:
    """Return the lease of factors, in seconds."""
    with _current.lock:
        lease = _current.leases.get(client)
    if lease is None:
        lease = min(_LEASE, client.server_info().max_lease)
        with _current.lock:
            _current.leases[client] = lease
    return lease


def run(operation: Call[T] | Steps[T]) -> T:
    """Run an operation with the current client."""
    return current()._run(operation)


def warn_if_inaccurate(solution: Solution) -> None:
    """Warn if the backward error is too large. SciPy's functions have no warning for this."""
    if "not_accurate" in solution.warnings:
        warn_of_solution(dataclasses.replace(solution, warnings=("not_accurate",), forward_error_bound=None))


def _forgotten(lease: float) -> Call[Any]:
    raise HandleExpired("the server lost the factor, and the client does not have its matrix any more")


class Held(Generic[R]):
    """A factor or batch that belongs to this object. Thread-safe.

    The client renews its lease and releases it after this object is collected. If the server lost the
    factor, the next use makes it again.

    Parameters
    ----------
    factorize : callable
        Makes the call that factors, with a lease in seconds.
    handle_of : callable
        Returns the handle of a record.
    """

    def __init__(self, factorize: Callable[[float], Call[R]], handle_of: Callable[[R], str]) -> None:
        self._client = current()
        self._factorize = factorize
        self._handle_of = handle_of
        self._lock = threading.Lock()
        self._release: Callable[[], object] = lambda: None
        self._record = self._factor()

    def _factor(self) -> R:
        lease = _lease_of(self._client)
        record = self._client._run(self._factorize(lease))
        handle = self._handle_of(record)
        self._release = self._client._releases.own(self, handle)
        self._client._renewals.hold(handle, lease)
        return record

    @property
    def record(self) -> R:
        """Description of the factor that the server has now."""
        return self._record

    def run(self, operation: Callable[[R], Call[T] | Steps[T]]) -> T:
        """Run an operation of the factor."""
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            record = self._record
            try:
                return self._client._run(operation(record))
            except HandleExpired:
                if attempt == _MAX_ATTEMPTS:
                    raise
            with self._lock:
                if self._record is record:
                    self._release()
                    self._record = self._factor()
        raise AssertionError("unreachable")

    def release(self) -> None:
        """Release the factor. It must not be used any more."""
        self._release()


class HeldFactor(Held[FactorRecord]):
    """The factor of one matrix.

    Parameters
    ----------
    A : array or sparse matrix
        The matrix. It must not change while this object exists.
    **options
        Options of `Client.lu_factor`.
    """

    def __init__(self, A: Any, **options: Any) -> None:
        super().__init__(
            lambda lease: _requests.factorize(A, lease=lease, **options), lambda record: record.handle
        )

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return self.record.n

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of L and U."""
        return self.record.dtype

    def solve(self, b: Any, trans: Trans = 0, **options: Any) -> Any:
        """Solve with the factor, and warn if x is not accurate."""
        solution = self.run(lambda record: _requests.solve(record, b, quiet=True, trans=trans, **options))
        warn_if_inaccurate(solution)
        return solution.x

    def forget(self) -> None:
        """Forget the matrix. `HandleExpired` is raised if the server loses the factor."""
        self._factorize = _forgotten

    def download(self) -> Any:
        """Return `PackedFactors` of a dense factor, `SparseFactors` of a sparse one."""

        def call(record: FactorRecord) -> Call[Any]:
            if record.sparse is None:
                return _handles.get_factors(record)
            return _handles.get_sparse_factors(record)

        return self.run(call)
