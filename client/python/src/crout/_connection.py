# SPDX-License-Identifier: Apache-2.0
"""A connection to a server, the calls without a matrix, and the renewal of leases."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import inspect
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

import numpy.typing as npt

from crout import _handles, _options
from crout._call import Call, RetryPolicy, Steps
from crout._device import DeviceArray
from crout._options import FactorizeOptions, Lease
from crout._releases import Releases
from crout._settings import (
    PRIORITIES,
    Priority,
    Settings,
    check_address,
    check_tenant,
    make_tls,
    make_token,
)
from crout._shared import BatchView, ClientBase, FactorView
from crout._transport import Server, Transport
from crout.errors import CroutError, HandleExpired, InvalidRequest
from crout.records import FactorRecord, ServerInfo
from crout.results import Estimate

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Array = npt.NDArray[Any]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_MAX_CLOSE_SECONDS = 5.0  # limit of the time that close() waits for a running renewal


def server_of(
    address: str | None = None,
    tenant: str | None = None,
    timeout: float | None = None,
    *,
    priority: Priority = "normal",
    retry: RetryPolicy | None = None,
    tls: bool | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    server_name: str | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
) -> Server:
    """Check the arguments of `connect`. The environment and the file of servers complete them."""
    ca, cert, key, token_file = (
        None if path is None else os.fspath(path) for path in (ca, cert, key, token_file)
    )
    found = Settings(address, tenant, tls, ca, cert, key, server_name, token, token_file).complete()
    where, by_tls = found.address or "", bool(found.tls)
    shown = make_token(found.token, found.token_file, where, by_tls)
    credentials = make_tls(by_tls, found.ca, found.cert, found.key, found.server_name)
    check_address(where)
    if found.tenant is not None:
        check_tenant(found.tenant)
    if priority not in PRIORITIES:
        raise InvalidRequest(f"the priority is {priority!r}: give one of {', '.join(PRIORITIES)}")
    if timeout == math.inf:
        timeout = None
    if timeout is not None and not timeout > 0:
        raise InvalidRequest(
            f"the timeout is {timeout} s: give a positive number of seconds, or None for no limit"
        )
    return Server(where, found.tenant, timeout, retry or RetryPolicy(), credentials, shown, priority)


def takes_all(source: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Decorate a function that passes all its arguments to `source`: show the parameters of `source`.

    A TypeError for other arguments names the function.
    """

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        returned = inspect.signature(function).return_annotation
        signature = inspect.signature(source).replace(return_annotation=returned)

        @functools.wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            try:
                signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **keywords)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return decorate


class Connection(ClientBase):
    """A connection to a server, with the calls that send no matrix.

    It renews the leases of factors in ``with`` blocks.
    """

    _releases: Releases

    def __init__(self, server: Server) -> None:
        self.closed = False
        self._server = server
        self._transport = Transport(server)
        self._renewals = Renewals(lambda handle, lease: self._run(_handles.renew(handle, lease)))
        self._releases = Releases(self._release_within)

    def __reduce__(self) -> tuple[Any, ...]:
        return connection_of, (type(self), self._server)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; running and later calls raise `Cancelled`.

        Factors stay on the server until their leases end, except those that objects of `crout.scipy` own and
        those with ``release_unreferenced=True``.
        """
        self._releases.close()
        self.closed = True
        self._renewals.close()
        self._transport.close()  # also ends a running renewal
        self._renewals.join(_MAX_CLOSE_SECONDS)

    def _run(self, operation: Call[T] | Steps[T]) -> T:
        """Run the calls of an operation in turn, and return its result."""
        steps = iter(operation)
        try:
            call = next(steps)
            while True:
                try:
                    result = self._transport.run(call)
                except BaseException as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _release_within(self, handle: str, seconds: float) -> None:
        self._renewals.drop(handle)
        self._run(dataclasses.replace(_handles.release(handle), timeout=seconds))

    @overload
    def empty(
        self,
        shape: Any,
        dtype: npt.DTypeLike = float,
        order: Literal["C", "F"] = "C",
        device: Literal["host"] = "host",
    ) -> Array: ...
    @overload
    def empty(
        self, shape: Any, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C", *, device: str
    ) -> DeviceArray: ...

    def empty(
        self,
        shape: Any,
        dtype: npt.DTypeLike = float,
        order: Literal["C", "F"] = "C",
        device: str = "host",
    ) -> Any:
        """Make an array without initial values, like `numpy.empty`, in memory shared with the server.

        The client then sends the array without a copy. The server must run on this machine, listen on a Unix
        socket, and have memory for clients (``--max-shared-memory``). Otherwise, and below 256 KiB, this is
        `numpy.empty`. Do not change the array while a call sends it.

        Parameters
        ----------
        shape : int or sequence of int
        dtype : data-type, optional
        order : {"C", "F"}, optional
            Layout: by rows or by columns.
        device : str, optional
            "host", or "cuda:0", ... for memory of a GPU, with the number that the GPU has in this process.
            The server must use this GPU (``--max-shared-device-memory``); otherwise the client copies the
            array through the host when it sends it.

        Returns
        -------
        ndarray, or DeviceArray in memory of a GPU
            The server returns the memory when the array no longer exists.

        Raises
        ------
        CroutError
            This process has no CUDA driver, or the GPU has too little memory.
        """
        return self._transport.memory.empty(shape, dtype, order, device)

    def describe(self, f: FactorView | BatchView | str) -> FactorRecord:
        """Fetch the current record of a factor, a batch or a handle."""
        return self._run(_handles.describe(self._handle_of(f)))

    def renew(self, f: FactorView | BatchView | str, lease: Lease | None = None) -> datetime.datetime:
        """Set the length of a lease, counted from now. Returns its end on the server's clock.

        The default of `lease` is the server's.
        """
        return self._run(_handles.renew(self._handle_of(f), lease))

    def release(self, f: FactorView | BatchView | str) -> None:
        """Release a factor or batch. Raises `HandleExpired` if the server does not have it."""
        return self._run(_handles.release(self._handle_of(f)))

    @_options.takes(_options.factorize_options)
    def estimate(
        self,
        n: int,
        matrix_dtype: npt.DTypeLike = float,
        *,
        nnz: int | None = None,
        **options: Unpack[FactorizeOptions],
    ) -> Estimate:
        """Estimate the bytes and seconds of `lu_factor` for an n x n matrix of this type.

        `nnz` is the number of entries of a sparse matrix; None for a dense matrix. The estimate for a
        sparse matrix is often rough; ``rough`` is then true.
        """
        return self._run(_handles.estimate(n, matrix_dtype, nnz, **options))

    def server_info(self) -> ServerInfo:
        """Fetch the server's version, devices and limits."""
        return self._run(_handles.server_info())


_unpickled: weakref.WeakValueDictionary[Server, Connection] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def connection_of(kind: type[Connection], server: Server) -> Connection:
    """Return this process's connection for all connections to `server` that it unpickles."""
    with _unpickled_lock:
        connection = _unpickled.get(server)
        if connection is None or connection.closed:
            connection = _unpickled[server] = kind(server)
        return connection


def pause(lease: float, failed: bool = False) -> float:
    """Return the seconds until the next renewal of a lease of `lease` seconds.

    Several attempts fit before the lease ends. `failed`: whether the last renewal failed.
    """
    return lease / (12 if failed else 3)


_of_this_process: weakref.WeakSet[Renewals] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Replace all locks in a forked child: threads of the parent may have held them."""
    for renewals in _of_this_process:
        renewals._reset()


os.register_at_fork(after_in_child=_reset_after_fork)


class Renewals:
    """Renews leases on a thread, which runs while there are leases. Thread-safe.

    A forked child does not renew its parent's leases.
    """

    def __init__(self, renew: Callable[[str, float], object]) -> None:
        self._renew = renew
        self._reset()
        _of_this_process.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[str, tuple[float, float]] = {}  # handle: lease in seconds, time of its renewal
        self._thread: threading.Thread | None = None

    def hold(self, handle: str, lease: float) -> None:
        """Renew the lease of `lease` seconds from now on, until `drop`."""
        with self._changed:
            self._held[handle] = (lease, time.monotonic() + pause(lease))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="crout-renewals", daemon=True)
                self._thread.start()
            self._changed.notify()

    def holds(self, handle: str) -> bool:
        """Whether the lease is renewed."""
        with self._changed:
            return handle in self._held

    def drop(self, handle: str) -> None:
        """Stop renewing a lease. Does not wait for a running renewal."""
        with self._changed:
            self._held.pop(handle, None)
            self._changed.notify()

    def close(self) -> None:
        """Stop all renewals. Does not wait for a running renewal."""
        with self._changed:
            self._held.clear()
            self._changed.notify()

    def join(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the thread, after `close`."""
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _work(self) -> None:
        while (due := self._next_due()) is not None:
            handle, lease = due
            failed = False
            try:
                self._renew(handle, lease)
            except HandleExpired:
                self.drop(handle)  # the next use of the factor reports the error
            except CroutError:
                failed = True
            with self._changed:
                if handle in self._held:
                    self._held[handle] = (lease, time.monotonic() + pause(lease, failed))

    def _next_due(self) -> tuple[str, float] | None:
        """Wait until a lease is due, and return its handle and seconds; None if no leases are left."""
        with self._changed:
            while self._held:
                handle = min(self._held, key=lambda held: self._held[held][1])
                lease, due = self._held[handle]
                wait = due - time.monotonic()
                if wait <= 0:
                    return handle, lease
                self._changed.wait(wait)
            self._thread = None
            return None
