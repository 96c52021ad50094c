# SPDX-License-Identifier: Apache-2.0
"""Complex matrices, and systems in which only one of A and b is complex."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from accuracy import assert_close

TYPES = [np.complex64, np.complex128]


@pytest.fixture
def system(rng):
    """A complex matrix and two right-hand sides."""

    def numbers(*shape):
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)

    def make(n, dtype):
        return (numbers(n, n) + n * np.eye(n)).astype(dtype), numbers(n, 2).astype(dtype)

    return make


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_solves_with_every_transpose(client, system, dtype, order):
    A, b = system(30, dtype)
    f = client.lu_factor(np.array(A, order=order))
    assert f.dtype == dtype
    for trans, op in ((0, A), (1, A.T), (2, A.conj().T)):
        x = f.solve(b, trans=trans)
        assert x.dtype == dtype
        assert_close(x, np.linalg.solve(op, b), dtype)


def test_mixed_real_and_complex_systems(client, system, regular):
    A, b = system(20, np.complex128)
    x = client.lu_factor(A).solve(b.real)
    assert x.dtype == np.complex128
    assert_close(x, np.linalg.solve(A, b.real))
    R = regular(20)
    y = client.lu_factor(R).solve(b)
    assert y.dtype == np.complex128
    assert_close(y, np.linalg.solve(R, b))
    assert_close(client.solve(R, b), np.linalg.solve(R, b))


@pytest.mark.parametrize("dtype", TYPES)
def test_complex_determinant_and_condition(client, system, dtype):
    A, _ = system(25, dtype)
    f = client.lu_factor(A, determinant=True)
    P, L, U = f.to_lu()
    assert_close(P @ L @ U, A, dtype)
    sign, logabs = np.linalg.slogdet(A.astype(complex))
    for determinant in (f.slogdet(), client.slogdet(A), client.lu_factor(A).slogdet()):
        assert abs(determinant.sign - sign) < 1e3 * np.finfo(dtype).eps
        assert abs(determinant.logabsdet - logabs) < 1e3 * np.finfo(dtype).eps
    assert abs(f.det() / np.linalg.det(A.astype(complex)) - 1) < 1e4 * np.finfo(dtype).eps
    exact = 1 / np.linalg.cond(A.astype(complex), 1)
    assert exact * 0.99 <= f.rcond <= 3 * exact


def test_a_sparse_matrix(client, system):
    A, b = system(20, np.complex128)
    A[np.abs(A) < 1] = 0
    f = client.lu_factor(scipy.sparse.csr_matrix(A))
    assert f.record.nnz == np.count_nonzero(A)
    assert_close(f.solve(b), np.linalg.solve(A, b))


def test_a_preconditioner(client, system):
    A, b = system(40, np.complex128)
    M = client.lu_factor(A).as_linear_operator()
    assert M.dtype == np.complex128
    assert_close(M.rmatvec(b[:, 0]), np.linalg.solve(A.conj().T, b[:, 0]))
    near = A + 0.01 * np.diag(np.arange(40))
    x, failed = scipy.sparse.linalg.gmres(near, b[:, 0], M=M, atol=0.0)
    assert failed == 0
    assert np.abs(near @ x - b[:, 0]).max() < 1e-3


def test_a_schur_complement(client, system):
    A, _ = system(12, np.complex128)
    complement, _ = client.schur_complement(A, 5)
    assert_close(complement.S, A[5:, 5:] - A[5:, :5] @ scipy.linalg.solve(A[:5, :5], A[:5, 5:]))


@pytest.mark.parametrize("dtype", TYPES)
def test_solves_after_another_user_made_the_factor_complex(client, system, dtype):
    A, _ = system(20, dtype)
    b = np.ones((20, 2), A.real.dtype)
    f = client.lu_factor(np.eye(20, dtype=A.real.dtype))
    client.factor(f.handle).refactor(A)
    x = f.solve(b.copy(), overwrite_b=True)  # b is real and cannot hold the solution
    assert x.dtype == dtype
    assert_close(x, np.linalg.solve(A, b), dtype)
    assert_close(f.as_linear_operator() @ (b * 1j), np.linalg.solve(A, b * 1j), dtype)
    assert f.solve(b[:, 0]).shape == (20,)


def test_solves_after_another_user_made_the_factor_real(client, system, regular):
    A, b = system(20, np.complex128)
    f = client.lu_factor(A)
    B = regular(20)
    client.factor(f.handle).refactor(B)
    assert_close(f.solve(b), np.linalg.solve(B, b))
    assert_close(f.solve(b.real), np.linalg.solve(B, b.real))
