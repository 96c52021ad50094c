# SPDX-License-Identifier: Apache-2.0
"""A connection to a server, and calls for all kinds of factors: the base of `crout.Client`."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from crout import _requests
from crout._call import Call, RetryPolicy
from crout._renewal import Renewals
from crout._settings import Settings, Tls, Token, check_address, check_tenant, make_tls, make_token
from crout._transport import Server, Transport
from crout.errors import CroutError, InvalidRequest
from crout.factor import Factor, Held, handle_of
from crout.results import FactorRecord, ServerInfo

if TYPE_CHECKING:
    from typing_extensions import Self

    from crout._options import Lease

T = TypeVar("T")

_MAX_CLOSE_SECONDS = 5.0  # seconds that closing waits for a running renewal


def _path_text(value: str | os.PathLike[str] | None) -> str | None:
    """The path as a string."""
    return None if value is None else os.fspath(value)


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
    """The arguments of `connect`, completed from the environment and the file of servers, and checked."""
    ca, cert, key, token_file = map(_path_text, (ca, cert, key, token_file))
    found = Settings(address, tenant, tls, ca, cert, key, server_name, token, token_file).complete()
    where, by_tls = found.address or "", bool(found.tls)
    shown = make_token(found.token, found.token_file, where, by_tls)
    made = make_tls(by_tls, found.ca, found.cert, found.key, found.server_name)
    return make_server(where, found.tenant, timeout, retry, made, shown)


def make_server(
    address: str,
    tenant: str | None,
    timeout: float | None,
    retry: RetryPolicy | None,
    tls: Tls | None = None,
    token: Token | None = None,
) -> Server:
    """The arguments of `connect`, checked."""
    check_address(address)
    if tenant is not None:
        check_tenant(tenant)
    if timeout == math.inf:
        timeout = None
    if timeout is not None and not timeout > 0:
        raise InvalidRequest(f"the timeout is {timeout} s: give a positive one, or None for none")
    return Server(address, tenant, timeout, retry or RetryPolicy(), tls, token)


class Connection:
    """A connection, its factors' leases, and the calls that apply to every kind of factor."""

    def __init__(self, server: Server) -> None:
        self.closed = False
        self._server = server
        self._transport = Transport(server)
        self._renewals = Renewals(lambda handle, lease: self.renew(handle, lease))

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
        self._transport.close()  # ends a running renewal, whose server may not answer
        self._renewals.join(_MAX_CLOSE_SECONDS)

    def __repr__(self) -> str:
        return f"<crout.Client of {self._server.address}>"

    def _run(self, call: Call[T]) -> T:
        return self._transport.run(call)

    def describe(self, f: Held | str) -> FactorRecord:
        """The current record of a factor, or of a handle."""
        return self._run(_requests.describe(_handle(f)))

    def renew(self, f: Held | str, lease: Lease | None = None) -> datetime.datetime:
        """Set the length of a lease, counted from now. Returns its end by the server's clock."""
        return self._run(_requests.renew(_handle(f), lease))

    def release(self, f: Held | str) -> None:
        """Drop a factor. Raises `HandleExpired` if the server has none."""
        self._run(_requests.release(_handle(f)))

    def server_info(self) -> ServerInfo:
        """The server's version, devices and limits."""
        return self._run(_requests.server_info())


@contextlib.contextmanager
def release_on_error(factor: Held) -> Iterator[None]:
    """Drop a factor if a warning is raised as an error: the caller would not get the handle."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(CroutError):  # if this fails, the lease ends it; the warning is reported
            factor.release()
        raise


def _handle(f: Held | str) -> str:
    return f.handle if isinstance(f, Held) else handle_of(f, Factor)
