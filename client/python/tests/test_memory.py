# SPDX-License-Identifier: Apache-2.0
"""Payloads and solutions in memory that the client shares with the server."""

import asyncio
import gc
import os
import signal
import socket
import struct
import subprocess
import sys

import numpy as np
import pytest
from daemon import TIMEOUT, Daemon, eventually

import crout
import crout.aio

N = 256  # 512 KiB of float64

# Factors a matrix in shared memory, then waits.
CLIENT = """
import sys, numpy, crout
c = crout.connect(sys.argv[1], timeout=60)
A = c.empty((256, 256))
A[...] = numpy.eye(256)
print("ready", flush=True)
c.lu_factor(A, request_id="of-a-client-that-dies")
"""


class SharingDaemon(Daemon):
    """A daemon with a Unix socket and memory for clients."""

    def __init__(self, program, directory, limit="256MiB", path=None):
        path = path or directory / "socket"
        super().__init__(program, directory, f"--listen=unix:{path}", f"--max-shared-memory={limit}")
        self.unix_address = f"unix:{path}"
        self.memory_path = f"{path}.memory"

    def sample(self, name):
        return self.metrics(name)[""]

    def received(self):
        return self.sample("crout_shared_memory_received_bytes_total")

    def sent(self):
        return self.sample("crout_shared_memory_sent_bytes_total")

    def regions(self):
        return self.sample("crout_shared_memory_regions")


@pytest.fixture
def sharing(program, tmp_path):
    daemon = SharingDaemon(program, tmp_path)
    yield daemon
    daemon.stop()


@pytest.fixture
def client(sharing):
    with crout.connect(sharing.unix_address, timeout=60) as client:
        yield client


@pytest.mark.parametrize("order", ["C", "F"])
def test_sends_an_array_in_shared_memory_without_a_copy(sharing, client, regular, order):
    A = client.empty((N, N), order=order)
    A[...] = regular(N)
    assert A.flags[f"{order}_CONTIGUOUS"]
    f = client.lu_factor(A)
    b = np.ones(N)
    assert np.allclose(A @ f.solve(b), b)
    assert sharing.received() == A.nbytes
    assert eventually(lambda: sharing.regions() == 1)
    del A
    gc.collect()
    assert eventually(lambda: sharing.regions() == 0)


def test_sends_a_part_of_an_array_in_shared_memory(sharing, client, regular):
    both = client.empty((2, N, N))
    both[0] = both[1] = regular(N)
    assert client.lu_factor(both[1]).n == N
    assert sharing.received() == both[1].nbytes


def test_copies_other_payloads_into_a_region_that_is_reused(sharing, client, regular):
    A = regular(N)
    B = np.ones((N, N))
    for _ in range(3):
        f = client.lu_factor(A)
        X = f.solve(B)
        assert np.allclose(A @ X, B)
    assert sharing.received() == 3 * (A.nbytes + B.nbytes)
    assert sharing.sent() == 3 * B.nbytes
    assert eventually(lambda: 1 <= sharing.regions() <= 2)


def test_factors_and_solves(sharing, client, regular):
    A, B = regular(N), np.ones((N, N))
    assert np.allclose(A @ client.solve(A, B), B)
    assert sharing.received() == A.nbytes + B.nbytes


def test_a_series(sharing, client, regular):
    matrices = [regular(N) for _ in range(3)]
    B = np.ones((N, N))
    for A, step in zip(matrices, client.series(matrices, B), strict=True):
        assert np.allclose(A @ step.x, B)
    assert sharing.received() == 3 * (B.nbytes + matrices[0].nbytes)
    assert sharing.sent() == 3 * B.nbytes


def test_schur_complements_and_echelon_forms(sharing, client, regular):
    A = regular(2 * N)
    complement, _ = client.schur_complement(A, N)
    s = complement.S
    expected = A[N:, N:] - A[N:, :N] @ np.linalg.solve(A[:N, :N], A[:N, N:])
    assert np.allclose(s, expected)
    assert sharing.sent() == s.nbytes
    assert client.rref(A).rank == 2 * N
    assert sharing.sent() == s.nbytes + A.nbytes


def test_small_payloads_use_messages(sharing, client, regular):
    assert client.lu_factor(regular(32)).n == 32
    assert sharing.received() == 0
    assert client.empty(10).base is None


def test_a_payload_of_many_pieces(sharing, client, monkeypatch, regular):
    monkeypatch.setattr("crout._memory._PIECE", 64 << 10)
    A = regular(N)
    assert np.allclose(A @ client.lu_factor(A).solve(np.ones(N)), 1)
    assert sharing.received() == A.nbytes


def test_a_server_without_shared_memory(shared_daemon, program, tmp_path, regular):
    path = tmp_path / "socket"
    daemon = Daemon(program, tmp_path, f"--listen=unix:{path}")
    try:
        with crout.connect(f"unix:{path}", timeout=60) as client:
            A = client.empty((N, N))
            A[...] = regular(N)
            assert client.lu_factor(A).n == N
    finally:
        daemon.stop()


def test_more_memory_than_the_server_maps(program, tmp_path, regular):
    daemon = SharingDaemon(program, tmp_path, limit="1MiB")
    try:
        with crout.connect(daemon.unix_address, timeout=60) as client:
            assert client.lu_factor(regular(N)).n == N
            assert daemon.received() == 0
            assert eventually(lambda: daemon.sample("crout_shared_memory_refused_total") == 1)
    finally:
        daemon.stop()


def test_a_server_that_restarts(program, tmp_path, regular):
    directories = tmp_path / "first", tmp_path / "second"
    for directory in directories:
        directory.mkdir()
    daemon = SharingDaemon(program, directories[0], path=tmp_path / "socket")
    with crout.connect(daemon.unix_address, timeout=60) as client:
        A = client.empty((N, N))
        A[...] = regular(N)
        client.lu_factor(A)
        client.lu_factor(A + 0)
        daemon.stop()
        daemon = SharingDaemon(program, directories[1], path=tmp_path / "socket")
        try:
            client.server_info()
            client.lu_factor(A)
            client.lu_factor(A + 0)
            assert daemon.received() == 2 * A.nbytes
        finally:
            daemon.stop()


def test_a_forked_child_has_its_own_regions(sharing, client, regular):
    A = regular(N)
    client.lu_factor(A)
    assert len(client._transport.memory._idle) == 1
    child = os.fork()
    if child == 0:
        os._exit(len(client._transport.memory._idle))
    assert os.waitpid(child, 0)[1] == 0
    client.lu_factor(A)
    assert sharing.received() == 2 * A.nbytes


def test_the_memory_of_a_failed_call_is_not_reused(sharing, client, regular):
    A = regular(N)
    with pytest.raises(crout.InvalidRequest):
        client.lu_factor(A, algorithm="gauss_jordan")
    assert client._transport.memory._idle == []
    assert client.lu_factor(A).n == N


def test_asyncio(sharing, regular):
    async def work():
        async with crout.aio.connect(sharing.unix_address, timeout=60) as client:
            A = await client.empty((N, N))
            A[...] = regular(N)
            B = np.ones((N, N))
            f = await client.lu_factor(A)
            x = await f.solve(B)
            assert np.allclose(A @ x, B)
            async for step in client.series([A], B):
                assert np.allclose(A @ step.x, B)

    asyncio.run(work())
    assert sharing.sent() == 2 * N * N * 8


def test_a_client_that_dies_gives_its_memory_back(sharing):
    sharing.hold("scheduler.job")
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, sharing.unix_address], stdout=subprocess.PIPE, text=True
    )
    assert client.stdout.readline() == "ready\n"
    sharing.await_reached("scheduler.job", 1)
    assert eventually(lambda: sharing.regions() == 1)
    client.send_signal(signal.SIGKILL)
    client.wait(TIMEOUT)
    client.stdout.close()
    sharing.release("scheduler.job")
    assert eventually(lambda: sharing.regions() == 0)
    with crout.connect(sharing.unix_address, timeout=60) as survivor:
        assert survivor.lu_factor(np.eye(N)).n == N


def test_a_server_without_gpus_shares_no_gpu_memory(program, tmp_path):
    path = tmp_path / "socket"
    daemon = Daemon(program, tmp_path, f"--listen=unix:{path}", "--max-shared-device-memory=64MiB")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(f"{path}.memory")
            connection.send(b"CROUTG1\0" + struct.pack("<Q", 1) + bytes(16))
            answer = connection.recv(4096)
        assert answer[:1] == b"\1"
        assert b"does not use GPU-00000000-0000-0000-0000-000000000000; its GPUs: none" in answer
    finally:
        daemon.stop()


def test_only_users_of_the_socket_may_share_memory(program, tmp_path):
    path = tmp_path / "socket"
    daemon = Daemon(
        program, tmp_path, f"--listen=unix:{path}", "--max-shared-memory=64MiB", "--unix-mode=600"
    )
    try:
        assert os.stat(f"{path}.memory").st_mode & 0o777 == 0o600
    finally:
        daemon.stop()
    assert not os.path.exists(f"{path}.memory")
