# SPDX-License-Identifier: Apache-2.0
"""Matrices that are hard for Gaussian elimination, and reference solutions with 50 decimal digits."""

import mpmath
import numpy as np
import scipy.linalg
import scipy.sparse

mpmath.mp.dps = 50


def _rng(seed=0):
    return np.random.default_rng(seed)


def foster(n):
    """Discretize a Volterra equation by the trapezoidal rule."""
    A = np.diag(np.full(n, 0.5)) - np.tril(np.ones((n, n)), -1)
    A[1:, 0] = -0.5
    A[0, 0] = 1
    A[:, -1] -= 1
    A[-1, -1] = -0.5
    return A


def wilkinson(n):
    """Return a matrix whose last column doubles with every step of partial pivoting."""
    A = np.eye(n) - np.tril(np.ones((n, n)), -1)
    A[:, -1] = 1
    return A


def wright(n, step=0.3):
    """Multiple shooting for a boundary value problem: well-conditioned, with growth of e^(n / 8)."""
    E = scipy.linalg.expm(step * np.array([[-1 / 6, 1], [1, -1 / 6]]))
    A = np.eye(n)
    A[:2, -2:] = np.eye(2)
    for i in range(0, n - 2, 2):
        A[i + 2 : i + 4, i : i + 2] = -E
    return A


def lotkin(n):
    A = scipy.linalg.hilbert(n)
    A[0] = 1
    return A


def chebyshev_vandermonde(n):
    points = np.cos(np.pi * (np.arange(n) + 0.5) / n * 0.7 + 0.3)
    return np.polynomial.chebyshev.chebvander(points, n - 1).T


def randsvd(n, condition, mode):
    k = np.arange(n)
    sigma = {
        1: np.where(k == 0, 1, 1 / condition),
        2: np.where(k == n - 1, 1 / condition, 1),
        3: condition ** (-k / (n - 1)),
        4: 1 - k / (n - 1) * (1 - 1 / condition),
        5: np.exp(-_rng(9).random(n) * np.log(condition)),
    }[mode]
    U, V = (np.linalg.qr(_rng(seed).standard_normal((n, n)))[0] for seed in (mode, mode + 10))
    return U * sigma @ V


def saddle_point(n, scale=1.0):
    rows = n // 3
    H = _rng(1).standard_normal((n - rows, n - rows))
    B = _rng(2).standard_normal((rows, n - rows))
    return np.block([[scale * H @ H.T, B.T], [B, np.zeros((rows, rows))]])


def grid(m, diagonal, sign=1):
    """A grid of m x m points: -1 to the right and down neighbors, -`sign` to the left and up neighbors."""
    D = np.diag(np.full(m - 1, -1.0), 1) + np.diag(np.full(m - 1, -float(sign)), -1)
    return np.kron(D, np.eye(m)) + np.kron(np.eye(m), D) + diagonal * np.eye(m * m)


def neumann(m, shift):
    """A Laplacian with Neumann boundaries. Without a shift, constants are its null space."""
    A = grid(m, 0)
    return A - np.diag(A.sum(axis=1)) + shift * np.eye(m * m)


def banded(n, width):
    A = _rng(4).standard_normal((n, n))
    A[abs(np.subtract.outer(np.arange(n), np.arange(n))) > width] = 0
    np.fill_diagonal(A, 1e-9)
    return A


def permuted_triangle(n):
    A = np.triu(_rng(5).standard_normal((n, n))) + 3 * np.eye(n)
    return A[_rng(6).permutation(n)][:, _rng(7).permutation(n)]


DENSE = {
    "foster": foster(20),
    "wilkinson": wilkinson(24),
    "wright": wright(24),
    "lotkin": lotkin(8),
    "vandermonde": np.vander(np.linspace(0.1, 1, 12)),
    "chebyshev-vandermonde": chebyshev_vandermonde(20),
    **{
        f"randsvd {mode} {condition:.0e}": randsvd(16, condition, mode)
        for mode in range(1, 6)
        for condition in (1e3, 1e10)
    },
    "saddle point": saddle_point(18),
    "saddle point, small block": saddle_point(18, 1e-6),
    "permuted triangle": permuted_triangle(20),
}

SPARSE = {
    "helmholtz": grid(5, -1e-4),
    "skew": grid(4, 1e-6, -1),
    "neumann": neumann(5, 1e-6),
    "banded": banded(24, 3),
    "saddle point": saddle_point(18, 1e-6),
    "permuted triangle": permuted_triangle(20),
    "wright": wright(24),
}


def in_type(A, dtype):
    """Round A to the type. For complex types, multiply rows and columns by powers of i: moduli stay."""
    A = A.astype(dtype)
    if np.iscomplexobj(A):
        rows, columns = np.indices(A.shape)
        A *= 1j ** ((5 * rows + 3 * columns + rows // 3) % 4)
    return A


class Oracle:
    """Reference solution X, determinant and condition number of a regular matrix."""

    def __init__(self, A, b):
        self._A = _exact(A)
        self._b = _exact(b.reshape(-1, 1))
        lu, order = mpmath.mp.LU_decomp(self._A)
        pivots = [lu[k, k] for k in range(len(A))]
        exchanges = sum(row != k for k, row in enumerate(order))
        self.log_abs_det = float(mpmath.fsum(mpmath.log(abs(p)) for p in pivots))
        sign = mpmath.fprod(p / abs(p) for p in pivots) * (-1) ** exchanges
        self.det_sign = complex(sign)
        y = mpmath.mp.L_solve(lu, self._b, order)
        self.x = mpmath.mp.U_solve(lu, y)
        A = np.asarray(A, complex)
        self.condition = np.linalg.cond(A, 1)

    def backward_error(self, x):
        x = _exact(np.asarray(x).reshape(-1, 1))
        residual = self._b - self._A * x
        norm = max(mpmath.fsum(abs(a) for a in self._A[i, :]) for i in range(self._A.rows))
        return float(_largest(residual) / (norm * _largest(x) + _largest(self._b)))

    def forward_error(self, x):
        x = _exact(np.asarray(x).reshape(-1, 1))
        return float(_largest(x - self.x) / _largest(x))


def _exact(A):
    convert = (lambda v: mpmath.mpc(complex(v))) if np.iscomplexobj(A) else (lambda v: mpmath.mpf(float(v)))
    return mpmath.matrix([[convert(v) for v in row] for row in A])


def _largest(x):
    return max(abs(v) for v in x)
