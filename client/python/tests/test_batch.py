# SPDX-License-Identifier: Apache-2.0
"""Batches: many matrices of different sizes, one handle."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from accuracy import assert_solves

import crout
from crout import _batch_replies
from crout.v1 import factorization_service_pb2 as service

SIZES = [5, 1, 0, 40, 3, 17]


@pytest.fixture
def matrices(regular):
    return [regular(n) for n in SIZES]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("trans", [0, "T", "C"])
def test_solves_with_every_member(client, matrices, rng, dtype, trans):
    batch = [(A + 1j * A[::-1] if np.dtype(dtype).kind == "c" else A).astype(dtype) for A in matrices]
    with client.lu_factor(batch, name="elements") as f:
        assert len(f) == len(SIZES)
        assert f.dtype == dtype
        assert f.shapes.tolist() == [[n, n] for n in SIZES]
        assert not f.info.any()
        b = [rng.standard_normal((n, k)) for k, n in enumerate(SIZES)]
        b[0] = b[0].reshape(5, 0)
        b[1] = np.ones(1)
        solution = f.solve(b, trans=trans, full_output=True)
        for A, x, side in zip(batch, solution.x, b, strict=True):
            assert x.dtype == dtype
            assert x.shape == side.shape
            op = {0: A, "T": A.T, "C": A.conj().T}[trans]
            if x.size:
                assert_solves(op, x, side.astype(dtype), dtype)
        assert solution.backward_error.max() < 30 * np.finfo(dtype).eps
        handle = f.handle
    with pytest.raises(crout.HandleExpired):
        client.describe(handle)


def test_a_request_id_finds_the_factor_of_the_first_call(client, matrices):
    matrices[1][0, 0] = 0
    with pytest.warns(crout.LinAlgWarning):
        first = client.lu_factor(matrices, lease="10m", request_id="elements-17")
    with pytest.warns(crout.LinAlgWarning):
        again = client.lu_factor(matrices, lease="10m", request_id="elements-17")
    assert again.handle == first.handle
    assert again.info.tolist() == first.info.tolist()
    assert again.record.pivot_growth.tolist() == first.record.pivot_growth.tolist()
    with pytest.raises(crout.ProtocolError, match="the server sent"):
        client.lu_factor(matrices[:2], lease="10m", request_id="elements-17")
    with pytest.raises(crout.CroutError, match="belongs to the factor of a batch, not of a matrix"):
        client.lu_factor(np.eye(2), request_id="elements-17")
    first.release()


def test_sparse_members_are_sent_dense(client, regular):
    A = [regular(4), scipy.sparse.random(7, 7, 0.3, random_state=1) + 4 * scipy.sparse.eye(7)]
    with client.lu_factor(A) as f:
        x = f.solve([np.ones(4), np.ones(7)])
    assert_solves(A[0], x[0], np.ones(4))
    assert_solves(A[1].toarray(), x[1], np.ones(7))
    with pytest.raises(crout.InvalidRequest, match=r"member 1 is a sparse matrix.*factor it alone"):
        client.lu_factor([np.eye(2), scipy.sparse.eye(10**6)])


def test_solves_with_some_members_in_any_order(client, matrices, rng):
    f = client.lu_factor(matrices)
    chosen = [3, 0, 5]
    b = [rng.standard_normal(SIZES[k]) for k in chosen]
    for k, x, side in zip(chosen, f.solve(b, chosen), b, strict=True):
        assert_solves(matrices[k], x, side)
    assert f.solve([], []) == []
    for members, sides, text in [
        ([6], [np.ones(1)], "member 6 does not exist: the batch has 6 members"),
        ([0, 0], [np.ones(5)] * 2, "duplicates"),
        ([0], [], "0 right-hand sides for 1"),
        ([0], [np.ones(4)], "has 4 rows: give 5"),
        ([0], [np.ones(5) * 1j], "complex"),
    ]:
        with pytest.raises(crout.InvalidRequest, match=text):
            f.solve(sides, members)


def test_members_and_right_hand_sides_from_archives(client, regular, tmp_path):
    paths = [tmp_path / "A.npz", tmp_path / "b.npz"]
    A = regular(4)
    for path, value in zip(paths, (A, np.ones((4, 1))), strict=True):
        scipy.sparse.save_npz(path, scipy.sparse.csc_matrix(value))
    expected = np.linalg.solve(A, np.ones((4, 1)))
    np.testing.assert_allclose(client.solve([paths[0], A], [paths[1], np.ones(4)])[0], expected)
    np.testing.assert_allclose(client.lu_factor(paths[:1]).solve(paths[1:])[0], expected)
    np.testing.assert_allclose(next(client.series([A], str(paths[1]))).x, expected)
    text = tmp_path / "A.mtx"
    text.write_text("%%MatrixMarket matrix array real general\n1 1\n1\n")
    with pytest.raises(crout.InvalidRequest, match="mmread"):
        client.lu_factor([text])


def test_a_three_dimensional_array_is_a_batch(client, rng):
    stack = rng.standard_normal((100, 6, 6))
    b = rng.standard_normal((100, 6))
    expected = np.linalg.solve(stack, b[..., np.newaxis])[..., 0]
    for x in (client.lu_factor(stack).solve(b), client.solve(stack, b)):
        assert isinstance(x, np.ndarray)
        np.testing.assert_allclose(x, expected, rtol=1e-9)
    assert isinstance(client.solve(list(stack), b), list)
    assert client.solve(np.ones((0, 6, 6)), np.ones((0, 6))).shape == (0, 6)


def test_nested_numbers_are_one_matrix(client):
    rows = [[4.0, 1.0], [1.0, 3.0]]
    for A in (rows, tuple(map(tuple, rows)), [np.array(row) for row in rows]):
        f = client.lu_factor(A)
        assert isinstance(f, crout.Factor)
        assert f.n == 2
        np.testing.assert_allclose(client.solve(A, [5.0, 4.0]), [1.0, 1.0])
    for batch in ([rows], (rows, [[2.0]]), [np.array(rows)], np.array([rows]), [scipy.sparse.eye(2)]):
        f = client.lu_factor(batch)
        assert isinstance(f, crout.BatchFactor)
        assert len(f) == len(batch)
    with pytest.raises(crout.InvalidRequest, match="member 1 has 1 dimensions"):
        client.lu_factor([np.eye(2), np.ones(2)])
    with pytest.raises(crout.InvalidRequest, match="this array has 3"):
        client.slogdet([rows])


def test_a_batch_accepts_only_its_own_options(client, matrices):
    with pytest.raises(
        TypeError, match="'algorithm': the options are timeout, progress, device, keep_matrix, name"
    ):
        client.lu_factor(matrices, algorithm="getrf")
    with pytest.raises(
        TypeError,
        match="'refine': the options are timeout, progress, device, keep_matrix, trans, verify, members",
    ):
        client.solve(matrices, [], refine=1)
    with pytest.raises(TypeError, match="'members'"):
        client.solve(np.eye(2), np.ones(2), members=[0])


def test_singular_members_do_not_affect_other_members(client, matrices):
    matrices[0][:, 2] = 0
    matrices[3][1, 1] = np.nan
    with pytest.warns(crout.LinAlgWarning) as warnings:
        f = client.lu_factor(matrices)
    assert "1 of 6 members is singular" in str(warnings[0].message)
    assert "1 of 6 members has a poor or non-finite factor; the first is 3" in str(warnings[1].message)
    assert f.info.tolist() == [3, 0, 0, 0, 0, 0]
    assert np.isinf(f.record.quality[3])
    solution = f.solve([np.ones(5), np.ones(3)], [0, 4], full_output=True)
    assert np.isnan(solution.x[0]).all()
    assert solution.info.tolist() == [3, 0]
    assert_solves(matrices[4], solution.x[1], np.ones(3))


@pytest.mark.filterwarnings("error")
def test_a_warning_as_error_releases_the_batch(client, matrices):
    matrices[0][:, 2] = 0
    with pytest.raises(crout.LinAlgWarning):
        client.lu_factor(matrices, name="left behind")
    assert list(client.list(name="left behind")) == []


def test_batched_and_single_factors_have_the_same_bits(client, matrices, rng):
    b = rng.standard_normal((40, 2))
    together = client.lu_factor(matrices).solve([b], [3])[0]
    alone = client.lu_factor([matrices[3]]).solve([b])[0]
    assert together.tobytes() == alone.tobytes()


def test_rectangular_members_are_factored(client, rng):
    f = client.lu_factor([rng.standard_normal((7, 3)), rng.standard_normal((2, 9))])
    assert f.shapes.tolist() == [[7, 3], [2, 9]]
    with pytest.raises(crout.InvalidRequest, match="7 x 3"):
        f.solve([np.ones(7)], [0])


def test_factored_and_solved_in_one_call(client, matrices, rng):
    chosen = [3, 0, 5]
    b = [rng.standard_normal((SIZES[k], 2)) for k in chosen]
    before = [f.handle for f in client.list()]
    solution = client.solve(matrices, b, members=chosen, full_output=True)
    assert [f.handle for f in client.list()] == before
    assert solution.backward_error.max() < 1e-14
    f = client.lu_factor(matrices)
    for x, y in zip(solution.x, f.solve(b, chosen), strict=True):
        assert x.tobytes() == y.tobytes()
    sides = [rng.standard_normal(n) for n in SIZES]
    for A, x, side in zip(matrices, client.solve(matrices, sides, trans="T"), sides, strict=True):
        if x.size:
            assert_solves(A.T, x, side)
    matrices[0][:, 2] = 0
    with pytest.warns(crout.LinAlgWarning, match="1 of 6 members is singular"):
        assert np.isnan(client.solve(matrices, [np.ones(5)], members=[0])[0]).all()
    assert client.solve([], []) == []
    with pytest.raises(crout.InvalidRequest, match="has 4 rows: give 5"):
        client.solve(matrices, [np.ones(4)], members=[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_members_are_downloaded(client, rng, dtype):
    shapes = [(5, 5), (7, 3), (2, 9), (0, 0), (1, 1)]
    batch = [rng.standard_normal(shape) for shape in shapes]
    batch = [(A + 1j * A if dtype == np.complex128 else A).astype(dtype) for A in batch]
    f = client.lu_factor(batch)
    for k, A in enumerate(batch):
        P, L, U = f.to_lu(k)
        assert L.dtype == dtype
        np.testing.assert_allclose(P @ L @ U, A, atol=20 * np.finfo(dtype).eps)
        lu, piv = f.to_lu_piv(k)
        assert lu.shape == A.shape
        assert piv.shape == (min(A.shape),)
    with pytest.raises(crout.InvalidRequest, match="member 5 does not exist"):
        f.to_lu(5)


def test_refactor_keeps_the_handle(client, matrices):
    f = client.lu_factor(matrices, lease="10m")
    handle = f.handle
    assert f.refactor([2 * A for A in matrices]).version == 2
    assert f.handle == handle
    assert_solves(2 * matrices[0], f.solve([np.ones(5)], [0])[0], np.ones(5))
    with pytest.raises(crout.CroutError, match="factor it as a new batch"):
        f.refactor(matrices[:-1])
    assert f.version == 2


def test_a_batch_without_its_matrices(client, matrices):
    f = client.lu_factor(matrices, keep_matrix=False)
    solution = f.solve([np.ones(5)], [0], full_output=True)
    assert_solves(matrices[0], solution.x[0], np.ones(5))
    assert np.isnan(solution.backward_error).all()


def test_calls_for_a_factor_reject_a_batch(client, matrices):
    f = client.lu_factor(matrices)
    with pytest.raises(crout.CroutError, match="batch_rhs"):
        client.lu_solve(f.handle, np.ones(40))
    with pytest.raises(crout.CroutError, match="a batch: send a batch of the same sizes"):
        client.factor(f.handle).refactor(np.eye(40))
    assert client.describe(f).algorithm == "irr_lu"
    assert pickle.loads(pickle.dumps(f)).solve([np.ones(1)], [1])[0].shape == (1,)
    f.renew("5m")
    f.release()


def test_an_empty_batch(client):
    f = client.lu_factor([])
    assert len(f) == 0
    assert f.solve([]) == []


def test_replies_of_the_wrong_size_are_rejected():
    reply = _batch_replies.BatchFactorReply(service.FactorizeResponse, np.array([[2, 2]]))
    with pytest.raises(crout.ProtocolError, match="more data"):
        reply.feed(service.FactorizeResponse(member_data=bytes(21)).SerializeToString())
    reply = _batch_replies.BatchFactorReply(service.FactorizeResponse, np.array([[2, 2]]))
    reply.feed(service.FactorizeResponse(member_data=bytes(19)).SerializeToString())
    with pytest.raises(crout.ProtocolError, match="less data"):
        reply.finish()
    response = service.FactorizeResponse()
    response.factor.batch.members = 3
    with pytest.raises(crout.ProtocolError, match="the server sent"):
        reply.feed(response.SerializeToString())
