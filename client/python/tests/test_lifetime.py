# SPDX-License-Identifier: Apache-2.0
"""Leases, renewals, handles in other threads and processes, and calls that end early."""

import concurrent.futures
import math
import pickle
import signal
import subprocess
import sys
import threading

import grpc
import numpy as np
import pytest
from accuracy import assert_solves
from daemon import TIMEOUT, eventually
from fake_server import FakeServer, Silence, Status

import crout
from crout._connection import Renewals, pause
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service


def test_the_end_of_a_block_releases(client):
    with client.lu_factor(np.eye(3)) as f:
        assert f.solve(np.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(crout.HandleExpired) as caught:
        f.solve(np.ones(3))
    assert caught.value.reason == "HANDLE_RELEASED"
    assert isinstance(caught.value, LookupError)


def test_a_released_factor_ends_its_block_quietly(client):
    with client.lu_factor(np.eye(3)) as f:
        f.release()


def test_an_expired_lease_is_reported(daemon):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(np.eye(3), lease="1m")
        daemon.advance(30)
        f.renew("1h")
        daemon.advance(600)
        f.solve(np.ones(3))

        def expired():
            daemon.advance(7200)  # repeated, because a use may end only after its reply
            try:
                f.describe()
            except crout.HandleExpired:
                return True
            return False

        assert eventually(expired)
        with pytest.raises(
            crout.HandleExpired, match=r"Factor the matrix again.*`with` block renews"
        ) as caught:
            f.solve(np.ones(3))
        assert caught.value.reason == "HANDLE_EXPIRED"
        assert caught.value.code == "NOT_FOUND"


def test_a_block_renews_the_lease(client, monkeypatch):
    monkeypatch.setattr("crout._connection.pause", lambda lease, failed=False: 0.01)
    with client.lu_factor(np.eye(3), lease="1h") as f:
        first = f.record.lease_expire_time
        assert eventually(lambda: f.describe().lease_expire_time > first)


def test_a_block_renews_with_the_last_lease(daemon):
    with crout.connect(daemon.address) as c, c.lu_factor(np.eye(3), lease="1h") as f:
        f.renew("30m")
        assert c._renewals._held[f.handle][0] == 1800


def test_two_renewals_may_fail_before_a_lease_ends():
    lease = 60.0
    assert 0 < pause(lease) + 2 * pause(lease, failed=True) < lease


def test_renewals_continue_until_the_lease_is_dropped():
    calls = []
    third = threading.Event()

    def renew(handle, lease):
        calls.append((handle, lease))
        if len(calls) == 3:
            third.set()
        if len(calls) == 1:
            raise crout.Unavailable("once")  # retried

    renewals = Renewals(renew)
    renewals.hold("a", 0.003)
    assert third.wait(TIMEOUT)
    renewals.drop("a")
    renewals.close()
    assert set(calls) == {("a", 0.003)}


def test_the_nearest_lease_is_renewed_first():
    order = []
    done = threading.Event()

    def renew(handle, lease):
        order.append(handle)
        renewals.drop(handle)
        done.set()

    renewals = Renewals(renew)
    renewals.hold("late", 3600)
    renewals.hold("soon", 0.003)
    assert done.wait(TIMEOUT)
    renewals.close()
    assert order == ["soon"]


def test_threads_share_a_client(client, regular):
    A = regular(30)
    f = client.lu_factor(A)

    def work(seed):
        b = np.random.default_rng(seed).standard_normal((30, 4))
        assert_solves(A, f.solve(b), b)
        assert_solves(A, client.solve(A, b), b)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(64)))


def test_a_pickled_factor_solves_in_another_process(client, regular, tmp_path):
    A = regular(10)
    f = client.lu_factor(A)
    (tmp_path / "factor").write_bytes(pickle.dumps(f))
    script = (
        "import pickle, sys, numpy\n"
        "f = pickle.load(open(sys.argv[1] + '/factor', 'rb'))\n"
        "numpy.save(sys.argv[1] + '/x.npy', f.solve(numpy.ones(10)))\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=TIMEOUT)
    assert_solves(A, np.load(tmp_path / "x.npy"), np.ones(10))
    copies = [pickle.loads(pickle.dumps(f)) for _ in range(2)]
    assert copies[0].record == f.record
    assert copies[0]._client is copies[1]._client


def test_a_forked_child_renews_its_own_leases(daemon):
    # In a separate process, which forks while a thread of the client holds the lock.
    script = """
import os, sys, crout
from crout._connection import Renewals
c = crout.connect(sys.argv[1])
with c._renewals._changed:  # As the thread may hold it.
    child = os.fork()
    if child == 0:
        c._renewals.hold("a", 3600.0)
        os._exit(0 if c._renewals.holds("a") and c._renewals._thread.is_alive() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", script, daemon.address], check=True, timeout=TIMEOUT)


def test_closing_does_not_wait_for_a_server_that_does_not_answer():
    silence = Silence()
    with FakeServer(silence) as server:
        c = crout.connect(server.address)
        c._renewals.hold("a", 0.003)
        assert silence.requested.wait(TIMEOUT)
        closing = threading.Thread(target=c.close)
        closing.start()
        closing.join(TIMEOUT)
        assert not closing.is_alive()
        silence.released.set()


def test_closing_a_copy_does_not_close_later_copies(address):
    c = crout.connect(address)
    with pickle.loads(pickle.dumps(c)):
        pass
    assert pickle.loads(pickle.dumps(c)).server_info()
    c.close()


def test_errors_end_a_series_and_are_raised(daemon, regular):
    def matrices():
        yield regular(5)
        daemon.stop()
        raise RuntimeError("assembly failed")

    with (
        crout.connect(daemon.address, timeout=TIMEOUT) as c,
        pytest.raises(RuntimeError, match="assembly failed"),
    ):
        list(c.series(matrices(), np.ones(5)))


@pytest.mark.filterwarnings("error")
def test_a_warning_as_error_releases_the_factor(daemon):
    with crout.connect(daemon.address) as c:
        with pytest.raises(crout.LinAlgWarning):
            c.lu_factor([[1.0, 2], [2, 4]])
        assert not list(c.list())
        f = c.lu_factor(np.eye(2))
        with pytest.raises(crout.LinAlgWarning):
            f.refactor([[1.0, 2], [2, 4]], replace_if_singular=True)
        assert f.version == 2


@pytest.mark.filterwarnings("error")
def test_a_poor_leading_block_as_error_releases_the_factor(daemon):
    growing = np.eye(60) - np.tril(np.ones((60, 60)), -1)
    growing[:, -1] = 1  # partial pivoting doubles the last column with every step
    with crout.connect(daemon.address) as c:
        with pytest.raises(crout.LinAlgWarning):
            c.schur_complement(growing, 60)
        assert not list(c.list())


@pytest.mark.filterwarnings("error")
def test_a_warning_as_error_keeps_a_factor_with_a_request_id(daemon):
    with crout.connect(daemon.address) as c:
        with pytest.raises(crout.LinAlgWarning):
            c.lu_factor([[1.0, 2], [2, 4]], request_id="shared")
        assert len(list(c.list())) == 1


@pytest.mark.filterwarnings("error")
def test_a_failed_release_does_not_hide_the_warning():
    made = service.FactorizeResponse(
        factor=factor_pb2.Factor(handle="h", version=1, n=2, factor_dtype=2, unit_diagonal=1, info=1)
    )
    refused = Status(grpc.StatusCode.INTERNAL)
    with (
        FakeServer([made.SerializeToString()], refused) as server,
        crout.connect(server.address) as c,
        pytest.raises(crout.LinAlgWarning),
    ):
        c.lu_factor(np.eye(2))
    assert len(server.requests) == 2


def test_a_series_needs_a_right_hand_side_for_each_matrix(client, regular):
    A = regular(5)
    with pytest.raises(crout.InvalidRequest, match="fewer right-hand sides than matrices"):
        list(client.series([A, A, A], iter([np.ones(5), np.ones(5)])))
    series = client.series([A], iter([np.ones(5), np.ones(5)]))
    assert next(series).x.shape == (5,)
    with pytest.raises(crout.InvalidRequest, match="more right-hand sides than matrices"):
        next(series)


def test_a_series_rejects_a_list_of_vectors_as_right_hand_side(client, regular):
    sides = [np.ones(2), np.zeros(2)]  # NumPy reads this as one 2 x 2 right-hand side
    with pytest.raises(crout.InvalidRequest, match=r"pass iter\(rhs\)"):
        list(client.series([regular(2), regular(2)], sides))
    assert next(client.series([np.eye(2)], [[1.0, 2.0], [3.0, 4.0]])).x.shape == (2, 2)


def test_a_timeout_may_be_infinite_but_not_nan():
    assert crout.connect("localhost:1", timeout=float("inf"))._server.timeout is None
    with pytest.raises(ValueError, match="timeout"):
        crout.connect("localhost:1", timeout=float("nan"))


def test_a_call_may_have_no_timeout(client):
    with crout.connect(client._server.address, timeout=1e-9) as hasty:
        for timeout in (math.inf, 1e300):
            assert hasty.lu_factor(np.eye(2), timeout=timeout).n == 2


@pytest.mark.parametrize("n", [2, 600], ids=["one message", "many"])
def test_calls_of_a_closed_client_raise(address, n):
    client = crout.connect(address)
    f = client.lu_factor(np.eye(n))
    client.close()
    for call in (client.server_info, lambda: client.lu_factor(np.eye(n)), lambda: f.solve(np.eye(n))):
        with pytest.raises(crout.CroutError, match="connect again") as caught:
            call()
        assert caught.value.code == "CANCELLED"


@pytest.mark.parametrize("n", [3, 600], ids=["one message", "many"])
def test_a_running_call_reports_that_its_client_was_closed(daemon, n):
    with crout.connect(daemon.address) as c, concurrent.futures.ThreadPoolExecutor(1) as pool:
        daemon.hold("scheduler.job")
        call = pool.submit(c.lu_factor, np.eye(n))
        daemon.await_reached("scheduler.job", 1)
        c.close()
        with pytest.raises(crout.Cancelled, match="connect again"):
            call.result(TIMEOUT)
        daemon.release("scheduler.job")


def test_a_deadline_raises_a_timeout_and_ends_the_work(daemon):
    daemon.hold("scheduler.job")
    timeout = 0.1
    while not daemon.reached("scheduler.job"):  # on a slow machine the deadline passes before the job starts
        timeout *= 2
        with crout.connect(daemon.address, timeout=timeout) as c:
            with pytest.raises(crout.DeadlineExceeded, match="longer timeout") as caught:
                c.lu_factor(np.eye(3))
            assert isinstance(caught.value, TimeoutError)
    daemon.await_ended("Factorize", "DEADLINE_EXCEEDED", "CANCELLED")
    daemon.release("scheduler.job")
    assert eventually(lambda: _busy(daemon) == 0)
    assert list(crout.connect(daemon.address).list()) == []


@pytest.mark.parametrize("n", [3, 600], ids=["one message", "many"])
def test_ctrl_c_ends_the_call_on_the_server(daemon, n):
    daemon.hold("scheduler.job")
    script = (
        "import crout, numpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # A shell may have it ignored.
        "crout.connect(sys.argv[1]).lu_factor(numpy.eye(int(sys.argv[2])))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, daemon.address, str(n)], stderr=subprocess.PIPE, text=True
    )
    daemon.await_reached("scheduler.job", 1)
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=TIMEOUT)[1]
    assert errors.rstrip().endswith("KeyboardInterrupt")
    daemon.await_ended("Factorize", "CANCELLED")
    daemon.release("scheduler.job")
    assert eventually(lambda: _busy(daemon) == 0)
    with crout.connect(daemon.address) as c:
        assert list(c.list()) == []


def _busy(daemon):
    with crout.connect(daemon.address) as c:
        return sum(device.streams_busy for device in c.server_info().devices)
