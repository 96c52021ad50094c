# SPDX-License-Identifier: Apache-2.0
"""Factors and batches on the server as objects: lost ones are made again, unreferenced ones released."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from crout import _handles, _options, _payload
from crout._call import Call, Steps
from crout._options import Lease
from crout._releases import Releases
from crout.errors import HandleExpired, InvalidRequest
from crout.records import Summarized

R = TypeVar("R")
T = TypeVar("T")

_MAX_TIMES_LOST = 2  # limit of the times that one operation makes its factor again


def copy_of(matrix: Any) -> Any:
    """Copy a matrix or the members of a batch. A path stays a path."""
    if isinstance(matrix, (str, os.PathLike)):
        return os.fspath(matrix)
    if isinstance(matrix, (list, tuple)) and any(
        hasattr(member, "ndim") or isinstance(member, (str, os.PathLike)) for member in matrix
    ):
        return [copy_of(member) for member in matrix]
    return matrix.copy() if _payload.is_sparse(matrix) else _payload.as_array(matrix).copy()


@dataclass(frozen=True)
class Origin:
    """The matrix, and the options of the factorization, from which a lost factor is made again."""

    matrix: Any
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Lifetime:
    """Treatment of a factor that the server has lost, and of a factor whose object was collected."""

    refactor_if_lost: bool
    release_unreferenced: bool

    @staticmethod
    def split(options: Mapping[str, Any]) -> tuple[Lifetime, dict[str, Any]]:
        """Split the options of `lu_factor` into the lifetime and all others."""
        names = ("on_lost", "release_unreferenced")
        own = {name: options[name] for name in names if name in options}
        others = {name: value for name, value in options.items() if name not in names}
        lifetime = Lifetime(*_options.lifetime_options(**own))
        if lifetime.release_unreferenced:
            for shared in ("name", "pin", "durable", "request_id"):
                if others.get(shared):
                    raise InvalidRequest(
                        f"a factor with {shared}= may have other users: omit it, or release_unreferenced=True"
                    )
        return lifetime, others


class Cached(Summarized, abc.ABC, Generic[R]):
    """A factor or batch on the server.

    Attributes
    ----------
    record : FactorRecord or BatchRecord
        Description from the call that made this version.
    """

    _origin: Origin | None = None  # set if a lost factor is to be made again
    _collected: Callable[[], object] | None = None  # the release after this object is collected

    # Makes the call that factors, from a matrix and options.
    _factorize: ClassVar[Callable[..., Call[Any]]]

    def _hold_again(self, lost: str) -> None:
        """Renew the lease of the new handle in place of `lost`, if that was renewed."""

    def __init__(self, client: Any, record: R, lease: Lease | None = None) -> None:
        self._client = client
        self._record = record
        self._lease = lease

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which neither renews nor releases nor makes the factor again."""
        self._share()
        transient = ("_renewal", "_origin", "_collected")
        return {name: value for name, value in self.__dict__.items() if name not in transient}

    @property
    def record(self) -> R:
        """Description from the call that made this version."""
        self._share()
        return self._record

    @property
    def handle(self) -> str:
        """The identifier on the server; any client of the tenant can use it."""
        self._share()
        return self._handle

    @property
    def _handle(self) -> str:
        return self._handle_of(self._record)

    @staticmethod
    @abc.abstractmethod
    def _handle_of(record: Any) -> str:
        """Return the handle in a record."""

    def _share(self) -> None:
        """Cancel the automatic release, because the caller gets the handle and others may use the factor."""
        if self._collected is not None:
            self._client._releases.disown(self._handle, self._collected)
            self._collected = None

    def _live(self, lifetime: Lifetime, matrix: Any, options: Mapping[str, Any]) -> None:
        """Begin the life of a new factor. `matrix` must not change if lost factors are made again."""
        if lifetime.refactor_if_lost:
            kept = {name: value for name, value in options.items() if name not in ("timeout", "progress")}
            self._origin = Origin(matrix, kept)
        if lifetime.release_unreferenced:
            releases: Releases = self._client._releases
            self._collected = releases.own(self, self._handle)

    def _surviving(self, operation: Callable[[R], Call[T] | Steps[T]]) -> Steps[T]:
        """Run an operation of the factor. If the server has lost it, make it again and repeat."""
        for _ in range(_MAX_TIMES_LOST):
            record = self._record
            try:
                return (yield from operation(record))
            except HandleExpired as error:
                if self._origin is None or error.reason == "HANDLE_RELEASED":
                    raise
                # The frames refer to the error and to this object, which should not wait for the garbage
                # collector.
                error.__traceback__ = None
            yield from self._make_again(self._handle_of(record), self._origin)
        return (yield from operation(self._record))

    def _with_handle(self, operation: Callable[[str], Call[T]]) -> Steps[T]:
        """Run an operation of the handle, like `_surviving`."""
        return self._surviving(lambda record: operation(self._handle_of(record)))

    def _set_pin(self, pinned: bool) -> Steps[None]:
        yield from self._with_handle(lambda handle: _handles.pin(handle, pinned))
        self._remember(pin=pinned)

    def _remember(self, **options: Any) -> None:
        """Make a lost factor with these options, from now on."""
        if self._origin is not None:
            self._origin = Origin(self._origin.matrix, {**self._origin.options, **options})

    def _make_again(self, lost: str, origin: Origin) -> Steps[None]:
        # With this id all threads that find the factor lost share one factorization.
        options = {**origin.options, "request_id": f"again-{lost}"}
        record = yield from type(self)._factorize(origin.matrix, **options)
        if self._handle == lost:
            self._record = record
            self._hold_again(lost)
            if self._collected is not None:
                releases: Releases = self._client._releases
                releases.disown(lost, self._collected)
                self._collected = releases.own(self, self._handle)

    def _replace_origin(self, matrix: Any, options: Mapping[str, Any]) -> None:
        """Make a lost factor from the matrix and the options of a refactorization, from now on."""
        if self._origin is None:
            return
        cache = {
            name: self._origin.options[name]
            for name in ("name", "lease", "pin", "durable")
            if name in self._origin.options
        }
        dropped = ("timeout", "progress", "values_only", "replace_if_singular")
        kept = {name: value for name, value in options.items() if name not in dropped}
        self._origin = Origin(matrix, {**cache, **kept})
