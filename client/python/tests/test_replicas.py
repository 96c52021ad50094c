# SPDX-License-Identifier: Apache-2.0
"""Calls on a handle repeat the metadata that names the server of the factor."""

import asyncio

import grpc
import numpy as np
import pytest
from fake_server import FakeServer, Status, WithTrailers, status_details

import crout
import crout.aio
from crout._replicas import Replicas
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service

HANDLE = "a" * 26
# A second delay would let the test time out.
SLOW = crout.RetryPolicy(initial_backoff=3600.0, max_backoff=3600.0)
FACTOR = factor_pb2.Factor(handle=HANDLE, version=1, n=2, factor_dtype=2, matrix_dtype=2, unit_diagonal=1)


def at(replica, message):
    return WithTrailers([message.SerializeToString()], ("crout-replica", replica))


def made(replica):
    return at(replica, service.FactorizeResponse(factor=FACTOR))


def described(replica):
    return at(replica, service.DescribeFactorResponse(factor=FACTOR))


def refused(replica, delay=None):
    details = status_details("OTHER_REPLICA", delay=delay)
    return Status(grpc.StatusCode.UNAVAILABLE, "other", ("crout-replica", replica), details=details)


def received(server):
    return [metadata.get("crout-replica") for metadata in server.metadata]


def test_calls_on_a_handle_repeat_the_metadata_of_its_replies():
    with FakeServer(made("a.f"), described("a.f"), refused("a.f", delay=0)) as server:
        client = crout.connect(server.address, timeout=30, retry=crout.RetryPolicy(max_attempts=1))
        factor = client.lu_factor(np.eye(2))
        client.describe(factor)
        with pytest.raises(crout.Unavailable):
            factor.solve(np.ones(2))
        assert received(server) == [None, "a.f", "a.f"]
        client.close()


def test_a_refused_call_is_repeated_at_the_owner_at_once():
    released = at("", service.ReleaseFactorResponse())
    replies = made("a.f"), refused("b.f"), described("b.f"), refused("c.f"), released
    with FakeServer(*replies) as server, crout.connect(server.address, timeout=30, retry=SLOW) as client:
        client.lu_factor(np.eye(2))
        client.describe(HANDLE)
        client.release(HANDLE)
        assert received(server) == [None, "a.f", "b.f", "b.f", "c.f"]


def test_only_one_repetition_has_no_delay():
    with (
        FakeServer(refused("b.f"), refused("a.f")) as server,
        crout.connect(server.address, timeout=30, retry=SLOW) as client,
    ):
        with pytest.raises(crout.Unavailable) as caught:
            client.describe(HANDLE)
        assert caught.value.reason == "OTHER_REPLICA"
        assert received(server) == [None, "b.f"]


def test_a_client_without_retries_does_not_repeat():
    once = crout.RetryPolicy(max_attempts=1)
    with (
        FakeServer(refused("b.f"), described("b.f")) as server,
        crout.connect(server.address, timeout=30, retry=once) as client,
    ):
        with pytest.raises(crout.Unavailable):
            client.describe(HANDLE)
        client.describe(HANDLE)
        assert received(server) == [None, "b.f"]


def test_asyncio_client():
    async def run(server):
        async with crout.aio.connect(server.address, timeout=30, retry=SLOW) as client:
            await client.lu_factor(np.eye(2))
            await client.describe(HANDLE)
            await client.describe(HANDLE)

    with FakeServer(made("a.f"), refused("b.f"), described("b.f"), described("b.f")) as server:
        asyncio.run(run(server))
        assert received(server) == [None, "a.f", "b.f", "b.f"]


def test_the_last_handles_are_stored():
    replicas = Replicas(handles=2)
    for k in range(5):
        replicas.learn(str(k), [("other", "x"), ("crout-replica", f"a.{k}")])
    replicas.learn("long", [("crout-replica", "a" * 1000)])
    replicas.learn("", [("crout-replica", "a.f")])
    assert replicas.metadata("0") == replicas.metadata("long") == replicas.metadata("") == []
    assert replicas.metadata("3") == [("crout-replica", "a.3")]
    assert replicas.metadata("4") == [("crout-replica", "a.4")]
