# SPDX-License-Identifier: Apache-2.0
"""crout.scipy: results, lifetimes and errors. test_scipy_suite.py runs SciPy's own tests."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from daemon import eventually

import crout
import crout.scipy as cs

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
N = 40


@pytest.fixture(autouse=True)
def served(client):
    """Use the test's client."""
    cs.use(client)
    yield client
    cs.use(None)


@pytest.fixture
def laplacian():
    line = scipy.sparse.diags([-1.4, 2.5, -1.0], [-1, 0, 1], (N, N))
    eye = scipy.sparse.eye(N)
    return (scipy.sparse.kron(eye, line) + scipy.sparse.kron(line, eye)).tocsc()


def handles(client):
    return {factor.handle for factor in client.list()}


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-4 if x.dtype.char in "fF" else 1e-9)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve_uses_the_factor(regular, rng, dtype, trans):
    A, b = regular(N, dtype), rng.standard_normal((N, 2)).astype(dtype)
    factors = cs.lu_factor(A)
    x = cs.lu_solve(factors, b, trans)
    assert x.dtype == dtype
    close(x, scipy.linalg.lu_solve(scipy.linalg.lu_factor(A), b, trans))
    lu, piv = factors
    ours, theirs = (lu, piv), scipy.linalg.lu_factor(A)
    close(lu, theirs[0])
    np.testing.assert_array_equal(piv, theirs[1])
    del factors
    gc.collect()
    np.testing.assert_array_equal(cs.lu_solve(ours, b, trans), x)


def test_other_pairs_are_solved_by_scipy(regular, monkeypatch):
    A, b = regular(N), np.ones(N)
    lu, piv = cs.lu_factor(A)
    with pytest.raises(ValueError, match="read-only"):
        lu[0, 0] = 0
    lu.flags.writeable = True
    lu *= 2  # U becomes 2 U; L changes, too
    np.testing.assert_array_equal(cs.lu_solve((lu, piv), b), scipy.linalg.lu_solve((lu, piv), b))
    for pair in (scipy.linalg.lu_factor(A), pickle.loads(pickle.dumps(cs.lu_factor(A)))):
        assert type(pair) is tuple
        close(cs.lu_solve(pair, b), np.linalg.solve(A, b))


def test_singular_and_rectangular_matrices_have_factors_too(rng):
    with pytest.warns(scipy.linalg.LinAlgWarning, match="Diagonal number 2 is exactly zero") as caught:
        lu, piv = cs.lu_factor([[1.0, 2.0], [2.0, 4.0]])
    assert caught[0].filename == __file__
    assert type(piv) is np.ndarray
    assert (lu[0].tolist(), piv.tolist()) == ([2, 4], [1, 1])
    A = rng.standard_normal((3, 5))
    for ours, theirs in zip(cs.lu_factor(A), scipy.linalg.lu_factor(A), strict=True):
        np.testing.assert_allclose(ours, theirs)
    with pytest.raises(ValueError, match="incompatible"):
        cs.lu_solve(cs.lu_factor(A), np.ones(3))


def test_stacks(rng):
    A = rng.standard_normal((2, 3, 5, 5))
    for b in (np.ones(5), rng.standard_normal((5, 2)), rng.standard_normal((3, 5, 2))):
        expected = np.linalg.solve(A, np.broadcast_to(b, (2, 3, 5, 2)) if b.ndim > 1 else np.ones((5, 1)))
        expected = expected if b.ndim > 1 else expected[..., 0]
        np.testing.assert_allclose(cs.solve(A, b), expected)
        np.testing.assert_allclose(cs.lu_solve(cs.lu_factor(A), b), expected)
    np.testing.assert_allclose(cs.inv(A), np.linalg.inv(A))
    b = rng.standard_normal((4, 5, 2))
    np.testing.assert_allclose(cs.solve(A[0, 0], b), np.linalg.solve(A[0, 0], b))
    np.testing.assert_allclose(cs.lu_solve(cs.lu_factor(A[0, 0]), b), np.linalg.solve(A[0, 0], b))
    with pytest.raises(np.linalg.LinAlgError, match=r"slice\(s\) \[1\]"):
        cs.solve(np.stack([np.eye(2), np.ones((2, 2))]), np.ones(2))


@pytest.mark.parametrize("assume_a", ["sym", "her", "pos", "gen", "upper triangular"])
@pytest.mark.parametrize("lower", [False, True])
def test_structures(regular, assume_a, lower):
    if assume_a == "upper triangular" and scipy.__version__ < "1.15":
        pytest.skip("SciPy before 1.15 has no such structure")
    A = regular(N, complex) + 1j * regular(N)
    A = A + (A.T if assume_a == "sym" else A.conj().T)
    given = A
    if assume_a in ("sym", "her"):  # the other triangle is not used
        given = (np.tril(A) if lower else np.triu(A)) + (0 if lower else np.tril(np.full_like(A, 7), -1))
    x = cs.solve(given, np.ones(N), lower=lower, assume_a=assume_a)
    close(x, np.linalg.solve(np.triu(A) if assume_a == "upper triangular" else A, np.ones(N)))


def test_solve_warns_and_raises_like_scipy(regular):
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + 1e-17, 1.0], [1e-20, 0.0, 1.0]])
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        cs.solve(np.ones((3, 3)), np.ones(3))
    A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0 + 1e-14]])
    with pytest.warns(scipy.linalg.LinAlgWarning, match="ill-conditioned") as caught:
        cs.inv(A - np.diag([0, 0, 1e-14]))
    assert caught[0].filename == __file__
    for bad, message in ((np.eye(3) * np.nan, "infs or NaNs"), (np.ones((2, 3)), "square")):
        with pytest.raises(ValueError, match=message):
            cs.solve(bad, np.ones(3))
    with pytest.raises(NotImplementedError, match="complex"):
        cs.solve(regular(3, complex), np.ones(3), transposed=True)
    with pytest.raises(ValueError, match="structure"):
        cs.solve(np.eye(3), np.ones(3), assume_a="round")


def test_memory_is_reused_on_request(regular):
    A, b = np.asfortranarray(regular(N)), np.ones(N)
    x = cs.solve(A, b, overwrite_b=True)
    assert np.shares_memory(x, b)
    inverse = cs.inv(A.copy(order="F"))
    assert cs.inv(A, overwrite_a=True) is A
    np.testing.assert_array_equal(A, inverse)


@pytest.mark.parametrize("dtype", TYPES)
def test_splu(laplacian, rng, dtype):
    A = laplacian.astype(dtype)
    lu = cs.splu(A)
    n = N * N
    assert lu.shape == (n, n)
    b = rng.standard_normal((n, 2)).astype(dtype)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        x = lu.solve(b, trans)
        assert x.dtype == dtype
        assert np.abs(op @ x - b).max() < 1e3 * np.finfo(dtype).eps
    Pr = scipy.sparse.csc_matrix((np.ones(n), (lu.perm_r, np.arange(n))))
    Pc = scipy.sparse.csc_matrix((np.ones(n), (np.arange(n), lu.perm_c)))
    assert abs(Pr.T @ (lu.L @ lu.U) @ Pc.T - A).max() < 100 * np.finfo(dtype).eps
    assert lu.nnz == lu.L.nnz + lu.U.nnz < 0.1 * n**2
    assert type(lu.L) is type(scipy.sparse.linalg.splu(A).L)


def test_superlu_raises_like_scipy(laplacian):
    theirs, ours = scipy.sparse.linalg.splu(laplacian), cs.splu(laplacian)
    n = N * N
    wrong = [(np.ones(n) * 1j,), (np.ones(3),), (np.ones((n, 1, 1)),), (np.ones(n), "C")]
    for arguments in wrong:
        with pytest.raises((TypeError, ValueError)) as expected:
            theirs.solve(*arguments)
        with pytest.raises(expected.type) as found:
            ours.solve(*arguments)
        assert str(found.value) == str(expected.value)
    assert np.isnan(ours.solve(np.full(n, np.nan))).all()
    for bad in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="pickle"):
            bad(ours)
    with pytest.raises(RuntimeError, match="exactly singular"):
        cs.splu(scipy.sparse.csc_matrix((3, 3)))
    with pytest.raises(ValueError, match="square"):
        cs.splu(laplacian[:, :3])
    with pytest.raises((TypeError, ValueError)):
        cs.splu(laplacian, permc_spec="SIDEWAYS")
    with pytest.warns(scipy.sparse.SparseEfficiencyWarning, match="CSC") as caught:
        cs.splu(laplacian.tocsr(), options={"SymmetricMode": True}, diag_pivot_thresh=0.0)
    assert caught[0].filename == __file__


def test_scipy_factors_in_the_natural_order(laplacian):
    lu = cs.splu(laplacian, permc_spec="NATURAL")
    assert isinstance(lu, scipy.sparse.linalg.SuperLU)
    np.testing.assert_array_equal(lu.perm_c, np.arange(N * N))


def test_spsolve_and_factorized(laplacian, rng, monkeypatch):
    n = N * N
    b = rng.standard_normal((n, 3))
    expected = scipy.sparse.linalg.spsolve(laplacian, b)
    for A in (laplacian, laplacian.tocsr()):
        np.testing.assert_allclose(cs.spsolve(A, b), expected)
        assert cs.spsolve(A, b[:, :1]).shape == (n,)
    monkeypatch.setattr("crout._scipy_sparse._ELEMENTS_AT_ONCE", 2 * n)
    x = cs.spsolve(laplacian, scipy.sparse.csc_matrix(b))
    assert x.format == "csc"
    np.testing.assert_allclose(x.toarray(), expected)
    np.testing.assert_allclose(cs.factorized(laplacian)(b[:, 0]), expected[:, 0])
    small = laplacian[:9, :9]
    np.testing.assert_allclose(cs.inv(small).toarray(), np.linalg.inv(small.toarray()))
    with pytest.warns(cs.MatrixRankWarning, match="exactly singular"):
        assert np.isnan(cs.spsolve(scipy.sparse.csc_matrix((3, 3)), np.ones(3))).all()


def test_preconditioners(laplacian):
    nearby = laplacian + 0.05 * scipy.sparse.eye(N * N)
    b = np.ones(N * N)
    for A, options in ((nearby, {"dtype": np.float32}), (nearby.toarray(), {}), (cs.splu(nearby), {})):
        steps = []
        M = cs.preconditioner(A, **options)
        _x, failed = scipy.sparse.linalg.gmres(
            laplacian, b, M=M, atol=0.0, callback=steps.append, callback_type="pr_norm"
        )
        assert failed == 0
        assert len(steps) < 30
        assert (M @ (1j * b)).dtype == complex
    with pytest.raises(TypeError, match="dtype"):
        cs.preconditioner(cs.splu(nearby), dtype=np.float32)


def test_factors_are_released_with_their_objects(client, laplacian, regular):
    before = handles(client)
    lu, piv = cs.lu_factor(regular(N))
    solve = cs.factorized(laplacian)
    assert len(handles(client) - before) == 2
    solve(np.ones(N * N))
    del solve
    gc.collect()
    assert eventually(lambda: len(handles(client) - before) == 1)
    cs.lu_solve((lu, piv), np.ones(N))
    del lu
    gc.collect()
    assert eventually(lambda: handles(client) == before)
    assert eventually(lambda: client._releases._thread is None)


def test_factors_are_released_when_the_client_closes(client, address, laplacian):
    before = handles(client)
    other = crout.connect(address)
    cs.use(other)
    lu = cs.splu(laplacian)
    assert handles(client) != before
    other.close()
    assert handles(client) == before
    with pytest.raises(crout.Cancelled):
        lu.solve(np.ones(N * N))


def test_lost_factors_are_made_again(client, laplacian, regular):
    before = handles(client)
    A = regular(N)
    lu, dense, unpacked = cs.splu(laplacian), cs.lu_factor(A), cs.lu_factor(A)
    stack = cs.lu_factor(A[np.newaxis])
    arrays = tuple(unpacked)
    for handle in handles(client) - before:
        client.release(handle)
    assert np.abs(laplacian @ lu.solve(np.ones(N * N)) - 1).max() < 1e-9
    for pair in (dense, unpacked, arrays):
        np.testing.assert_allclose(A @ cs.lu_solve(pair, np.ones(N)), 1)
    np.testing.assert_allclose(A @ cs.lu_solve(stack, np.ones(N))[0], 1)


@pytest.mark.parametrize("overwrite_a", [False, True])
def test_the_caller_may_change_the_matrix(client, regular, overwrite_a):
    A = regular(N)
    before, B = handles(client), A.copy()
    factors = cs.lu_factor(A, overwrite_a)
    A[:] = 0
    for handle in handles(client) - before:
        client.release(handle)
    np.testing.assert_allclose(B @ cs.lu_solve(factors, np.ones(N)), 1)


def test_threads_share_the_default_client(monkeypatch, address, regular):
    monkeypatch.setenv("CROUT_SERVER", address)
    cs.use(None)
    A = regular(N)
    clients = []

    def work():
        np.testing.assert_allclose(A @ cs.solve(A, np.ones(N)), 1)
        clients.append(crout._scipy_server.current())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clients) == 8
    assert len(set(map(id, clients))) == 1
    clients[0].close()
    np.testing.assert_allclose(A @ cs.solve(A, np.ones(N)), 1)  # by a new client
    cs.use(address)
    np.testing.assert_allclose(A @ cs.solve(A, np.ones(N)), 1)
    with pytest.raises(TypeError, match="address"):
        cs.use(3)


FORK = """
import os, sys
import numpy as np, crout.scipy as cs
A = np.array([[4.0, 1.0], [1.0, 3.0]])
factors = cs.lu_factor(A)
child = os.fork()
if child == 0:
    del factors
    os._exit(0)
os.waitpid(child, 0)
client = crout._scipy_server.current()
[kept] = client.list()
print(kept.handle, cs.lu_solve(factors, [5.0, 4.0]))
"""


def test_a_forked_child_does_not_release_and_the_exit_does(program, daemon):
    command = [sys.executable, "-W", "error", "-c", FORK.replace("import numpy", "import crout, numpy")]
    env = {"CROUT_SERVER": daemon.address, "PATH": "", "GRPC_VERBOSITY": "NONE"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.endswith("[1. 1.]\n")
    with crout.connect(daemon.address) as client:
        assert list(client.list()) == []


def test_the_module_is_not_loaded_without_being_imported():
    code = "import sys, crout; assert 'crout.scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_no_warning_for_a_good_solution(laplacian):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.spsolve(laplacian, np.ones(N * N))
