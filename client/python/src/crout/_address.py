# SPDX-License-Identifier: Apache-2.0
"""Checks of a server's address and of a tenant, before a client connects."""

from __future__ import annotations

import contextlib
import ipaddress
import re

from crout.errors import InvalidRequest

_SCHEMES = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:")
_FORMS = "write host:port, [IPv6]:port or unix:PATH"


def check_address(address: str) -> None:
    """Raise InvalidRequest, with the expected form, unless gRPC accepts `address`.

    Accepted are "host:port" with a port from 1 to 65535 and IPv6 hosts in brackets, and addresses that
    start with one of `_SCHEMES`, whose rest only gRPC checks.
    """
    if not address:
        raise InvalidRequest("the server's address is empty: write host:port, [IPv6]:port or unix:PATH")
    if why := _fault(address):
        raise InvalidRequest(f"the server's address {address!r} {why}: {_FORMS}")


def is_local(address: str) -> bool:
    """Whether connections stay on this machine: localhost, a loopback address, a Unix socket."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = re.sub(r"^\[(.+)\]$", r"\1", address.rpartition(":")[0])
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def check_tenant(tenant: str) -> None:
    """Raise InvalidRequest unless a server accepts `tenant`."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tenant):
        raise InvalidRequest(f"the tenant {tenant!r} is no name of 1 to 64 of [A-Za-z0-9_.-]")


def _fault(address: str) -> str:
    for scheme in _SCHEMES:
        if address.startswith(scheme):
            return "ends after its scheme" if address == scheme else ""
    if not re.fullmatch("[!-~]+", address):
        return "has characters that are no printable ASCII"
    if "/" in address:
        return "is no host and port"
    host, colon, port = address.rpartition(":")
    if not colon or re.fullmatch(r"\[.*\]", address):
        return "has no port"
    if not host:
        return "has no host"
    if ":" in re.sub(r"^\[.+\]$", "", host) or host == "[]":
        return "has an IPv6 address that is not in brackets"
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        return "has no port from 1 to 65535"
    return ""
