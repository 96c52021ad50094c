# SPDX-License-Identifier: Apache-2.0
"""Private servers: `crout.local`."""

import asyncio
import concurrent.futures
import gc
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from daemon import TIMEOUT, eventually

import crout
import crout.aio
from crout import _local

A, B = [[4.0, 1.0], [1.0, 3.0]], [5.0, 4.0]
X = [1.0, 1.0]
# Starts a server, and prints its process and its directory.
START = """
import crout
c = crout.local(device="host")
process = c._stop.peek()[1].__self__._process
print(process.pid, c.address.removeprefix("unix:").removesuffix("/socket"), flush=True)
"""


@pytest.fixture(autouse=True)
def path(monkeypatch, croutd):
    monkeypatch.setenv("PATH", f"{croutd.parent}:{os.environ['PATH']}")


def solves(client):
    return client.solve(A, B).tolist() == pytest.approx(X)


def process_of(client):
    return client._stop.peek()[1].__self__._process


def directory_of(client):
    return Path(client.address.removeprefix("unix:")).parent


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_private_server_solves_and_ends():
    with crout.local(device="host", memory="1GiB", args=["--host-threads=1"]) as c:
        assert solves(c)
        (device,) = c.server_info().devices
        assert device.name == "host"
        assert device.budget_bytes == 1 << 30
        process, directory = process_of(c), directory_of(c)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert os.getsid(process.pid) != os.getsid(0)  # a terminal's Ctrl-C does not reach it
        with pickle.loads(pickle.dumps(c)) as copy:
            assert type(copy) is crout.Client
            assert solves(copy)
        assert solves(c)
    assert process.returncode == 0
    assert not directory.exists()
    c.close()


def test_threads_start_servers_that_outlive_them():
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: crout.local(device="host"), range(2))
    with first, second:
        assert first.address != second.address
        handle = first.lu_factor(A).handle
        with pytest.raises(crout.HandleExpired):
            second.describe(handle)
        assert all(process_of(c).poll() is None for c in (first, second))
        assert solves(first)
        assert solves(second)


def test_a_client_for_asyncio():
    async def solve(address):
        async with crout.aio.connect(address) as c:
            assert c.address == address
            return await c.solve(A, B)

    with crout.local(device="host") as c:
        assert asyncio.run(solve(c.address)).tolist() == pytest.approx(X)


def test_the_settings_of_other_servers_do_not_apply(monkeypatch):
    monkeypatch.setenv("CROUT_IDENTITIES", "/no/such/file")
    monkeypatch.setenv("CROUT_TLS", "true")
    monkeypatch.setenv("CROUT_TOKEN_FILE", "/no/such/file")
    with crout.local(device="host") as c:
        assert solves(c)


@pytest.mark.parametrize("name", ["x" * 100, "a b,c%20"])
def test_directories_of_temporary_files_that_sockets_cannot_have(monkeypatch, tmp_path, name):
    (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
    with crout.local(device="host") as c:
        assert solves(c)


def test_the_log_is_appended(tmp_path):
    log = tmp_path / "log"
    log.write_text("earlier\n")
    with crout.local(device="host", log=log) as c:
        assert solves(c)
    text = log.read_text()
    assert text.startswith("earlier\n")
    assert "daemon_stopped" in text
    with pytest.raises(crout.UnreadableFile, match="/no/such/log: No such file or directory"):
        crout.local(log="/no/such/log")


def test_a_missing_croutd_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(crout.Unavailable, match=r"pip install 'crout\[server\]'"):
        crout.local()


def test_a_failed_start_is_reported_with_the_log(tmp_path):
    log = tmp_path / "log"
    log.write_text("earlier\n")
    with pytest.raises(crout.InvalidRequest, match=r"status 2 before it was ready:\n.*much is not a size"):
        crout.local(memory="much")
    with pytest.raises(crout.Unavailable, match=r"status 1 before(.|\n)*Create the directory") as caught:
        crout.local(args=["--listen=unix:/no/such/socket"], log=log)
    assert "earlier" not in str(caught.value)


def test_a_server_that_does_not_stop_is_killed(monkeypatch, tmp_path):
    program = tmp_path / "croutd"
    program.write_text("#!/bin/sh\ntrap '' TERM\necho croutd ready\nwhile :; do sleep 1; done\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(_local, "_STOP_SECONDS", 0.01)
    c = crout.local()
    process = process_of(c)
    c.close()
    assert process.returncode == -signal.SIGKILL


def test_a_forgotten_client_ends_its_server():
    c = crout.local(device="host")
    process, directory = process_of(c), directory_of(c)
    del c
    gc.collect()
    assert process.returncode == 0
    assert not directory.exists()


def test_a_forked_child_does_not_end_the_server():
    with crout.local(device="host") as c:
        child = os.fork()
        if child == 0:
            c._stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert process_of(c).poll() is None
        assert solves(c)


def test_the_end_of_the_process_ends_the_server():
    done = subprocess.run(
        [sys.executable, "-c", START], capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    pid, directory = done.stdout.split()
    assert not runs(pid)
    assert not Path(directory).exists()


def test_a_killed_process_leaves_no_server():
    script = f"{START}\nimport time\ntime.sleep({TIMEOUT})"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        pid, directory = process.stdout.readline().split()
        assert runs(pid)
        process.kill()
    assert eventually(lambda: not runs(pid))
    assert not Path(directory, "socket").exists()
    shutil.rmtree(directory)
