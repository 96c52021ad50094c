# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices with sparse factors, from scipy.sparse and from files."""

import warnings

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.linalg
from accuracy import assert_close

import crout

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
M = 90  # the dense form would have 65 million elements


@pytest.fixture
def grid():
    """Convection and diffusion on a grid of M x M points: unsymmetric, 5 entries per row."""

    def make(dtype=float, seed=0):
        line = scipy.sparse.diags([-1.4, 2.5, -1.0], [-1, 0, 1], (M, M))
        a = scipy.sparse.kron(scipy.sparse.eye(M), line) + scipy.sparse.kron(line, scipy.sparse.eye(M))
        a = a.tocsr().astype(dtype)
        a.data *= 1 + 1e-3 * seed * (np.arange(a.nnz) % 7)
        if np.dtype(dtype).kind == "c":
            a.data *= np.exp(0.3j * (np.arange(a.nnz) % 5))
        return a

    return make


def error(A, x, b):
    """Return the normwise backward error."""
    wide = A.astype(np.result_type(A.dtype, np.float64))
    scale = abs(wide).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    return np.abs(b - wide @ x).max() / scale


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_is_factored_as_sparse_and_solves(client, grid, rng, dtype, form):
    A = grid(dtype).asformat(form)
    f = client.lu_factor(A)
    assert f.record.nnz == A.nnz
    sparse = f.record.sparse
    assert sparse is not None
    assert A.nnz < sparse.lu_entries < M**3
    assert sparse.flops > sparse.lu_entries
    assert sparse.ordering in ("amd", "metis")
    assert 1 < sparse.levels <= sparse.fronts <= M * M
    assert sparse.largest_front >= M
    assert f.record.bytes < M**4
    b = rng.standard_normal((M * M, 3))
    for trans, op in ((0, A), (1, A.T), (2, A.conj().T)):
        x = f.solve(b.astype(dtype), trans=trans)
        assert x.dtype == dtype
        assert error(op, x, b.astype(dtype)) < 100 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("equilibrate", [False, True])
def test_downloads_l_and_u(client, grid, dtype, equilibrate):
    A = grid(dtype)
    f = client.lu_factor(A, equilibrate=equilibrate)
    lu = f.to_sparse_lu()
    assert lu.L.dtype == lu.U.dtype == dtype
    assert lu.L.nnz + lu.U.nnz == f.record.sparse.lu_entries + M * M
    assert (lu.L.diagonal() == 1).all()
    assert abs(scipy.sparse.triu(lu.L, 1)).nnz == abs(scipy.sparse.tril(lu.U, -1)).nnz == 0
    difference = (lu.L @ lu.U).tocsr()[lu.perm_r][:, lu.perm_c] - A
    assert abs(difference).max() < 100 * np.finfo(dtype).eps * abs(A).max()


def test_the_permutations_are_those_of_superlu(client, rng):
    A = scipy.sparse.random(M, M, density=0.05, random_state=7, format="csc") + scipy.sparse.eye(M)
    A = (scipy.sparse.diags(10.0 ** rng.uniform(-9, 9, M)) @ A).tocsc()
    lu = client.lu_factor(A, algorithm="multifrontal", equilibrate=True).to_sparse_lu()
    Pr, Pc = np.zeros((M, M)), np.zeros((M, M))
    Pr[lu.perm_r, np.arange(M)] = Pc[np.arange(M), lu.perm_c] = 1
    error = np.abs(Pr.T @ (lu.L @ lu.U).toarray() @ Pc.T - A.toarray()).max(axis=1)
    assert (error < 1e-13 * np.abs(A.toarray()).max(axis=1)).all()
    assert lu.slogdet().logabsdet == pytest.approx(np.linalg.slogdet(A.toarray())[1])


def test_dense_and_sparse_downloads_match_the_factor(client, grid):
    f = client.lu_factor(np.eye(3))
    with pytest.raises(crout.InvalidRequest, match=r"to_lu\(\)"):
        f.to_sparse_lu()
    f = client.lu_factor(grid())
    for download in (f.to_lu, f.to_lu_piv):
        with pytest.raises(crout.InvalidRequest, match=r"to_sparse_lu\(\)"):
            download()


@pytest.mark.filterwarnings("ignore::crout.LinAlgWarning")
def test_a_structurally_singular_matrix_has_no_lu(client):
    A = scipy.sparse.identity(M, format="lil")
    A[7, 7] = 0
    f = client.lu_factor(A.tocsr(), algorithm="multifrontal")
    with pytest.raises(crout.Singular, match="empty_row"):
        f.to_sparse_lu()


def test_an_estimate_for_the_same_pattern_is_exact(client, grid):
    f = client.lu_factor(grid())
    guess, exact = client.estimate(M * M, nnz=f.record.nnz), f.estimate()
    assert (guess.rough, exact.rough) == (True, False)
    assert exact.algorithm == f.record.algorithm
    assert exact.cached_bytes == f.record.bytes
    with pytest.raises(crout.InvalidRequest):
        client.lu_factor(np.eye(3)).estimate()


@pytest.mark.filterwarnings("ignore::crout.LinAlgWarning")
@pytest.mark.parametrize("algorithm", ["multifrontal", "klu"])
def test_the_determinant_of_a_singular_matrix_is_zero(client, algorithm):
    line = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (M, M)).tolil()
    line[0, 0] = line[-1, -1] = 1  # entries of a row sum to zero
    empty = line.copy()
    empty[7, :] = 0
    for A in (line, empty):
        assert client.lu_factor(A.tocsr(), algorithm=algorithm).slogdet() == (0, -np.inf)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("algorithm", ["multifrontal", "klu"])
@pytest.mark.parametrize("odd", [False, True])
def test_a_determinant_from_downloaded_factors(client, grid, dtype, algorithm, odd):
    A = grid(dtype)
    if odd:  # swap two rows, which changes the sign and requires matching
        A = A[[1, 0, *range(2, M * M)]]
    requested = client.lu_factor(A, algorithm=algorithm, determinant=True).slogdet()
    later = client.lu_factor(A, algorithm=algorithm).slogdet()
    assert later.logabsdet == pytest.approx(requested.logabsdet, rel=1e-12)
    assert abs(later.sign - requested.sign) < 1e-9


@pytest.mark.filterwarnings("ignore::crout.LinAlgWarning")
def test_a_determinant_of_perturbed_pivots_is_rejected(client):
    A = scipy.sparse.csr_array(np.array([[1.0, 1.0], [1e-20, 2e-20]]))
    f = client.lu_factor(A, algorithm="multifrontal", equilibrate=False, determinant=True)
    assert f.record.sparse.perturbed_pivots == 1
    with pytest.raises(crout.InvalidRequest, match="because 1 pivot was perturbed"):
        f.slogdet()
    scaled = client.lu_factor(A, algorithm="multifrontal", equilibrate=True).slogdet()
    assert scaled.logabsdet == pytest.approx(np.log(1e-20), rel=1e-12)


def test_a_file_with_coordinates_is_factored_as_sparse(client, grid, tmp_path):
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, grid(), precision=17)
    f = client.lu_factor(path)
    assert f.record.sparse.lu_entries > f.record.nnz
    assert error(grid(), f.solve(np.ones(M * M)), np.ones(M * M)) < 1e-14


def test_a_pattern_is_analyzed_once(client, grid):
    f = client.lu_factor(grid(seed=1))
    reused = [f.record.sparse.analysis_reused]
    for seed in (2, 3):
        f.refactor(grid(seed=seed))
        reused.append(f.record.sparse.analysis_reused)
        x = f.solve(np.ones(M * M))
        assert error(grid(seed=seed), x, np.ones(M * M)) < 1e-14
    # The first factorization may reuse the analysis of an earlier test's factor.
    assert reused[1:] == [True, True]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "with duplicates"])
def test_refactor_with_values_only(client, grid, rng, form):
    f = client.lu_factor(grid())
    A = grid(seed=1)
    given = A
    if form == "with duplicates":
        twice = (np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr)
        given = scipy.sparse.csr_matrix(twice, A.shape)
    elif form != "csr":
        given = A.asformat(form)
    f.refactor(given, values_only=True)
    assert f.record.version == 2
    assert f.record.nnz == A.nnz
    assert f.record.sparse.analysis_reused
    b = rng.standard_normal(M * M)
    assert error(A, f.solve(b), b) < 1e-14


def test_values_only_of_diagonals_keeps_stored_zeros(client, rng):
    def upwind(wind):
        n = 60
        lower, upper = np.full(n - 1, -max(wind, 0.0)), np.full(n - 1, min(wind, 0.0))
        return scipy.sparse.diags([lower, np.full(n, 1 + abs(wind)), upper], [-1, 0, 1])

    assert upwind(1.0).format == "dia"
    b = rng.standard_normal(60)
    for method in ("klu", "multifrontal"):
        f = client.lu_factor(upwind(1.0), algorithm=method)
        assert f.record.nnz == 3 * 60 - 2
        for A in (upwind(-1.0), upwind(-0.5).tocsr(), upwind(1.0)):
            if A.format == "csr":  # SciPy has dropped the zeros
                with pytest.raises(crout.InvalidRequest, match="positions") as refused:
                    f.refactor(A, values_only=True)
                assert refused.value.reason == "PATTERN_MISMATCH"
            else:
                f.refactor(A, values_only=True)
                assert error(A.tocsr(), f.solve(b), b) < 1e-15


def test_values_only_rejects_a_pattern_that_another_user_replaced(client):
    n = 40
    A = (scipy.sparse.random(n, n, 0.1, random_state=5) + 4 * scipy.sparse.eye(n)).tocsc()
    f = client.lu_factor(A, algorithm="klu")
    other = client.factor(f.handle)
    other.refactor(A.T.tocsc(), algorithm="klu")  # same number of entries, in other positions
    with pytest.raises(crout.InvalidRequest, match="another pattern than version 2") as refused:
        f.refactor(2 * A, values_only=True)
    assert refused.value.code == "FAILED_PRECONDITION"
    assert refused.value.reason == "PATTERN_MISMATCH"
    assert error(A.T, f.solve(np.ones(n)), np.ones(n)) < 1e-15
    f.refactor(2 * A.T.tocsr(), values_only=True)
    assert error(2 * A.T, f.solve(np.ones(n)), np.ones(n)) < 1e-15


def test_values_only_needs_a_sparse_matrix(client, grid, regular):
    f = client.lu_factor(grid())
    with pytest.raises(crout.InvalidRequest, match=r"scipy\.sparse"):
        f.refactor(np.eye(M * M), values_only=True)
    with pytest.raises(crout.InvalidRequest, match="positions"):
        f.refactor(scipy.sparse.eye(M * M), values_only=True)
    with pytest.raises(crout.InvalidRequest, match="f64"):
        f.refactor(grid(np.float32), values_only=True)
    with pytest.raises(crout.InvalidRequest, match="in full"):
        client.lu_factor(regular(5)).refactor(scipy.sparse.eye(5), values_only=True)
    assert f.record.version == 1


def test_negative_pivots_are_negative_eigenvalues(client):
    n = 3000
    diagonal = np.where(np.arange(n) % 3 == 0, -4.0, 5.0)
    A = scipy.sparse.diags([np.ones(n - 1), diagonal, np.ones(n - 1)], [-1, 0, 1]).tocsr()
    sparse = client.lu_factor(A, algorithm="multifrontal").record.sparse
    eigenvalues = scipy.linalg.eigh_tridiagonal(diagonal, np.ones(n - 1), eigvals_only=True)
    assert sparse.negative_pivots == (eigenvalues < 0).sum()
    assert sparse.perturbed_pivots == 0
    assert client.lu_factor(A.astype(complex), algorithm="multifrontal").record.sparse.negative_pivots is None


def test_determinant_and_condition(client, grid):
    A = grid()
    f = client.lu_factor(A, determinant=True, rcond=True)
    lu = scipy.sparse.linalg.splu(A.tocsc())
    logabs = np.log(np.abs(lu.U.diagonal())).sum()
    assert abs(f.slogdet().logabsdet - logabs) < 1e-9 * abs(logabs)
    inverse = scipy.sparse.linalg.LinearOperator(
        A.shape, matvec=lu.solve, rmatvec=lambda b: lu.solve(b, "T"), dtype=float
    )
    exact = 1 / (abs(A).sum(axis=0).max() * scipy.sparse.linalg.onenormest(inverse))
    assert exact / 10 < f.rcond < exact * 10


def test_structurally_singular(client):
    # Rows 1 and 2 have entries in column 0 only.
    A = scipy.sparse.eye(5000, format="lil")
    A[1, 1] = A[2, 2] = 0
    A[1, 0] = A[2, 0] = A[0, 1] = A[0, 2] = 1
    A = A.tocsr()
    A.eliminate_zeros()
    with pytest.warns(crout.LinAlgWarning, match="structure"):
        f = client.lu_factor(A, algorithm="multifrontal")
    assert f.record.singular_reason == "structure"
    assert f.record.empty_index in (2, 3)
    assert f.info > 0
    with pytest.raises(crout.Singular):
        f.solve(np.ones(5000))


def test_small_and_full_matrices_are_dense(client, regular):
    A = scipy.sparse.csr_array(regular(12))
    f = client.lu_factor(A)
    assert f.record.sparse is None
    assert_close(f.solve(np.ones(12)), np.linalg.solve(A.toarray(), np.ones(12)))


def test_the_server_lists_its_sparse_methods(client):
    info = client.server_info()
    assert "multifrontal" in info.devices[0].sparse_algorithms
    assert info.max_sparse_n > info.max_n


def test_schur_complement_of_chosen_unknowns(client):
    line = scipy.sparse.diags([-1.4, 2.5, -1.0], [-1, 0, 1], (12, 12))
    A = scipy.sparse.kronsum(line, line).tocsr()
    keep = [7, 100, 3, 55]
    others = np.setdiff1d(np.arange(A.shape[0]), keep)
    dense = A.toarray()
    eliminated = np.linalg.solve(dense[np.ix_(others, others)], dense[np.ix_(others, keep)])
    expected = dense[np.ix_(keep, keep)] - dense[np.ix_(keep, others)] @ eliminated
    complement = client.schur_complement(A, keep=keep)
    np.testing.assert_allclose(complement.S, expected, rtol=1e-12, atol=1e-12)
    assert complement.backward_error < 1e-14
    for wrong in ([3, 3], [144], [-1], []):
        with pytest.raises(crout.InvalidRequest):
            client.schur_complement(A, keep=wrong)
    with pytest.raises(crout.InvalidRequest, match=r"keep= needs a sparse matrix.*leading_order="):
        client.schur_complement(dense, keep=keep)
    with pytest.raises(crout.InvalidRequest, match="omit name and lease"):
        client.schur_complement(A, keep=keep, name="A11")
    with pytest.raises(TypeError, match="both leading_order and keep"):
        client.schur_complement(A, 3, keep=keep)
    with pytest.raises(TypeError, match="neither leading_order nor keep"):
        client.schur_complement(A)


def test_a_series_analyzes_a_pattern_once(client, grid):
    A = grid()
    b = np.ones(A.shape[0])
    scales = [1, 1.01, 1.02, 1.03]
    changes = [crout.Values(A.data * scale) for scale in scales[1:]]
    steps = list(client.series([A, *changes], b, strategy="refactor"))
    for scale, step in zip(scales, steps, strict=True):
        assert error(scale * A, step.x, b) < 1e-14
    assert [step.factor.sparse.analysis_reused for step in steps[1:]] == [True] * 3


def test_a_larger_pivot_threshold_reduces_growth(client):
    D = scipy.sparse.diags([-1.0, 1.0], [-1, 1], (20, 20))
    A = (scipy.sparse.kron(D, scipy.sparse.eye(20)) + scipy.sparse.kron(scipy.sparse.eye(20), D)).tocsr()
    A += 1e-4 * scipy.sparse.eye(400)
    options = {"algorithm": "multifrontal", "equilibrate": False}
    with warnings.catch_warnings():  # its factor may be poor
        warnings.simplefilter("ignore", crout.LinAlgWarning)
        loose = client.lu_factor(A, pivot_threshold=0.001, **options)
    strict = client.lu_factor(A, pivot_threshold=1, **options)
    assert strict.record.pivot_growth <= loose.record.pivot_growth
    assert strict.record.sparse.lu_entries >= loose.record.sparse.lu_entries
    with pytest.raises(crout.InvalidRequest, match="is not in"):
        client.lu_factor(A, pivot_threshold=2)
    with pytest.raises(TypeError, match="pivot_threshold"):
        client.lu_factor(A, pivot_threshold="small")
