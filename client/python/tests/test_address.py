# SPDX-License-Identifier: Apache-2.0
"""Arguments of `connect`: those that it rejects before it connects, and the priority of calls."""

import asyncio

import pytest
from fake_server import FakeServer

import crout
import crout.aio


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:50051",
        "solver.example:1",
        "[::1]:65535",
        "unix:/run/crout.sock",
        "unix-abstract:crout",
        "dns:///solver.example:50051",
        "ipv4:127.0.0.1:50051",
    ],
)
def test_accepts_every_form_of_an_address(address):
    crout.connect(address).close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "is empty"),
        ("unix:", "ends after its scheme"),
        ("solver.example", "'solver.example' has no port: write host:port"),
        ("[::1]", "has no port"),
        (":50051", "has no host"),
        ("::1:50051", "without brackets"),
        ("[]:50051", "without brackets"),
        ("http://solver.example:50051", "is not a host and a port"),
        ("solver.example:", "no port from 1 to 65535"),
        ("solver.example:0", "no port from 1 to 65535"),
        ("solver.example:65536", "no port from 1 to 65535"),
        ("solver.example:+5", "no port from 1 to 65535"),
        ("solver .example:5", "other than printable ASCII"),
        ("s\u00f6lver:5", "other than printable ASCII"),
    ],
)
def test_reports_the_missing_part_of_an_address(address, message):
    with pytest.raises(ValueError, match=message):
        crout.connect(address)


@pytest.mark.parametrize("tenant", ["A-z_0.9", "a" * 64])
def test_accepts_valid_tenants(tenant):
    crout.connect("127.0.0.1:1", tenant).close()


@pytest.mark.parametrize("tenant", ["", "a" * 65, "a b", "caf\u00e9", "a\n"])
def test_rejects_invalid_tenants(tenant):
    with pytest.raises(ValueError, match="give 1 to 64 characters"):
        crout.connect("127.0.0.1:1", tenant)


@pytest.mark.parametrize("priority", ["", "Batch", "urgent", None])
def test_rejects_unknown_priorities(priority):
    with pytest.raises(ValueError, match="give one of interactive, normal, batch"):
        crout.connect("127.0.0.1:1", priority=priority)


def test_calls_have_the_priority_of_the_client():
    with FakeServer([b""], [b""]) as server:
        for priority in ("normal", "batch"):
            with crout.connect(server.address, priority=priority) as c:
                c.server_info()
    assert [metadata.get("crout-priority") for metadata in server.metadata] == [None, "batch"]


def test_the_asynchronous_client_rejects_invalid_addresses():
    async def connect():
        crout.aio.connect("solver.example")

    with pytest.raises(ValueError, match="has no port"):
        asyncio.run(connect())


@pytest.mark.parametrize("connect", [crout.connect, crout.aio.connect])
def test_type_errors_name_the_function(connect):
    with pytest.raises(TypeError, match=r"^connect\(\) .* 'adress'$"):
        connect(adress="127.0.0.1:50051")
    with pytest.raises(TypeError, match=r"^connect\(\) too many positional arguments"):
        connect(*range(12))
