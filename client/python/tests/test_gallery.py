# SPDX-License-Identifier: Apache-2.0
"""Results on hard matrices are as accurate as reported, or come with a warning."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from gallery import DENSE, SPARSE, Oracle, in_type, neumann, wright

import crout

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
UNIT = {np.dtype(t): np.finfo(t).eps / 2 for t in TYPES}


def recorded(function, *arguments, **options):
    """Return the result of a call, and whether it issued a LinAlgWarning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments, **options)
    assert all(issubclass(w.category, crout.LinAlgWarning) for w in caught)
    return result, bool(caught)


def assert_honest(f, warned, A, oracle, b):
    """Check the factor's determinant, and a solution with its reported errors."""
    unit, n, growth = UNIT[A.dtype], len(A), f.record.pivot_growth
    sensitivity = unit * oracle.condition * n * max(growth, 1)
    determinant = f.record.determinant
    if determinant is not None and not warned and sensitivity < 1e-3:
        assert abs(determinant.sign - oracle.det_sign) < 10 * sensitivity
        assert abs(determinant.logabsdet - oracle.log_abs_det) < 10 * sensitivity
    if not warned and sensitivity < 1e-3:
        assert 0.3 < f.record.rcond * oracle.condition < 12
    x, warned = recorded(f.solve, b, full_output=True, error_bound=True)
    error = oracle.backward_error(x.x)
    assert error <= 2 * x.backward_error + 4 * unit
    assert warned or error <= 2 * max(n, 16) * unit
    if np.isfinite(x.forward_error_bound):
        assert oracle.forward_error(x.x) <= x.forward_error_bound
    else:
        assert warned


def system(A, dtype):
    A = in_type(A, dtype)
    b = np.cos(np.arange(len(A)) + 0.5).astype(dtype)
    return A, b, Oracle(A, b)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", DENSE)
def test_dense_methods(client, name, dtype):
    A, b, oracle = system(DENSE[name], dtype)
    for algorithm in ("auto", "getrf", "gem", "cmpp", "icmpp"):
        device = "" if algorithm == "auto" else "host"
        options = {"algorithm": algorithm, "device": device, "rcond": True, "determinant": True}
        f, warned = recorded(client.lu_factor, A, **options)
        if f.info > 0:
            assert oracle.condition * len(A) * UNIT[A.dtype] > 1
            continue
        assert_honest(f, warned, A, oracle, b)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_methods(client, name, dtype):
    A, b, oracle = system(SPARSE[name], dtype)
    for algorithm in ("auto", "multifrontal", "klu"):
        options = {"algorithm": algorithm, "rcond": True, "determinant": True}
        f, warned = recorded(client.lu_factor, scipy.sparse.csr_array(A), **options)
        if f.info > 0:
            assert oracle.condition * len(A) * UNIT[A.dtype] > 1
            continue
        assert_honest(f, warned, A, oracle, b)


@pytest.mark.parametrize("precision", ["single", "auto"])
def test_determinants_in_any_precision_are_correct_or_absent(client, precision):
    for name in ("wilkinson", "randsvd 3 1e+10", "saddle point", "permuted triangle"):
        A, _, oracle = system(DENSE[name], np.float64)
        f, _ = recorded(client.lu_factor, A, precision=precision, determinant=True)
        if f.record.determinant is not None:
            assert f.record.determinant.sign == oracle.det_sign.real
            assert abs(f.record.determinant.logabsdet - oracle.log_abs_det) < 1e-4


@pytest.mark.parametrize("sparse", [False, True])
def test_null_spaces_cause_warnings(client, sparse):
    A = neumann(6, 0)
    f, warned = recorded(client.lu_factor, scipy.sparse.csr_array(A) if sparse else A)
    assert warned
    assert f.info == 0 or f.info == len(A)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_rref_near_overflow_has_the_rank(client, dtype):
    B = np.random.default_rng(3).integers(-5, 6, (12, 8)).astype(dtype)
    C = np.random.default_rng(4).integers(-5, 6, (8, 12)).astype(dtype)
    largest = np.finfo(dtype).max / 2
    for A, rank in ((B @ C, 8), (np.eye(12, dtype=dtype) + 0.5, 12)):
        A = (A / abs(A).max() * largest).astype(dtype)
        assert client.rref(A).rank == rank


@pytest.mark.parametrize("algorithm", ["auto", "getrf", "gem", "cmpp"])
def test_growth_does_not_make_a_matrix_singular(client, algorithm):
    """The condition number is 18. After growth by 2e21, a pivot is zero or a rounding error."""
    A = wright(400)
    f, warned = recorded(client.lu_factor, A, algorithm=algorithm)
    assert warned
    assert f.info == 0
    _, warned = recorded(f.solve, np.ones(len(A)))
    assert warned
    for sparse_method in ("multifrontal", "auto"):
        b = np.ones(len(A))
        f, _ = recorded(client.lu_factor, scipy.sparse.csr_array(A), algorithm=sparse_method)
        x, warned = recorded(f.solve, b)
        assert warned or abs(A @ x - b).max() < 1e-11
