# SPDX-License-Identifier: Apache-2.0
"""`splu`, `factorized`, `spsolve` and preconditioners of `crout.scipy`.

SciPy itself handles arguments that are invalid or empty, so that its exceptions and results stay the same.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from crout import _payload, _requests
from crout._linalg import PackedFactors
from crout._scipy_server import HeldFactor, run, warn_if_inaccurate
from crout.errors import Singular, warn
from crout.factor import inverse_operator

Array = npt.NDArray[Any]

# SciPy's own functions, also if a program replaces them by those of this module.
_splu = linalg.splu
_spsolve = linalg.spsolve

_TRANS: dict[str, Literal[0, 1, 2]] = {"N": 0, "T": 1, "H": 2}
_ELEMENTS_AT_ONCE = 1 << 22  # elements of the dense form of a sparse right-hand side


def _to_csc(a: Any) -> Any:
    """Convert to the class of SciPy's L and U, an array or, before SciPy 1.13, a matrix."""
    return _CSC(a)


_CSC = type(_splu(sparse.csc_matrix(np.eye(1))).L)


def _from_pydata(a: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """Convert an array of the package `sparse`; also return the function that converts results back."""
    package = sys.modules.get("sparse")
    if package is None or not isinstance(a, package.SparseArray):
        return a, None
    return a.to_scipy_sparse(), type(a).from_scipy_sparse


def _canonical(a: Any) -> Any:
    """Return a matrix of compressed rows or columns without duplicates, in a floating-point type."""
    if not a.has_canonical_format:
        a = a.copy()
        a.sum_duplicates()
    for char in "fdFD":
        if np.can_cast(a.dtype, char):
            return a.astype(char, copy=False)
    raise TypeError(f"cannot upcast {a.dtype} to a floating point format: convert the matrix to float64")


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise SciPy's exception for options that it does not accept. The server does not need the others."""
    _splu(_to_csc(np.eye(1)), options=options)


def _is_natural(order: Any) -> bool:
    return isinstance(order, (str, bytes)) and order in ("NATURAL", b"NATURAL")


class SuperLU:
    """L and U of a sparse matrix on the server, with the interface of `scipy.sparse.linalg.SuperLU`.

    ``Pr.T @ (L @ U) @ Pc.T`` is the matrix, where ``Pr[perm_r, arange(n)]`` and ``Pc[arange(n), perm_c]`` are
    ones. L, U and the permutations are downloaded when they are first used. A factor that is not used any
    more is released.

    Attributes
    ----------
    shape : tuple of int
    """

    def __init__(self, held: HeldFactor, construct: Callable[[Any], Any] | None = None) -> None:
        self.shape = (held.n, held.n)
        self._held = held
        self._dtype = held.record.matrix_dtype
        self._construct = construct
        self._lock = threading.Lock()
        self._factors: tuple[Any, Any, Array, Array] | None = None

    def _downloaded(self) -> tuple[Any, Any, Array, Array]:
        with self._lock:
            if self._factors is None:
                lower, upper, perm_r, perm_c = _download(self._held)
                construct = self._construct or (lambda a: a)
                self._factors = construct(lower), construct(upper), perm_r, perm_c
            return self._factors

    @property
    def L(self) -> Any:  # noqa: N802
        """Lower triangular factor, with the unit diagonal."""
        return self._downloaded()[0]

    @property
    def U(self) -> Any:  # noqa: N802
        """Upper triangular factor."""
        return self._downloaded()[1]

    @property
    def perm_r(self) -> Array:
        """Row permutation: row i of the matrix is row perm_r[i] of L U."""
        return self._downloaded()[2]

    @property
    def perm_c(self) -> Array:
        """Column permutation: column j of the matrix is column perm_c[j] of L U."""
        return self._downloaded()[3]

    @property
    def nnz(self) -> int:
        """Entries of L and U, with both diagonals."""
        sparse_info = self._held.record.sparse
        if sparse_info is not None:
            return sparse_info.lu_entries + self.shape[0]
        return int(self.L.nnz + self.U.nnz)

    def solve(self, rhs: Any, trans: str = "N") -> Array:
        """Solve a system with the matrix.

        Parameters
        ----------
        rhs : array_like, shape (n,) or (n, nrhs)
            A column with an element that is not finite has the solution NaN.
        trans : {"N", "T", "H"}
            "N": A x = b. "T": A^T x = b. "H": A^H x = b.

        Returns
        -------
        ndarray, shape of rhs
            The solution, in the matrix's type.

        Raises
        ------
        TypeError
            rhs cannot be cast to the matrix's type, for example because it is complex.
        ValueError
            rhs has the wrong shape, or trans is invalid.
        """
        operation = _TRANS.get(trans.upper() if isinstance(trans, str) else "")
        if operation is None:
            raise ValueError("trans must be N, T, or H")
        b = _payload.as_array(rhs)
        if not np.can_cast(b.dtype, self._dtype):
            raise TypeError(
                f"Cannot cast array data from {b.dtype!r} to {self._dtype!r} according to the rule 'safe'"
            )
        if b.ndim not in (1, 2):
            raise ValueError(f"object {'too deep' if b.ndim else 'of too small depth'} for desired array")
        if b.shape[0] != self.shape[0]:
            raise ValueError("b is of incompatible size")
        if b.size == 0:
            return np.empty(b.shape, self._dtype)
        b = b.astype(self._dtype, copy=False)
        finite = np.isfinite(b).all(axis=0)
        if not finite.all():
            b = np.where(finite, b, 0)
        x: Array = self._held.solve(b, operation)
        if not finite.all():
            x[..., ~finite] = np.nan
        return x

    def __repr__(self) -> str:
        return f"<crout.scipy.SuperLU of shape {self.shape}, {self._dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot pickle 'SuperLU' object: pickle the matrix, or a factor of crout.Client")


def _download(held: HeldFactor) -> tuple[Any, Any, Array, Array]:
    """Return L, U, perm_r and perm_c."""
    factors = held.download()
    if not isinstance(factors, PackedFactors):
        return _to_csc(factors.L), _to_csc(factors.U), factors.perm_r, factors.perm_c
    lu, _ = factors.lu_piv()
    order = np.arange(held.n, dtype=np.int32)
    perm_r = np.empty_like(order)
    perm_r[factors.permutation] = order
    unit = np.eye(held.n, dtype=lu.dtype)
    return _to_csc(np.tril(lu, -1) + unit), _to_csc(np.triu(lu)), perm_r, order


def _factor(rows: Any, **options: Any) -> HeldFactor:
    """Factor a matrix that does not change. Raises RuntimeError if it is singular, as SuperLU does."""
    held = HeldFactor(rows, **options)
    if held.record.info > 0:
        held.release()
        raise RuntimeError("Factor is exactly singular")
    return held


def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Factor a sparse matrix on the server, like `scipy.sparse.linalg.splu`.

    Parameters
    ----------
    A : sparse matrix, shape (n, n)
        CSC format; other formats are converted.
    permc_spec : str, optional
        With "NATURAL", SciPy factors. The server chooses the order in all other cases.
    diag_pivot_thresh, relax, panel_size, options
        Checked, and otherwise ignored: the server has its own methods.

    Returns
    -------
    SuperLU

    Raises
    ------
    RuntimeError
        The matrix is exactly singular.
    """
    scipy_options = {
        "DiagPivotThresh": diag_pivot_thresh,
        "ColPerm": permc_spec,
        "PanelSize": panel_size,
        "Relax": relax,
        **(options or {}),
    }
    matrix, construct = _from_pydata(A)
    if construct is not None:
        matrix = matrix.tocsc()
    elif not (sparse.issparse(matrix) and matrix.format == "csc"):
        matrix = _to_csc(matrix)
        warn("splu converted its input to CSC format", sparse.SparseEfficiencyWarning)
    matrix = _canonical(matrix)
    rows, cols = matrix.shape
    if rows != cols:
        raise ValueError("can only factor square matrices")
    _check_options(scipy_options)
    if _is_natural(scipy_options["ColPerm"]) or rows == 0 or not np.isfinite(matrix.data).all():
        return _splu(matrix if construct is None else A, options=scipy_options)
    return SuperLU(_factor(matrix.tocsr()), construct)


def factorized(A: Any) -> Callable[[Any], Array]:
    """Return a function that solves with a sparse matrix, like `scipy.sparse.linalg.factorized`.

    Parameters
    ----------
    A : sparse matrix, shape (n, n)

    Returns
    -------
    callable
        Takes a right-hand side of shape (n,) or (n, nrhs).
    """
    solve: Callable[[Any], Array] = splu(A).solve
    return solve


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Solve A x = b with a sparse matrix, like `scipy.sparse.linalg.spsolve`.

    Parameters
    ----------
    A : sparse matrix or array_like, shape (n, n)
        CSC or CSR format; others are converted.
    b : array_like or sparse matrix, shape (n,) or (n, nrhs)
    permc_spec, use_umfpack
        Checked, and otherwise ignored: the server has its own methods.

    Returns
    -------
    ndarray, or sparse matrix for a sparse b with several columns
        NaN, with a `MatrixRankWarning`, if A is exactly singular.

    Raises
    ------
    ValueError
        A is not square, or b does not have its number of rows.
    RuntimeError
        A is exactly singular and b is sparse.
    """
    b, construct = _from_pydata(b)
    matrix, _ = _from_pydata(A)
    if not (sparse.issparse(matrix) and matrix.format in ("csc", "csr")):
        matrix = _to_csc(matrix)
        warn("spsolve requires A be CSC or CSR matrix format", sparse.SparseEfficiencyWarning)
    b = b if sparse.issparse(b) else _payload.as_array(b)
    is_vector = b.ndim == 1 or (b.ndim == 2 and b.shape[1] == 1)
    matrix = _canonical(matrix)
    dtype = np.promote_types(matrix.dtype, b.dtype)
    rows, cols = matrix.shape
    if rows != cols:
        raise ValueError(f"matrix must be square (has shape {(rows, cols)})")
    if b.ndim == 0 or rows != b.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({matrix.shape} - {b.shape[0] if b.ndim else ()})")
    _check_options({"ColPerm": permc_spec})
    values = b.data if sparse.issparse(b) else b
    if b.ndim > 2 or 0 in b.shape or dtype.char not in "fdFD" or not _all_finite(matrix.data, values):
        return _spsolve(A, b, permc_spec, use_umfpack)
    matrix = matrix.astype(dtype, copy=False)
    if sparse.issparse(b) and not is_vector:
        x = _solve_sparse(matrix, b)
        return x if construct is None else construct(x)
    return _solve_dense(matrix, b.toarray() if sparse.issparse(b) else b, is_vector)


def _all_finite(*arrays: Any) -> bool:
    return all(array.dtype.kind != "O" and bool(np.isfinite(array).all()) for array in arrays)


def _solve_dense(matrix: Any, b: Array, is_vector: bool) -> Array:
    """Solve for a dense x."""
    b = b.astype(matrix.dtype, copy=False)
    try:
        solution = run(_requests.factorize_and_solve(matrix.tocsr(), b, quiet=True))
    except Singular:
        warn("Matrix is exactly singular", linalg.MatrixRankWarning)
        x = np.full(b.shape, np.nan, b.dtype)
    else:
        warn_if_inaccurate(solution)
        x = solution.x
    return x.ravel() if is_vector else x


def _solve_sparse(matrix: Any, b: Any) -> Any:
    """Solve for a sparse x, some columns at a time."""
    if b.format != "csc":
        warn(
            "spsolve is more efficient when sparse b is in the CSC matrix format",
            sparse.SparseEfficiencyWarning,
        )
        b = b.tocsc()
    held = _factor(matrix.tocsr())
    width = max(1, _ELEMENTS_AT_ONCE // held.n)
    parts = []
    for begin in range(0, b.shape[1], width):
        columns = b[:, begin : begin + width].toarray().astype(matrix.dtype, copy=False)
        parts.append(_CSC(held.solve(columns)))
    held.release()
    return type(matrix)(sparse.hstack(parts), shape=b.shape, dtype=matrix.dtype)


def preconditioner(A: Any, **options: Any) -> Any:
    """Factor A on the server, and return its inverse as a preconditioner for SciPy's Krylov solvers.

    Parameters
    ----------
    A : array_like or sparse matrix, shape (n, n), or SuperLU
        A matrix close to the matrix of the systems. A `SuperLU` of this module is not factored again.
    **options
        Options of a factorization, as in `crout.Client.lu_factor`. ``dtype=numpy.float32`` takes half the
        memory.

    Returns
    -------
    LinearOperator
        For the argument M of `scipy.sparse.linalg.gmres` and others. It accepts vectors and blocks, real and
        complex.

    Raises
    ------
    RuntimeError
        The matrix is exactly singular.
    """
    if isinstance(A, SuperLU):
        if options:
            raise TypeError(f"{next(iter(options))} is an option of a factorization: pass the matrix instead")
        return inverse_operator(A._held, verify=False)
    matrix, _ = _from_pydata(A)
    if sparse.issparse(matrix):
        own = _canonical(matrix.tocsr()).copy()
    else:
        own = np.array(_payload.as_array(matrix))
    return inverse_operator(_factor(own, **options), verify=False)
