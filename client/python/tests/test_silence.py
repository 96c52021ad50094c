# SPDX-License-Identifier: Apache-2.0
"""Servers that stop answering."""

import asyncio
import threading

import numpy as np
import pytest
from daemon import TIMEOUT
from fake_server import FakeServer, Silence
from relay import Relay

import crout
import crout.aio
from crout import _transport

ONCE = crout.RetryPolicy(max_attempts=1)


def solve(address):
    with crout.connect(address, retry=ONCE) as c:
        c.solve(np.eye(2), np.ones(2))


def solve_in_asyncio(address):
    async def call():
        async with crout.aio.connect(address, retry=ONCE) as c:
            await c.solve(np.eye(2), np.ones(2))

    asyncio.run(call())


@pytest.mark.parametrize("call", [solve, solve_in_asyncio])
def test_a_call_survives_answered_pings_and_ends_without_answers(monkeypatch, call):
    options = dict(_transport.CHANNEL_OPTIONS)
    for name in ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms"):
        assert options[name] <= 25_000  # 25 s, 15 s, and 20 s for a new connection add up to a minute
        options[name] = 200
    monkeypatch.setattr(_transport, "CHANNEL_OPTIONS", list(options.items()))
    computing = Silence()
    with FakeServer(computing, pings=True) as server, Relay(server.address) as relay:
        ended = []

        def run():
            with pytest.raises(crout.Unavailable):
                call(relay.address)
            ended.append(True)

        caller = threading.Thread(target=run)
        caller.start()
        assert computing.requested.wait(TIMEOUT)
        # By default gRPC sends only two pings and does not detect a server that stops later.
        assert relay.await_pings(6, TIMEOUT / 2)
        assert not ended
        relay.fall_silent()
        caller.join(TIMEOUT)
        assert ended
        computing.released.set()
