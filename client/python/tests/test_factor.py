# SPDX-License-Identifier: Apache-2.0
"""Methods of factors other than solve."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from accuracy import assert_close, assert_solves

import crout

ALGORITHMS = ["getrf", "gem", "cm", "cmpp", "icm", "icmpp", "block_lu"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lu_as_scipy_returns_it(client, regular, algorithm, dtype):
    A = regular(30, dtype)
    f = client.lu_factor(A, algorithm=algorithm)
    assert f.record.algorithm == algorithm
    P, L, U = f.to_lu()
    assert P.dtype == L.dtype == U.dtype == dtype
    assert_close(P @ L @ U, A, dtype)
    np.testing.assert_array_equal(np.triu(L), np.eye(30))
    np.testing.assert_array_equal(np.tril(U, -1), 0)
    for ours, theirs in zip((P, L, U), scipy.linalg.lu(A), strict=True):
        assert_close(ours, theirs, dtype)  # no interchanges: A's diagonal is dominant
    b = np.ones(30, dtype)
    assert_solves(A, scipy.linalg.lu_solve(f.to_lu_piv(), b), b, dtype)


def test_lu_with_interchanges(client, rng):
    A = rng.standard_normal((40, 40))
    f = client.lu_factor(A)
    ours = (*f.to_lu(), *f.to_lu_piv())
    theirs = (*scipy.linalg.lu(A), *scipy.linalg.lu_factor(A))
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine, other, factor=1e4)


def test_scaled_factors_are_converted_to_factors_of_the_matrix(client, rng):
    A = rng.standard_normal((20, 20)) * 10.0 ** rng.integers(-20, 20, (20, 1))
    f = client.lu_factor(A, equilibrate=True)
    assert f.record.row_scaled
    P, L, U = f.to_lu()
    error = np.abs(P @ L @ U - A).max(axis=1) / np.abs(A).max(axis=1)
    assert error.max() < 1e-13
    sign, logarithm = f.slogdet()
    assert (sign, logarithm) == pytest.approx(np.linalg.slogdet(A), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 25])
def test_rcond_of_the_client_equals_the_servers(client, rng, n):
    A = rng.standard_normal((n, n))
    requested = client.lu_factor(A, rcond=True)
    later = client.lu_factor(A)
    assert later.record.rcond is None
    assert later.rcond == pytest.approx(requested.rcond, rel=1e-6)
    assert later.record.rcond == later.rcond
    assert 1 / np.linalg.cond(A, 1) <= later.rcond * (1 + 1e-9)
    assert later.rcond <= 3 / np.linalg.cond(A, 1)


def after_solves(client, monkeypatch, action, *, once=False):
    """Call `action` after each solve of `client`, or only after the first."""
    run = client._transport.run

    def run_and_act(call):
        result = run(call)
        if call.method == "Solve":
            if once:
                monkeypatch.undo()
            action()
        return result

    monkeypatch.setattr(client._transport, "run", run_and_act)


def test_rcond_belongs_to_one_version(client, regular, monkeypatch):
    f = client.lu_factor(regular(8))
    other = client.factor(f.handle)
    B = 1e3 * np.diag(np.arange(1.0, 9))
    after_solves(client, monkeypatch, lambda: other.refactor(B), once=True)
    assert f.rcond == pytest.approx(1 / 8)
    assert f.version == 2


def test_rcond_fails_if_the_factor_is_always_replaced(client, regular, monkeypatch):
    f = client.lu_factor(regular(8))
    other = client.factor(f.handle)
    after_solves(client, monkeypatch, lambda: other.refactor(regular(8)))
    with pytest.raises(crout.CroutError, match="replaced 5 times") as caught:
        f.rcond  # noqa: B018
    assert caught.value.code == "ABORTED"


def test_rcond_keeps_a_newer_record(client, regular, monkeypatch):
    f = client.lu_factor(regular(8))
    after_solves(client, monkeypatch, lambda: f.refactor(np.eye(8)), once=True)  # simulates another thread
    assert f.rcond == 1
    assert f.version == 2


@pytest.mark.parametrize("algorithm", ["getrf", "cmpp"])
def test_determinants(client, rng, algorithm):
    A = rng.standard_normal((15, 15))
    expected = np.linalg.slogdet(A)
    requested = client.lu_factor(A, determinant=True, algorithm=algorithm)
    later = client.lu_factor(A, algorithm=algorithm)
    for slogdet in (requested.slogdet(), later.slogdet(), client.slogdet(A, algorithm=algorithm)):
        assert tuple(slogdet) == pytest.approx(tuple(expected), rel=1e-12)
    for determinant in (later.det(), client.det(A)):
        assert isinstance(determinant, float)
        assert determinant == pytest.approx(np.linalg.det(A))


def test_refactor_keeps_the_handle(client, regular):
    A, B = regular(10), regular(10)
    f = client.lu_factor(A)
    handle = f.handle
    assert f.refactor(B) is f
    assert (f.handle, f.version) == (handle, 2)
    assert_solves(B, f.solve(np.ones(10)), np.ones(10))
    with pytest.raises(crout.Singular) as caught:
        f.refactor(np.ones((10, 10)))
    assert caught.value.factor.info == 2
    assert f.describe().version == 2
    with pytest.warns(crout.LinAlgWarning, match="info=2"):
        f.refactor(np.ones((10, 10)), replace_if_singular=True)
    assert f.info == 2


def test_a_singular_matrix_is_an_error_only_for_solves(client):
    A = np.array([[1.0, 2], [2, 4]])
    with pytest.warns(crout.LinAlgWarning, match=r"info=2") as warned:
        f = client.lu_factor(A)
    assert warned[0].filename == __file__
    assert issubclass(crout.LinAlgWarning, scipy.linalg.LinAlgWarning)
    assert f.info == 2
    assert f.rcond == 0
    assert f.slogdet() == (0, -np.inf)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        f.solve(np.ones(2))
    assert isinstance(caught.value, crout.Singular)
    assert caught.value.reason == "SINGULAR_MATRIX"
    with pytest.raises(crout.Singular) as caught:
        client.solve(A, np.ones(2))
    assert caught.value.factor.info == 2
    with pytest.warns(crout.LinAlgWarning, match="empty_row"):
        empty = client.lu_factor(scipy.sparse.coo_matrix(([1.0], ([0], [0])), (3, 3)))
    assert empty.record.empty_index == 2


def test_poor_results_cause_warnings(client):
    n = 60
    growing = np.eye(n) - np.tril(np.ones((n, n)), -1)
    growing[:, -1] = 1  # partial pivoting doubles the last column with every step
    with pytest.warns(crout.LinAlgWarning, match=r"pivot growth 5\.7"):
        client.lu_factor(growing)
    with pytest.warns(crout.LinAlgWarning, match="may be numerically singular"):
        f = client.lu_factor(scipy.linalg.hilbert(15), rcond=True)
    with pytest.warns(crout.LinAlgWarning, match="no correct digit"):
        f.solve(np.ones(15), error_bound=True)
    unpivoted = np.random.default_rng(1).standard_normal((30, 30))
    unpivoted[0, 0] = 1e-12
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        complement, _ = client.schur_complement(unpivoted, 10, algorithm="cm")
    assert [str(w.message).partition(" is poor")[0] for w in warned] == ["the factor", "the Schur complement"]
    assert complement.warnings == ("poor_complement",)
    with pytest.warns(crout.LinAlgWarning, match=r"the rank .* may be wrong \(growth 5\.7"):
        form = client.rref(growing)
    assert form.warnings == ("poor_echelon_form",)


def test_rref(client, rng):
    A = np.column_stack([[1.0, 2, 3], [2.0, 4, 6], [1.0, 0, 1], [3.0, 2, 5]])
    form = client.rref(A)
    assert (form.rank, list(form.pivots), form.R.shape) == (2, [0, 2], (3, 4))
    assert (form.growth, form.warnings) == (1, ())
    assert_close(form.R, np.array([[1.0, 2, 0, 1], [0, 0, 1, 2], [0, 0, 0, 0]]))
    assert client.rref(scipy.sparse.csr_matrix(A)).rank == 2
    wide = rng.standard_normal((20, 30)).astype(np.float32)
    form = client.rref(wide, augmented=10)
    assert form.R.dtype == np.float32
    assert_close(form.R[:, 20:], np.linalg.solve(wide[:, :20], wide[:, 20:]), np.float32, factor=1e4)
    assert client.rref(np.diag([1.0, 1e-3]), tolerance=1e-2).rank == 1
    for wrong in ({"augmented": 5}, {"tolerance": -1.0}):
        with pytest.raises(crout.InvalidRequest):
            client.rref(A, **wrong)


def test_schur_complement(client, regular):
    A, k = regular(30), 12
    complement, factor = client.schur_complement(A, k, name="leading")
    expected = A[k:, k:] - A[k:, :k] @ np.linalg.solve(A[:k, :k], A[:k, k:])
    assert_close(complement.S, expected, factor=1e4)
    assert complement.backward_error < 1e-14
    assert (factor.n, factor.name) == (k, "leading")
    assert_solves(A[:k, :k], factor.solve(np.ones(k)), np.ones(k))
    assert_close(client.schur_complement(scipy.sparse.csr_matrix(A), k)[0].S, expected, factor=1e4)
    assert client.schur_complement(A, 30)[0].S.shape == (0, 0)
    A[:k, :k] = 1
    with pytest.raises(crout.Singular) as caught:
        client.schur_complement(A, k)
    assert caught.value.factor.info == 2


def test_iterations(client, regular):
    f = client.lu_factor(regular(64), algorithm="icm", parameters={"section_size": 16, "tolerance": 1e-12})
    iterations = f.iterations()
    assert iterations.sweeps.shape == (4, 4)
    assert iterations.sweeps.min() >= 1
    assert iterations.pivots.shape == (4,)
    assert iterations.bad_elements is not None
    assert iterations.bad_elements.sum() == 0
    parameters = {"variant": "published", "absolute_tolerance": 1e-3}
    with pytest.warns(crout.LinAlgWarning, match="the factor is poor"):
        published = client.lu_factor(regular(64), algorithm="icmpp", parameters=parameters).iterations()
    assert published.sweeps.shape == (1, 1)
    with pytest.raises(crout.InvalidRequest):
        client.lu_factor(regular(4), algorithm="getrf", parameters=parameters)
    with pytest.raises(crout.InvalidRequest):
        client.lu_factor(regular(4), algorithm="getrf").iterations()


def test_lists_and_descriptions(daemon, regular):
    with crout.connect(daemon.address, tenant="one") as c, crout.connect(daemon.address) as other:
        made = [c.lu_factor(np.eye(2), name=name) for name in ("a", "b", "a")]
        assert [f.handle for f in c.list("a")] == [made[2].handle, made[0].handle]
        assert list(other.list()) == []
        found = c.factor(made[1].handle)
        assert found.name == "b"
        assert_close(found.solve([1.0, 2.0]), [1.0, 2.0])
        with pytest.raises(crout.HandleExpired):
            other.factor(made[0].handle)
        with pytest.raises(crout.HandleExpired, match=r"list\('demo'\)"):
            c.factor("demo")


def test_lists_have_every_page(daemon):
    with crout.connect(daemon.address) as c:
        handles = {c.lu_factor([[1.0]]).handle for _ in range(101)}  # a page has 100
        assert {f.handle for f in c.list()} == handles


def test_server_info_and_estimate(client):
    info = client.server_info()
    assert info.devices[0].name == "host"
    assert "getrf" in info.devices[0].algorithms
    assert (info.default_lease, info.draining) == (3600, False)
    estimate = client.estimate(1000)
    assert estimate.fits
    assert estimate.peak_bytes > 8_000_000
    assert client.estimate(1000, np.float32).peak_bytes < estimate.peak_bytes
    assert estimate.precision is None
    low = client.estimate(1000, precision="single")
    assert low.precision == "single"
    assert low.cached_bytes < estimate.cached_bytes
    sparse = client.estimate(1000, nnz=3000)
    assert (sparse.rough, estimate.rough) == (True, False)
    assert sparse.cached_bytes < estimate.cached_bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("vector", [np.int64, np.float32, np.float64, np.complex64, np.complex128])
def test_a_linear_operator_accepts_every_type(client, regular, dtype, vector):
    A = regular(20, dtype)
    M = client.lu_factor(A).as_linear_operator()
    assert M.dtype == dtype
    b = (np.arange(40).reshape(20, 2) * (1 + (1j if np.dtype(vector).kind == "c" else 0))).astype(vector)
    assert_close(M @ b, np.linalg.solve(A, b), dtype)
    assert_close(M @ b[:, 0], np.linalg.solve(A, b[:, 0]), dtype)
    assert_close(M.rmatvec(b[:, 0]), np.linalg.solve(A.T, b[:, 0]), dtype)
    assert_close(M.H @ b, np.linalg.solve(A.T, b), dtype)


@pytest.mark.parametrize("complex_system", [False, True])
def test_a_preconditioner_of_gmres(client, regular, complex_system):
    A = regular(50)
    near = A + 0.01 * np.diag(np.arange(50)) + (0.1j * np.eye(50) if complex_system else 0)
    b = np.ones(50)
    M = client.lu_factor(A).as_linear_operator(verify=False)
    steps = []
    x, failed = scipy.sparse.linalg.gmres(
        near, b, M=M, atol=0.0, callback=steps.append, callback_type="pr_norm"
    )
    assert failed == 0
    assert len(steps) < 20
    assert np.abs(near @ x - b).max() < 1e-4


def test_singular_factors_with_unit_u_have_no_p_l_u(client):
    A = np.array([[1.0, 2], [2, 4]])
    with pytest.warns(crout.LinAlgWarning):
        f = client.lu_factor(A, algorithm="cmpp")
    with pytest.raises(crout.Singular, match="getrf"):
        f.to_lu()
    with pytest.warns(crout.LinAlgWarning):
        f = client.lu_factor(A, algorithm="getrf")
    P, L, U = f.to_lu()
    np.testing.assert_array_equal(P @ L @ U, A)


def test_p_l_u_with_a_zero_second_pivot(client):
    A = np.array([[1.0, 2, 3], [2, 4, 7], [4, 8, 9]])
    with pytest.warns(crout.LinAlgWarning, match="info=2"):
        f = client.lu_factor(A, algorithm="getrf")
    P, L, U = f.to_lu()
    np.testing.assert_allclose(P @ L @ U, A, rtol=1e-15)
    assert U[1, 1] == 0
    with pytest.warns(crout.LinAlgWarning):
        f = client.lu_factor(A, algorithm="cmpp")
    for download in (f.to_lu, f.to_lu_piv):
        with pytest.raises(crout.Singular, match="algorithm='getrf'"):
            download()


def test_p_l_u_of_badly_scaled_rows(client):
    A = np.diag([1e-310, 1e308, 1.0])
    P, L, U = client.lu_factor(A).to_lu()
    np.testing.assert_array_equal(L, np.eye(3))
    np.testing.assert_allclose(P @ L @ U, A, rtol=1e-15)


def test_a_linear_operator_rejects_options_that_scipy_controls(client):
    pytest.importorskip("scipy")
    f = client.lu_factor(np.eye(3))
    shown = inspect.signature(f.as_linear_operator).parameters
    assert "refine" in shown
    assert not {"trans", "overwrite_b"} & set(shown)
    for options in ({"trans": 1}, {"overwrite_b": True}):
        with pytest.raises(TypeError, match="is not an option"):
            f.as_linear_operator(**options)
