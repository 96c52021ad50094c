# SPDX-License-Identifier: Apache-2.0
"""Series over one stream: the work of each step, and the release of factors."""

import asyncio
import contextlib
import dataclasses
import gc
import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from accuracy import assert_solves
from daemon import TIMEOUT

import crout
import crout.aio
from crout import _diagnostics
from crout.series import Series
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service


def drift(A, change, steps, rng):
    for _ in range(steps):
        yield A.copy()
        A = A + change * rng.standard_normal(A.shape)


def test_one_factor_serves_small_changes(client, regular, rng):
    matrices = list(drift(regular(40), 1e-6, 6, rng))
    steps = list(client.series(matrices, np.ones(40), strategy="reuse", name="flow"))
    assert [step.strategy for step in steps] == ["refactor"] + ["reuse"] * 5
    assert [step.age for step in steps] == list(range(6))
    assert {step.factor.handle for step in steps} == {steps[0].factor.handle}
    for A, step in zip(matrices, steps, strict=True):
        assert_solves(A, step.x, np.ones(40))
        assert step.accurate
        assert step.backward_error <= step.accuracy == np.sqrt(40) * 2.0**-53
        assert step.amplification >= 1
        assert step.warnings == ()
        assert step.factor.name == "flow"


def test_each_strategy_and_shape(client, regular, rng):
    for strategy, trans, columns in itertools.product(("auto", "refactor"), (0, "T"), (None, 3)):
        b = np.ones(20) if columns is None else rng.standard_normal((20, columns))
        matrices = list(drift(regular(20), 1e-3, 3, rng))
        for A, step in zip(matrices, client.series(matrices, b, strategy=strategy, trans=trans), strict=True):
            assert_solves(A.T if trans == "T" else A, step.x, b)
            assert step.x.shape == b.shape
            if strategy == "refactor":
                assert (step.strategy, step.old_iterations, step.age) == ("refactor", 0, 0)


def test_complex_and_sparse_matrices(client, regular):
    A = regular(15) + 1j * regular(15)
    for step in client.series([A, A * (1 + 1e-7j)], np.ones(15)):
        assert step.x.dtype == complex
        assert step.accurate
    sparse = scipy.sparse.random(60, 60, 0.05, random_state=3) + 4 * scipy.sparse.eye(60)
    for step in client.series([sparse, sparse * 1.0001], np.ones(60)):
        assert step.accurate


def test_right_hand_sides_alone(client, regular):
    A = regular(12)
    sides = [np.eye(12)[k] for k in range(4)]
    steps = client.series([A, None, 1.0001 * A, None], iter(sides), strategy="reuse")
    for k, (matrix, step) in enumerate(zip((A, A, 1.0001 * A, 1.0001 * A), steps, strict=True)):
        assert_solves(matrix, step.x, sides[k])
    with pytest.raises(crout.InvalidRequest, match="no matrix"):
        next(client.series([None], np.ones(3)))


def test_a_step_starts_at_the_given_x0(client, regular, rng):
    for scale, columns in ((1.0, None), (1.0 + 0.5j, 2)):
        A = scale * regular(20)
        near = A * (1 + 1e-6)
        first, b = (rng.standard_normal((20,) if columns is None else (20, columns)) for _ in range(2))

        def second(x0, matrices=(A, near), sides=(first, b)):
            starts = iter([None, x0])
            return list(client.series(matrices, iter(sides), x0=starts, strategy="reuse"))[1]

        cold = second(np.zeros_like(b))
        solved = second(cold.x)
        assert cold.old_iterations > solved.old_iterations == 0
        assert solved.x.tobytes() == cold.x.tobytes()
        assert second(np.asfortranarray(1e250 * cold.x)).x.tobytes() == cold.x.tobytes()
        # An initial guess may have any type that converts to the type of the series.
        assert_solves(near, second(np.ones(b.shape, dtype="i4")).x, b)
    same = client.series([A, None], b, x0=cold.x, strategy="refactor")
    assert all(step.accurate for step in same)


def test_initial_guesses_may_use_previous_solutions(client, regular):
    A, side, solutions = regular(10), np.ones(10), []

    def extrapolated():
        yield from (None, None)
        while True:
            yield 2 * solutions[-1] - solutions[-2]

    matrices = [A] + [None] * 4
    starts = itertools.islice(extrapolated(), 5)
    steps = client.series(matrices, (k * side for k in range(1, 6)), x0=starts, strategy="reuse")
    for step in steps:
        solutions.append(step.x)
        assert step.accurate
    assert step.old_iterations <= 1  # linear in time, except for roundoff


def test_initial_guesses_of_another_shape_or_type_are_rejected(client, regular):
    for x0, match in (
        (np.ones(5), "shape"),
        (np.ones((4, 1)), "shape"),
        (1j * np.ones(4), "real"),
        (np.full(4, np.nan), "start has a NaN"),
        ([np.ones(4), np.ones(4)], r"pass iter\(x0\)"),
        (iter([]), "fewer initial guesses than matrices"),
        (iter([None, None]), "more initial guesses than matrices"),
    ):
        with pytest.raises(crout.InvalidRequest, match=match):
            list(client.series([regular(4)], np.ones(4), x0=x0))


def test_changes_replace_dense_matrices(client, regular, rng):
    for scale in (1.0, 1.0 + 0.5j):
        A = scale * regular(15)
        rows, cols = np.array([0, 14, 3]), [2, 14, 3]
        values = [1.25, -3.0, 0.5]
        changed = A.copy()
        changed[rows, cols] = values
        u, v = rng.standard_normal((2, 15))
        U, V = rng.standard_normal((2, 15, 2)) * scale
        matrices = [A, changed, changed + np.outer(u, v), changed + np.outer(u, v) + U @ V.T]
        sent = [A, crout.Entries(rows, cols, values), crout.LowRank(u, v), crout.LowRank(U, V)]
        for order in ("C", "F"):
            sent[0] = np.asarray(A, order=order)
            for matrix, step in zip(matrices, client.series(sent, np.ones(15)), strict=True):
                assert step.accurate
                assert_solves(matrix, step.x, np.ones(15))


def test_values_replace_sparse_matrices(client, tmp_path, rng):
    A = scipy.sparse.random(60, 60, 0.05, random_state=3) + 4 * scipy.sparse.eye(60)
    for scale in (1.0, 1.0 - 0.5j):
        for form in ("csr", "csc", "coo"):
            first = (scale * A).asformat(form)
            second, third = first.copy(), first.copy()
            second.data = second.data * (1 + 0.1 * rng.random(second.data.size))
            third.data = second.data[::-1].copy() if form == "coo" else 2 * second.data
            sent = [first, crout.Values(second.data), None, crout.Values(third.data)]
            steps = client.series(sent, np.ones(60))
            for matrix, step in zip((first, second, second, third), steps, strict=True):
                assert_solves(matrix.toarray(), step.x, np.ones(60))
            again = client.series([first, first, third], np.ones(60), strategy="refactor")
            by_values = client.series(
                [first, first, crout.Values(third.data)], np.ones(60), strategy="refactor"
            )
            for left, right in zip(again, by_values, strict=True):
                np.testing.assert_array_equal(left.x, right.x)
    path = tmp_path / "A.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n2 1 1\n2 2 4\n1 1 3\n1 1 1\n")
    _, step = client.series([path, crout.Values([1.0, 5.0, 2.0, 4.0])], np.ones(2))
    assert_solves(np.array([[6.0, 1.0], [1.0, 5.0]]), step.x, np.ones(2))


def test_values_of_a_matrix_are_checked_against_the_last_one(client):
    A = scipy.sparse.random(60, 60, 0.05, random_state=3) + 4 * scipy.sparse.eye(60)
    for form in ("csr", "csc", "coo"):
        first = A.asformat(form)
        _, step = client.series([first, crout.Values(2 * first)], np.ones(60))
        assert_solves(2 * A.toarray(), step.x, np.ones(60))
        transposed = A.T.asformat(form)
        with pytest.raises(crout.InvalidRequest, match="other positions, or another order") as refused:
            list(client.series([first, crout.Values(transposed)], np.ones(60)))
        assert refused.value.reason == "PATTERN_MISMATCH"
        assert refused.value.code == "FAILED_PRECONDITION"
    upwind = [scipy.sparse.diags([-w, 2.0, w - 1.0], [-1, 0, 1], (9, 9)) for w in (0.0, 1.0)]
    _, step = client.series([upwind[0], crout.Values(upwind[1])], np.ones(9))
    assert_solves(upwind[1].toarray(), step.x, np.ones(9))
    with pytest.raises(crout.InvalidRequest, match="last matrix was dense"):
        list(client.series([A.toarray(), crout.Values(A)], np.ones(60)))
    with pytest.raises(crout.InvalidRequest, match=r"shape \(61, 60\), and the series has the order 60"):
        list(client.series([A, crout.Values(scipy.sparse.vstack([A, A.tocsr()[:1]]))], np.ones(60)))


def test_values_of_a_matrix_follow_a_file(client, tmp_path):
    path = tmp_path / "A.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n2 1 1\n2 2 4\n1 1 3\n")
    same = scipy.sparse.coo_array(([2.0, 8.0, 6.0], ([1, 1, 0], [0, 1, 0])), (2, 2))
    _, step = client.series([path, crout.Values(same)], np.ones(2))
    assert_solves(same.toarray(), step.x, np.ones(2))
    with pytest.raises(crout.InvalidRequest, match="another order") as refused:
        list(client.series([path, crout.Values(same.tocsr())], np.ones(2)))
    assert refused.value.reason == "PATTERN_MISMATCH"


def test_invalid_values_are_rejected(client, regular):
    A = scipy.sparse.csr_array(regular(6))
    for values, what in (
        (np.ones(A.nnz - 1), "values"),
        (np.ones(A.nnz + 1), "values"),
        ([], "at least one element"),
        (np.ones((6, 6)), "not a vector"),
        (1j * np.ones(A.nnz), "complex"),
        (np.full(A.nnz, np.nan), "matrix"),
    ):
        with pytest.raises(crout.InvalidRequest, match=what):
            list(client.series([A, crout.Values(values)], np.ones(6)))
    with pytest.raises(crout.InvalidRequest, match="last matrix was dense"):
        list(client.series([regular(6), crout.Values(np.ones(36))], np.ones(6)))


def test_invalid_changes_are_rejected(client, regular):
    A = regular(6)
    for change, what in (
        (crout.Entries([0], [6], [1.0]), "give indices from 0"),
        (crout.Entries([-1], [0], [1.0]), "give indices from 0"),
        (crout.Entries([0, 1], [0], [1.0, 2.0]), "integers"),
        (crout.Entries([0.5], [0], [1.0]), "integers"),
        (crout.Entries([0], [0], [1j]), "complex"),
        (crout.Entries([], [], []), "at least one element"),
        (crout.Entries([2, 2], [3, 3], [1.0, 2.0]), "another value"),
        (crout.LowRank(np.ones(5), np.ones(5)), "rank"),
        (crout.LowRank(np.ones((6, 7)), np.ones((6, 7))), "rank"),
    ):
        with pytest.raises(crout.InvalidRequest, match=what):
            list(client.series([A, change], np.ones(6)))
    with pytest.raises(crout.InvalidRequest, match="a change without a matrix"):
        next(client.series([crout.LowRank(np.ones(3), np.ones(3))], np.ones(3)))
    sparse = scipy.sparse.random(60, 60, 0.05, random_state=3) + 4 * scipy.sparse.eye(60)
    with pytest.raises(crout.InvalidRequest, match="require a dense matrix"):
        list(client.series([sparse, crout.Entries([0], [0], [1.0])], np.ones(60)))


def test_a_series_starts_with_a_factor_and_does_not_release_it(client, regular):
    A = regular(12)
    with client.lu_factor(A) as f:
        steps = list(client.series([None, A + 1e-7], np.ones(12), start=f, strategy="reuse"))
        assert [step.strategy for step in steps] == ["reuse", "reuse"]
        assert_solves(A + 1e-7, steps[1].x, np.ones(12))
        assert f.solve(np.ones(12)).shape == (12,)
        with pytest.raises(crout.InvalidRequest, match="name and lease"):
            next(client.series([A], np.ones(12), start=f, name="other"))
    with pytest.raises(crout.HandleExpired):
        next(client.series([A], np.ones(12), start=f))


def test_a_series_releases_its_factor_before_the_server_ends_the_call(daemon, regular, monkeypatch):
    monkeypatch.setattr(crout._transport, "CLOSE_SECONDS", 0)
    with crout.connect(daemon.address, "slow", timeout=TIMEOUT) as c:
        for _ in range(5):
            list(c.series([regular(8)] * 2, np.ones(8)))
        assert not list(c.list())


def test_a_series_releases_its_factor(daemon, regular):
    with crout.connect(daemon.address) as c:
        list(c.series([regular(5)] * 2, np.ones(5)))
        assert not list(c.list())
        for _ in c.series([regular(5)] * 2, np.ones(5)):
            assert len(list(c.list())) == 1
            break
        assert not list(c.list())
        with pytest.raises(crout.InvalidRequest):
            list(c.series([regular(5), np.full((5, 5), np.nan)], np.ones(5)))
        assert not list(c.list())
    daemon.await_ended("SolveSeries", "OK")


def test_a_program_may_end_in_the_middle_of_a_series(daemon):
    program = (
        "import sys, numpy as np, crout\n"
        "c = crout.connect(sys.argv[1])\n"
        "steps = c.series([2 * np.eye(3)] * 2, np.ones(3))\n"
        "print(next(steps).x)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, daemon.address], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[0.5 0.5 0.5]\n", "")
    with crout.connect(daemon.address) as c:
        assert not list(c.list())


def test_a_series_continues_after_a_singular_step(client, regular):
    A = regular(10)
    hole = A.copy()
    hole[:, 3] = 0
    series = client.series([A, hole, 1.001 * A], np.ones(10), strategy="refactor")
    assert next(series).accurate
    with pytest.warns(crout.LinAlgWarning, match="singular"):
        step = next(series)
    assert (step.x, step.accurate, step.backward_error) == (None, False, None)
    assert_solves(1.001 * A, next(series).x, np.ones(10))


def test_the_factor_of_a_broken_step_is_recorded(regular):
    series = Series(None, {})
    reply = series.step(regular(3), np.ones(3)).reply()
    made = factor_pb2.Factor(handle="h", version=1, n=3, factor_dtype=2, matrix_dtype=2, unit_diagonal=1)
    reply.feed(service.SolveSeriesResponse(factor=made).SerializeToString())
    assert not reply.done
    assert series.factor.handle == "h"


def test_inaccurate_solutions_cause_warnings(client, regular):
    A = regular(10)
    A[:, 1] = A[:, 0] * (1 + 1e-15 * np.arange(10))  # nearly singular
    with pytest.warns(crout.LinAlgWarning, match="nearly singular"):
        (step,) = client.series([A], np.arange(10.0))
    assert step.warnings == ("nearly_singular",)
    assert step.amplification > 1e13
    (step,) = client.series([regular(10)], np.ones(10))
    with pytest.warns(crout.LinAlgWarning, match="a backward error of 0.5 instead of"):
        _diagnostics.warn_of_step(dataclasses.replace(step, accurate=False, backward_error=0.5))


def test_an_interrupted_series_continues_with_the_handle(daemon, regular, monkeypatch):
    A = regular(12)
    with crout.connect(daemon.address) as c, c.lu_factor(A) as f:
        cut = c.series([A, A], np.ones(12), start=f, strategy="reuse")
        next(cut)  # without a time limit
        daemon.hold("series.step")
        monkeypatch.setattr("crout._transport.Server.time_limit", lambda server, call: 0.5)
        with pytest.raises(crout.DeadlineExceeded):
            next(cut)
        monkeypatch.undo()
        daemon.release("series.step")
        again = c.series([None, A + 1e-7], np.eye(12)[0], start=c.factor(f.handle), strategy="reuse")
        assert [step.strategy for step in again] == ["reuse", "reuse"]


def test_invalid_requests_are_rejected(client, regular, tmp_path):
    for options in ({"strategy": "guess"}, {"accuracy": 1.5}, {"rcond": True}, {"determinant": True}):
        with pytest.raises(crout.InvalidRequest):
            next(client.series([regular(4)], np.ones(4), **options))
    with pytest.raises(TypeError, match="refine"):
        next(client.series([regular(4)], np.ones(4), refine=2))
    text = tmp_path / "b.mtx"
    text.write_text("%%MatrixMarket matrix array real general\n1 1\n1\n")
    with pytest.raises(crout.InvalidRequest, match="read it first"):
        next(client.series([regular(4)], text))
    series = client.series([regular(4), regular(5)], np.ones(4))
    next(series)
    with pytest.raises(crout.InvalidRequest):
        next(series)


def test_a_step_has_the_timeout(daemon, regular):
    with crout.connect(daemon.address) as c:
        daemon.hold("series.step")
        with pytest.raises(crout.DeadlineExceeded, match="step"):
            next(c.series([regular(4)], np.ones(4), timeout=0.5))
        daemon.release("series.step")
        step = next(c.series([regular(4)], np.ones(4), timeout=TIMEOUT))
        assert step.accurate


def test_asyncio(daemon, regular, rng):
    unheard = []

    async def work():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        async with crout.aio.connect(daemon.address) as c:
            matrices = list(drift(regular(30), 1e-6, 4, rng))
            k = 0
            async for step in c.series(matrices, np.ones(30), strategy="reuse"):
                assert_solves(matrices[k], step.x, np.ones(30))
                assert step.age == k
                k += 1
            assert k == 4
            large = regular(500)  # sent in many messages
            async for step in c.series([large, large], np.ones(500)):
                assert step.accurate
            with pytest.raises(crout.InvalidRequest):
                async for _ in c.series([regular(3), np.full((3, 3), np.nan)], np.ones(3)):
                    pass
            sparse = scipy.sparse.csr_array(regular(20))
            matrices = [sparse, crout.Values(1.5 * sparse.data)]
            xs = [step.x async for step in c.series(matrices, np.ones(20))]
            assert_solves(1.5 * sparse.toarray(), xs[1], np.ones(20))
            assert not [f async for f in c.list()]
            async with contextlib.aclosing(c.series([regular(3)] * 2, np.ones(3))) as early:
                async for _ in early:
                    break
            assert not [f async for f in c.list()]
            daemon.hold("series.step")
            with pytest.raises(crout.DeadlineExceeded):
                async for _ in c.series([regular(3)], np.ones(3), timeout=0.5):
                    pass
            daemon.release("series.step")

    asyncio.run(work())
    gc.collect()
    assert unheard == []
