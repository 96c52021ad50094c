# SPDX-License-Identifier: Apache-2.0
"""Factors that the server loses, pinned factors, and factors that the program no longer refers to."""

import concurrent.futures
import gc
import pickle

import grpc
import numpy as np
import pytest
import scipy.sparse
from daemon import eventually
from fake_server import FakeServer, Status

import crout
import crout.aio
from crout import RetryPolicy

FOUR = 4 * np.eye(3)


def lose(daemon, c):
    """End the leases of all factors of the client's tenant."""

    def gone():
        daemon.advance(7200)  # repeated, because a use may end only after its reply
        return not list(c.list())

    assert eventually(gone)


@pytest.mark.parametrize(
    "A", [FOUR, scipy.sparse.csr_matrix(FOUR), FOUR.tolist()], ids=["dense", "sparse", "nested"]
)
def test_a_lost_factor_is_made_again(daemon, A):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(A, name="kept", on_lost="refactor")
        first = f.handle
        lose(daemon, c)
        assert f.solve(np.ones(3)).tolist() == [0.25, 0.25, 0.25]
        assert f.handle != first
        assert f.record.name == "kept"
        lose(daemon, c)
        assert f.det() == pytest.approx(64)
        lose(daemon, c)
        assert f.rcond == pytest.approx(1)


def test_the_kept_matrix_is_a_copy_of_the_last_one(daemon):
    with crout.connect(daemon.address) as c:
        A = FOUR.copy()
        f = c.lu_factor(A, on_lost="refactor")
        A[:] = np.nan
        lose(daemon, c)
        B = 2 * np.eye(3)
        f.refactor(B, rcond=True)
        B[:] = np.nan
        lose(daemon, c)
        assert f.solve(np.ones(3)).tolist() == [0.5, 0.5, 0.5]
        assert f.record.rcond == pytest.approx(1)


def test_values_alone_replace_the_kept_matrix(daemon):
    A = scipy.sparse.random(60, 60, 0.05, format="csc", random_state=1) + 60 * scipy.sparse.eye(
        60, format="csc"
    )
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(A, algorithm="multifrontal", on_lost="refactor")
        f.refactor(2 * A, values_only=True)
        lose(daemon, c)
        x = f.solve(np.ones(60))
        assert np.abs(2 * A @ x - 1).max() < 1e-12


def test_a_lost_batch_is_made_again(daemon):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor([np.eye(2), FOUR], on_lost="refactor")
        lose(daemon, c)
        x = f.solve([np.ones(2), np.ones(3)])
        assert x[1].tolist() == [0.25, 0.25, 0.25]
        lose(daemon, c)
        assert f.to_lu(1)[2].tolist() == FOUR.tolist()


def test_threads_share_one_new_factor(daemon):
    with crout.connect(daemon.address) as c, concurrent.futures.ThreadPoolExecutor(8) as pool:
        f = c.lu_factor(FOUR, on_lost="refactor")
        lose(daemon, c)
        solutions = list(pool.map(lambda _: f.solve(np.ones(3)), range(16)))
        assert np.array_equal(solutions, np.full((16, 3), 0.25))
        assert [g.handle for g in c.list()] == [f.handle]


def test_a_block_renews_and_releases_the_new_factor(daemon):
    with crout.connect(daemon.address) as c:
        with c.lu_factor(FOUR, on_lost="refactor") as f:
            lose(daemon, c)
            f.solve(np.ones(3))
            assert c._renewals.holds(f.handle)
        assert not list(c.list())


def test_the_new_factor_has_the_last_pin_and_lease(daemon):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(FOUR, on_lost="refactor")
        f.pin()
        f.renew("5h")
        for _ in range(3):  # longer than 5 h
            lose(daemon, c)
        f.solve(np.ones(3))
        record = f.describe()
        assert record.pinned
        assert (record.lease_expire_time - record.create_time).total_seconds() > 4 * 3600
        f.unpin()
        lose(daemon, c)
        assert not f.describe().pinned  # the call makes the factor again


def test_an_unreferenced_new_factor_is_released(daemon):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(FOUR, on_lost="refactor", release_unreferenced=True)
        lose(daemon, c)
        f.solve(np.ones(3))
        del f  # no garbage collection is needed
        assert eventually(lambda: not list(c.list()))


def test_a_released_factor_is_not_made_again(client):
    f = client.lu_factor(FOUR, on_lost="refactor")
    client.release(f.handle)
    with pytest.raises(crout.HandleExpired) as caught:
        f.solve(np.ones(3))
    assert caught.value.reason == "HANDLE_RELEASED"


def test_a_copy_from_another_process_does_not_make_the_factor_again(daemon):
    with crout.connect(daemon.address) as c:
        f = pickle.loads(pickle.dumps(c.lu_factor(FOUR, on_lost="refactor")))
        lose(daemon, c)
        with pytest.raises(crout.HandleExpired):
            f.solve(np.ones(3))


async def _solve_after_a_loss(daemon):
    async with crout.aio.connect(daemon.address) as c:
        f = await c.lu_factor(FOUR, on_lost="refactor")
        with crout.connect(daemon.address) as other:
            lose(daemon, other)
        assert (await f.solve(np.ones(3))).tolist() == [0.25, 0.25, 0.25]
        with pytest.raises(crout.InvalidRequest, match="async with"):
            await c.lu_factor(FOUR, release_unreferenced=True)
        await f.pin()
        assert (await f.describe()).pinned
        await f.renew("2h")
        await f.unpin()
        assert not (await f.describe()).pinned


def test_asynchronous_factors_are_made_again(daemon):
    import asyncio

    asyncio.run(_solve_after_a_loss(daemon))


def test_a_pin_is_described_and_limited(program, tmp_path):
    from daemon import Daemon

    daemon = Daemon(program, tmp_path, "--max-pinned-bytes=64KiB")
    try:
        with crout.connect(daemon.address) as c:
            assert c.server_info().max_pinned_bytes == 64 << 10
            f = c.lu_factor(FOUR, pin=True)
            assert f.record.pinned
            with pytest.raises(crout.Overloaded) as caught:
                c.lu_factor(np.eye(200), pin=True)
            assert caught.value.reason == "PIN_LIMIT"
            assert len(list(c.list())) == 1
            f.unpin()
            assert not f.describe().pinned
            f.pin()
            assert c.server_info().tenants[0].pinned_bytes == f.describe().bytes
    finally:
        daemon.stop()


def test_an_unreferenced_factor_is_released(daemon):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(FOUR, release_unreferenced=True)
        f.refactor(2 * FOUR)
        assert f.solve(np.ones(3)).tolist() == [0.125] * 3
        del f
        gc.collect()
        assert eventually(lambda: not list(c.list()))


@pytest.mark.parametrize("share", [lambda f: f.handle, lambda f: f.record, pickle.dumps, repr])
def test_a_factor_whose_handle_was_read_is_not_released(daemon, share):
    with crout.connect(daemon.address) as c:
        shared = c.lu_factor(FOUR, release_unreferenced=True)
        share(shared)
        other = c.lu_factor(FOUR, release_unreferenced=True)
        del shared, other
        gc.collect()
        # Releases happen in the order of collection.
        assert eventually(lambda: len(list(c.list())) == 1)
    with crout.connect(daemon.address) as c:
        assert len(list(c.list())) == 1


def test_closing_the_client_releases_its_unshared_factors(daemon):
    with crout.connect(daemon.address) as c:
        f = c.lu_factor(FOUR, release_unreferenced=True)
    with crout.connect(daemon.address) as c:
        assert not list(c.list())
    del f


@pytest.mark.parametrize("how", [{"name": "a"}, {"pin": True}, {"request_id": "b"}])
def test_a_factor_with_other_users_is_not_released_by_itself(client, how):
    with pytest.raises(crout.InvalidRequest, match="other users"):
        client.lu_factor(FOUR, release_unreferenced=True, **how)


def test_unknown_lifetimes_are_refused(client):
    with pytest.raises(crout.InvalidRequest, match="on_lost is 'retry'"):
        client.lu_factor(FOUR, on_lost="retry")


def test_a_call_waits_for_the_restart_of_a_server_that_has_answered():
    lost = [Status(grpc.StatusCode.UNAVAILABLE) for _ in range(6)]
    policy = RetryPolicy(initial_backoff=0.001, max_backoff=0.002)
    with (
        FakeServer(*lost[:4], [b""], *lost, [b""], lost[0]) as server,
        crout.connect(server.address, retry=policy) as c,
    ):
        with pytest.raises(crout.Unavailable):  # the address may be wrong
            c.server_info()
        assert len(server.requests) == 4
        c.server_info()
        c.server_info()
        assert len(server.requests) == 12
        with pytest.raises(crout.Unavailable):  # a repetition is not safe
            c.release("a" * 26)
        assert len(server.requests) == 13


def test_a_durable_factor_survives_a_restart(program, tmp_path):
    from daemon import Daemon

    store = f"--store={tmp_path / 'store'}"
    for start in ("first", "second"):
        folder = tmp_path / start
        folder.mkdir()
        daemon = Daemon(program, folder, store)
        try:
            with crout.connect(daemon.address) as c:
                assert c.server_info().store.limit_bytes > 0
                if start == "first":
                    assert c.lu_factor(FOUR, name="kept", durable=True).record.durable
                    assert c.server_info().store.used_bytes > 0
                    continue
                f = next(c.list("kept"))
                assert f.describe().tier == "store"
                assert f.describe().durable
                np.testing.assert_allclose(FOUR @ f.solve(np.ones(len(FOUR))), np.ones(len(FOUR)))
        finally:
            daemon.stop()


def test_a_durable_factor_needs_a_store(client):
    assert client.server_info().store is None
    with pytest.raises(crout.InvalidRequest, match="--store=DIR"):
        client.lu_factor(FOUR, durable=True)
