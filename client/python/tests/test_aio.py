# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client."""

import asyncio
import functools
import inspect
import sys

import numpy as np
import pytest
import scipy.sparse
from accuracy import assert_close, assert_solves
from daemon import TIMEOUT

import crout
import crout.aio


def run(test):
    """Wrap a coroutine function as a test. Replaces a pytest plugin."""

    @functools.wraps(test)
    def wrapped(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), TIMEOUT))

    return wrapped


def _public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_asynchronous_interface_equals_the_synchronous_one():
    assert _public(crout.aio.AsyncClient) == _public(crout.Client)
    # Not in AsyncFactor, because SciPy's operators are synchronous.
    assert _public(crout.aio.AsyncFactor) == _public(crout.Factor) - {"as_linear_operator"}
    assert _public(crout.aio.AsyncBatchFactor) == _public(crout.BatchFactor)
    pairs = [
        (crout.aio.AsyncClient, crout.Client),
        (crout.aio.AsyncFactor, crout.Factor),
        (crout.aio.AsyncBatchFactor, crout.BatchFactor),
    ]
    for ours, theirs in pairs:
        for name in _public(ours):
            mine, other = getattr(ours, name), getattr(theirs, name)
            if callable(mine):
                assert list(inspect.signature(mine).parameters) == list(inspect.signature(other).parameters)
                assert mine.__doc__ == other.__doc__ is not None, name


def test_help_shows_the_keywords():
    parameters = inspect.signature(crout.aio.AsyncClient.lu_factor).parameters
    assert {"A", "name", "lease", "algorithm", "rcond", "timeout", "progress"} <= set(parameters)
    assert inspect.signature(crout.Factor.solve).parameters["refine"].default == 0


@run
async def test_factor_and_solve(address, regular):
    A, B, b = regular(30), regular(30), np.ones((30, 2))
    async with crout.aio.connect(address) as c:
        async with await c.lu_factor(A, name="aio", lease="1m", determinant=True) as f:
            assert_solves(A, await f.solve(b), b)
            assert_solves(A.T, await c.lu_solve(f, b, trans=1), b)
            assert_solves(A, await c.lu_solve(f.handle, b), b)
            assert (await f.solve(b, full_output=True)).backward_error < 1e-14
            assert_close(np.linalg.multi_dot(await f.to_lu()), A)
            assert (await f.to_lu_piv())[1].shape == (30,)
            assert await f.rcond == pytest.approx(crout.connect(address).lu_factor(A).rcond)
            assert tuple(await f.slogdet()) == pytest.approx(tuple(np.linalg.slogdet(A)))
            assert await f.det() == pytest.approx(await c.det(A))
            assert await f.refactor(B) is f
            assert (await f.describe()).version == 2
            assert f.handle in [listed.handle async for listed in c.list("aio")]
            assert await f.renew("1h") > f.record.lease_expire_time
            assert not f._renewal.done()
        with pytest.raises(crout.HandleExpired):
            await f.solve(b)
        assert_solves(A, await c.solve(A, b), b)
        complement, _ = await c.schur_complement(A, 10)
        assert (await c.rref(A)).rank == A.shape[0]
        assert complement.S.shape == (20, 20)
        complement = await c.schur_complement(scipy.sparse.csr_array(A), keep=[1, 2])
        assert complement.S.shape == (2, 2)
        steps = [step async for step in c.series([A, B], b)]
        assert [step.accurate for step in steps] == [True, True]
        steps = [step async for step in c.series([B, None], b, x0=iter([None, steps[1].x]), strategy="reuse")]
        assert [step.old_iterations for step in steps] == [0, 0]
        icm = await c.lu_factor(A, algorithm="icm")
        assert (await icm.iterations()).sweeps.size >= 1
        assert (await c.estimate(100)).fits
        assert (await c.server_info()).devices


@run
async def test_concurrent_calls_of_many_messages(address, regular, rng):
    A = regular(500)
    async with crout.aio.connect(address) as c:
        f = await c.lu_factor(A)
        sides = [rng.standard_normal((500, 300)) for _ in range(8)]
        for x, b in zip(await asyncio.gather(*map(f.solve, sides)), sides, strict=True):
            assert_solves(A, x, b)


@run
async def test_a_block_renews_the_lease(address, monkeypatch):
    monkeypatch.setattr("crout.aio.pause", lambda lease, failed=False: 0.01)
    async with crout.aio.connect(address) as c, await c.lu_factor(np.eye(3), lease="1h") as f:
        first = f.record.lease_expire_time
        while (await f.describe()).lease_expire_time <= first:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("n", [3, 600], ids=["one message", "many"])
@run
async def test_cancellation_ends_the_call_on_the_server(daemon, n):
    async with crout.aio.connect(daemon.address) as c:
        daemon.hold("scheduler.job")
        task = asyncio.create_task(c.lu_factor(np.eye(n)))
        await asyncio.to_thread(daemon.await_reached, "scheduler.job", 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(daemon.await_ended, "Factorize", "CANCELLED")
        daemon.release("scheduler.job")
        while any(device.streams_busy for device in (await c.server_info()).devices):
            await asyncio.sleep(0.01)
        assert [f async for f in c.list()] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not say who cancelled it")
@pytest.mark.parametrize("n", [3, 600], ids=["one message", "many"])
@run
async def test_a_running_call_reports_that_its_client_was_closed(daemon, n):
    c = crout.aio.connect(daemon.address)
    daemon.hold("scheduler.job")
    task = asyncio.create_task(c.lu_factor(np.eye(n)))
    await asyncio.to_thread(daemon.await_reached, "scheduler.job", 1)
    await c.close()
    with pytest.raises(crout.Cancelled, match="connect again"):
        await task
    daemon.release("scheduler.job")


@run
async def test_cancellation_ends_a_solve_on_the_server(daemon):
    async with crout.aio.connect(daemon.address) as c:
        f = await c.lu_factor(np.eye(3))
        daemon.hold("scheduler.job")
        task = asyncio.create_task(f.solve(np.ones(3)))
        await asyncio.to_thread(daemon.await_reached, "scheduler.job", 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(daemon.await_ended, "Solve", "CANCELLED")
        daemon.release("scheduler.job")
        assert (await f.solve(np.ones(3))).tolist() == [1, 1, 1]


@run
async def test_a_cancelled_series_releases_its_factor(daemon):
    async with crout.aio.connect(daemon.address) as c:
        first = asyncio.Event()

        async def work():
            async for _ in c.series([np.eye(3), np.eye(3)], np.ones(3)):
                first.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await first.wait()
        assert len([f async for f in c.list()]) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while [f async for f in c.list()]:  # the event loop ends the unreferenced series
            await asyncio.sleep(0.01)


@run
async def test_errors_end_a_series_and_are_raised(daemon, regular):
    def matrices():
        yield regular(5)
        daemon.stop()
        raise RuntimeError("assembly failed")

    async with crout.aio.connect(daemon.address, timeout=TIMEOUT) as c:
        with pytest.raises(RuntimeError, match="assembly failed"):
            async for _ in c.series(matrices(), np.ones(5)):
                pass


@run
async def test_a_series_has_as_many_right_hand_sides_as_matrices(address):
    async with crout.aio.connect(address) as c:
        for matrices, wrong in ((1, "more right-hand sides"), (3, "fewer right-hand sides")):
            with pytest.raises(crout.InvalidRequest, match=wrong):
                async for _ in c.series([np.eye(2)] * matrices, iter([np.ones(2)] * 2)):
                    pass


@run
async def test_rcond_belongs_to_one_version(address, regular, monkeypatch):
    async with crout.aio.connect(address) as c:
        f = await c.lu_factor(regular(8))
        other = await c.factor(f.handle)
        run = c._transport.run

        async def run_once_then_refactor(call):
            monkeypatch.undo()
            first = await run(call)
            await other.refactor(1e3 * np.diag(np.arange(1.0, 9)))
            return first

        monkeypatch.setattr(c._transport, "run", run_once_then_refactor)
        assert await f.rcond == pytest.approx(1 / 8)
        assert f.version == 2


@pytest.mark.filterwarnings("error")
@run
async def test_a_warning_as_error_releases_the_factor(daemon):
    growing = np.eye(60) - np.tril(np.ones((60, 60)), -1)
    growing[:, -1] = 1
    async with crout.aio.connect(daemon.address) as c:
        with pytest.raises(crout.LinAlgWarning):
            await c.lu_factor([[1.0, 2], [2, 4]])
        with pytest.raises(crout.LinAlgWarning):
            await c.schur_complement(growing, 60)
        assert [f async for f in c.list()] == []
        with pytest.raises(crout.LinAlgWarning):
            await c.lu_factor([[1.0, 2], [2, 4]], request_id="shared")
        assert len([f async for f in c.list()]) == 1


def test_a_client_belongs_to_the_loop_of_its_first_call(address):
    c = crout.aio.connect(address)
    assert asyncio.run(c.server_info()).devices
    with pytest.raises(crout.CroutError, match="the event loop of its first call") as caught:
        asyncio.run(c.server_info())
    assert caught.value.code == "FAILED_PRECONDITION"

    async def block():
        async with c:
            await c.server_info()

    with pytest.raises(crout.CroutError, match="the event loop of its first call"):
        asyncio.run(block())


@pytest.mark.parametrize("n", [2, 600], ids=["one message", "many"])
@run
async def test_calls_of_a_closed_client_raise(address, n):
    async with crout.aio.connect(address) as c:
        f = await c.lu_factor(np.eye(n))
    for call in (c.lu_factor, f.solve):
        with pytest.raises(crout.CroutError, match="connect again") as caught:
            await call(np.eye(n))
        assert caught.value.code == "CANCELLED"


def test_missing_attributes_are_explained():
    assert "as_linear_operator" in crout.aio.AsyncFactor.__doc__


@run
async def test_an_unreadable_file_ends_the_call(address, tmp_path):
    path = tmp_path / "A.mtx"
    path.mkdir()  # exists, but cannot be read
    async with crout.aio.connect(address) as c:
        with pytest.raises(IsADirectoryError):
            await c.lu_factor(path)


@run
async def test_a_callback_that_raises_ends_a_long_upload(address, regular):
    def refuse(progress):
        if progress.bytes_sent > 2 << 20:
            raise KeyError("no")

    async with crout.aio.connect(address) as c:
        with pytest.raises(KeyError):
            await c.lu_factor(regular(700), progress=refuse)


@run
async def test_errors_are_the_same(address):
    async with crout.aio.connect(address) as c:
        with pytest.raises(crout.InvalidRequest):
            await c.lu_factor(np.ones((2, 3)))
        with pytest.raises(crout.Singular):
            await c.solve(np.ones((2, 2)), np.ones(2))
    with pytest.raises(crout.CroutError, match="connect again"):
        await c.server_info()
    with pytest.raises(crout.Unavailable, match="Start croutd at"):
        await crout.aio.connect("127.0.0.1:1", retry=crout.RetryPolicy(1)).server_info()


@run
async def test_batches(address, regular):
    A = [regular(n) for n in (4, 1, 9)]
    async with crout.aio.connect(address) as c, await c.lu_factor(A, lease="1m") as f:
        for matrix, x in zip(A, await f.solve([np.ones(len(a)) for a in A]), strict=True):
            assert_solves(matrix, x, np.ones(len(matrix)))
        assert (await f.refactor([2 * a for a in A])).version == 2
        solution = await f.solve([np.ones(9)], [2], full_output=True)
        assert_solves(2 * A[2], solution.x[0], np.ones(9))
        at_once = await c.solve([2 * a for a in A], [np.ones(9)], members=[2])
        assert at_once[0].tobytes() == solution.x[0].tobytes()
        assert_close(np.linalg.multi_dot(await f.to_lu(2)), 2 * A[2])
        assert (await f.to_lu_piv(0))[0].shape == (4, 4)
