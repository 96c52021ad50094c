# SPDX-License-Identifier: Apache-2.0
"""Results that come with a LinAlgWarning."""

import contextlib
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import crout
from crout._diagnostics import warn_of_solution


@contextlib.contextmanager
def warns(pattern):
    """Check that the block issues a LinAlgWarning that matches. Other warnings are ignored.

    pytest.warns of pytest 8 and newer issues the others again, and the filter "error" then raises them.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    messages = [str(warning.message) for warning in caught if warning.category is crout.LinAlgWarning]
    assert any(re.search(pattern, message) for message in messages), messages


def wilkinson(n, dtype=float):
    """Return a matrix whose last column doubles with every step of partial pivoting."""
    A = np.eye(n) - np.tril(np.ones((n, n)), -1)
    A[:, -1] = 1
    return A.astype(dtype)


def path_laplacian(n):
    weights = 0.1 * (1 + np.arange(n - 1) % 7)
    A = np.diag(-weights, 1) + np.diag(-weights, -1)
    return A - np.diag(A.sum(axis=1))


SINGULAR = {
    "magic": np.array([[16, 2, 3, 13], [5, 11, 10, 8], [9, 7, 6, 12], [4, 14, 15, 1.0]]),
    "counting": np.arange(1.0, 10).reshape(3, 3),
    "hilbert": scipy.linalg.hilbert(14),
    "path": path_laplacian(30),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("algorithm", ["auto", "getrf"])
def test_numerically_singular_matrices_cause_warnings(client, name, algorithm):
    A = SINGULAR[name]
    try:
        with warns(r"may be numerically singular|info="):
            client.solve(A, A @ np.ones(len(A)), algorithm=algorithm)
    except crout.Singular:
        pass  # an exactly zero pivot
    with warns(r"may be numerically singular|info="):
        f = client.lu_factor(A, algorithm=algorithm)
    if f.info == 0:
        with warns("may be numerically singular"):
            f.solve(np.ones(len(A)))


@pytest.mark.parametrize("algorithm", ["multifrontal", "klu"])
def test_numerically_singular_sparse_matrices_cause_warnings(client, algorithm):
    line = scipy.sparse.csr_array(path_laplacian(60))
    n = 12
    grid = scipy.sparse.kronsum(*[scipy.sparse.csr_array(path_laplacian(n))] * 2).tocsr()
    for A in (line, grid):
        b = A @ np.ones(A.shape[0])
        try:
            with warns(r"may be numerically singular|info="):
                client.solve(A, b, algorithm=algorithm)
        except crout.Singular:
            pass
    regular = grid + scipy.sparse.identity(n * n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.solve(regular, np.ones(n * n), algorithm=algorithm)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_well_conditioned_matrices_cause_no_warnings(client, rng, dtype):
    n = 24
    stack = rng.standard_normal((250, n, n)) + np.eye(n)
    conditions = np.linalg.cond(stack)
    stack = stack[conditions < 1e4].astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.solve(stack, np.ones((len(stack), n), dtype))
        for A in stack[:10]:
            client.solve(A, np.ones(n, dtype))


@pytest.mark.parametrize(("dtype", "n"), [(np.float32, 30), (np.float64, 56), (np.complex64, 30)])
def test_batches_are_assessed_by_their_errors_and_by_growth(client, regular, dtype, n):
    matrices = [regular(n, dtype), wilkinson(n, dtype), regular(n, dtype)]
    rng = np.random.default_rng(1)
    b = [rng.standard_normal(n).astype(dtype) for _ in matrices]
    with warns("1 of 3 members has a poor or non-finite factor; the first is 1 "):
        f = client.lu_factor(matrices)
    with warns("1 of 3 solutions is poor"):
        solution = f.solve(b, full_output=True)
    assert solution.inaccurate == 1
    assert solution.warnings == ("not_accurate",)
    with warns("were not measured"):
        f.solve(b, verify=False)
    with warns("1 of 3 solutions is poor"):
        client.solve(matrices, b)
    with warns("the solution is poor"):
        client.solve(matrices[1], b[1])


def test_a_complement_is_assessed_by_growth(client):
    k, n = 9, 14
    A = np.random.default_rng(4).standard_normal((n, n))
    A[:k, :k] -= A[:k, :k].T  # skew-symmetric of odd order: singular
    with warns("the Schur complement is poor"):
        complement, _ = client.schur_complement(A, k)
    assert complement.backward_error < 1e-12
    assert complement.growth > 1e12


def test_a_low_precision_factor_has_no_determinant(client, regular):
    f = client.lu_factor(regular(40), precision="single", determinant=True)
    assert f.record.precision == "single"
    assert f.record.determinant is None
    with pytest.raises(crout.InvalidRequest, match="lower precision"):
        f.slogdet()


def test_the_rcond_of_perturbed_pivots_causes_a_warning(client):
    # The second pivot is below the unit roundoff of its column.
    A = scipy.sparse.csr_array(np.array([[1.0, 1.0], [0.0, 1e-17]]))
    with warns("because 1 pivot was perturbed"):
        f = client.lu_factor(A, algorithm="multifrontal", rcond=True, equilibrate=False)
    assert f.record.sparse.perturbed_pivots == 1
    assert "perturbed_rcond" in f.record.warnings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "solve with refine="),
        ({"corrections": 7}, "after 7 corrections .*algorithm, or without precision="),
        ({"corrections": 7, "precision": "single"}, "factor without precision=$"),
        ({"corrections": 7, "precision": None}, "factor by another algorithm$"),
        (
            {"corrections": 0, "backward_error": 4e-18, "forward_error_bound": np.inf},
            r"no correct digit \(forward error bound inf, backward error 4e-18\)",
        ),
    ],
)
def test_advice_depends_on_the_factor(given, expected):
    factor = SimpleNamespace(precision=given["precision"], warnings=()) if "precision" in given else None
    solution = SimpleNamespace(
        backward_error=given.get("backward_error", 1e-5),
        forward_error_bound=given.get("forward_error_bound"),
        corrections=given.get("corrections"),
        warnings=("not_accurate",),
        factor=factor,
    )
    with warns(expected) as warned:
        warn_of_solution(solution)
    assert len(warned) == 1
