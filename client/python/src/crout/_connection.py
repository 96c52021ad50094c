# SPDX-License-Identifier: Apache-2.0
"""A connection to a server, and the renewal of leases."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from crout import _requests
from crout._call import Call, RetryPolicy
from crout._settings import Settings, check_address, check_tenant, make_tls, make_token
from crout._transport import Server, Transport
from crout.errors import CroutError, HandleExpired, InvalidRequest
from crout.results import ServerInfo

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

_MAX_CLOSE_SECONDS = 5.0  # limit of the time that close() waits for a running renewal


def server_of(
    timeout: float | None,
    retry: RetryPolicy | None,
    address: str | None,
    tenant: str | None,
    tls: bool | None,
    ca: str | os.PathLike[str] | None,
    cert: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    server_name: str | None,
    token: str | None,
    token_file: str | os.PathLike[str] | None,
) -> Server:
    """Check the arguments of `connect`, completed from the environment and the file of servers."""
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
    if timeout == math.inf:
        timeout = None
    if timeout is not None and not timeout > 0:
        raise InvalidRequest(f"the timeout is {timeout} s: give a positive one, or None for none")
    return Server(where, found.tenant, timeout, retry or RetryPolicy(), credentials, shown)


class Connection:
    """A connection to a server. Renews the leases of factors in ``with`` blocks."""

    def __init__(self, server: Server) -> None:
        self.closed = False
        self._server = server
        self._transport = Transport(server)
        self._renewals = Renewals(lambda handle, lease: self._run(_requests.renew(handle, lease)))

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

        Factors stay on the server until their leases end.
        """
        self.closed = True
        self._renewals.close()
        self._transport.close()  # also ends a running renewal
        self._renewals.join(_MAX_CLOSE_SECONDS)

    def _run(self, call: Call[T]) -> T:
        return self._transport.run(call)

    def server_info(self) -> ServerInfo:
        """Fetch the server's version, devices and limits."""
        return self._run(_requests.server_info())


def pause(lease: float, failed: bool = False) -> float:
    """Return the seconds until the next renewal of a lease of `lease` seconds, or after a failed one.

    Leaves time for several attempts before the lease ends.
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

    A forked child renews none of its parent's leases.
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
        """Wait until a lease is due, and return its handle and seconds. None: the thread must end."""
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
