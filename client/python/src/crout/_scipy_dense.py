# SPDX-License-Identifier: Apache-2.0
"""`solve` and `inv` of `crout.scipy`.

SciPy itself handles arguments that are invalid or empty, so that its exceptions and results stay the same.
It also handles matrices with a structure that it exploits in less time than the upload takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from crout import _batch, _requests
from crout._scipy_factors import (
    as_checked_array,
    blas_dtype,
    columns_of,
    from_columns,
    warn_if_stack_inaccurate,
)
from crout._scipy_server import run, warn_if_inaccurate
from crout._scipy_sparse import spsolve
from crout.errors import Singular, warn

Array = npt.NDArray[Any]

# SciPy's own functions, also if a program replaces them by those of this module.
_solve = linalg.solve
_inv = linalg.inv

# From SciPy 1.15 on, `solve` detects the structure of a matrix.
_DETECTS_STRUCTURE = inspect.signature(_solve).parameters["assume_a"].default is None
_MIRRORED = ("sym", "symmetric", "her", "hermitian")  # one triangle is given
_SERVED = (None, "gen", "general", *_MIRRORED)  # values of assume_a that the server handles


def _solve_dtype(*arrays: Array) -> np.dtype[Any]:
    """Return the type in which SciPy's `solve` computes."""
    dtype = np.result_type(*arrays)
    if not np.issubdtype(dtype, np.inexact):
        return np.dtype(np.float64)
    is_single = np.finfo(dtype).bits <= 32
    if np.issubdtype(dtype, np.complexfloating):
        return np.dtype(np.complex64 if is_single else np.complex128)
    return np.dtype(np.float32 if is_single else np.float64)


def _mirror(a: Array, lower: bool, conjugate: bool) -> Array:
    """Return the symmetric or Hermitian matrices of which one triangle is given."""
    triangle = np.tril(a, -1) if lower else np.triu(a, 1)
    other = np.swapaxes(triangle, -1, -2)
    full = triangle + (other.conj() if conjugate else other)
    diagonal = np.arange(a.shape[-1])
    full[..., diagonal, diagonal] = np.diagonal(a, axis1=-2, axis2=-1)
    if conjugate and np.iscomplexobj(full):
        full[..., diagonal, diagonal] = full[..., diagonal, diagonal].real
    return full


def _is_structured(a: Array) -> bool:
    """Whether SciPy solves with `a` by a method that takes less time than the upload."""
    if not _DETECTS_STRUCTURE or a.ndim != 2:
        return False
    below, above = linalg.bandwidth(a)
    return bool(min(below, above) == 0 or (max(below, above) == 1 and a.shape[0] > 3))


def _square(a: Any, check_finite: bool, assume_a: str | None, lower: bool, *others: Array) -> Array | None:
    """Convert the matrix of `solve` or `inv`, with both triangles; None if SciPy handles it."""
    array = as_checked_array(a, check_finite)
    if array is None or array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.size <= 1:
        return None
    array = array.astype(_solve_dtype(array, *others) if others else blas_dtype(array), copy=False)
    if assume_a in _MIRRORED:
        array = _mirror(array, lower, assume_a in ("her", "hermitian"))
    if not np.isfinite(array).all() or (assume_a is None and _is_structured(array)):
        return None
    return array


def _singular(slices: Sequence[int]) -> Singular:
    return Singular(f"A singular matrix detected: slice(s) {list(slices)} are singular.")


def _factor_and_solve(a: Array, b: Array, transposed: bool, overwrite_b: bool) -> Array:
    """Solve with the matrices of a stack, or with one. b has at least two dimensions, and finite elements."""
    trans: Literal[0, 1] = 1 if transposed else 0
    if a.ndim == 2:
        try:
            solution = run(
                _requests.factorize_and_solve(
                    a, columns_of(b), quiet=True, rcond=True, trans=trans, overwrite_b=overwrite_b
                )
            )
        except Singular:
            raise _singular([0]) from None
        rcond = None if solution.factor is None else solution.factor.rcond
        if rcond is not None and not rcond >= np.finfo(a.dtype).eps:
            warn(f"An ill-conditioned matrix detected: slice 0 has rcond = {rcond}.", linalg.LinAlgWarning)
        warn_if_inaccurate(solution)
        return from_columns(solution.x, b.shape)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    members = np.broadcast_to(a, lead + a.shape[-2:]).reshape(-1, *a.shape[-2:])
    sides = np.broadcast_to(b, lead + b.shape[-2:]).reshape(-1, *b.shape[-2:])
    record, solutions = run(_batch.factorize_and_solve(members, sides, trans=trans))
    if record.info.any():
        raise _singular(np.flatnonzero(record.info).tolist())
    if record.nearly_singular:
        warn(
            f"An ill-conditioned matrix detected: {record.nearly_singular} slice(s), the first is "
            f"slice {record.first_nearly_singular}.",
            linalg.LinAlgWarning,
        )
    warn_if_stack_inaccurate(solutions)
    return np.asarray(solutions.x).reshape(lead + b.shape[-2:])


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """Solve a x = b for one matrix or a stack of matrices, like `scipy.linalg.solve`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, nrhs)
    lower : bool
        Use the lower triangle of a symmetric, Hermitian or positive definite matrix.
    overwrite_a, overwrite_b : bool
        Allow x to use the memory of b. `a` does not change.
    check_finite : bool
        Raise ValueError if an element is not finite.
    assume_a : str, optional
        Structure of the matrix. The server solves with "general", "symmetric" and "hermitian" matrices, SciPy
        with the others: "diagonal", "tridiagonal", "banded", "upper triangular", "lower triangular",
        "positive definite". None: SciPy solves with a triangular or tridiagonal matrix.
    transposed : bool
        Solve with the transpose of a real matrix.

    Returns
    -------
    ndarray

    Raises
    ------
    LinAlgError
        A matrix is singular.
    ValueError, NotImplementedError
        Under the conditions of SciPy.
    """
    x = None
    if assume_a in _SERVED:
        x = _served_solve(a, b, lower, overwrite_b, check_finite, assume_a, transposed)
    if x is not None:
        return x
    options: dict[str, Any] = {} if assume_a is None else {"assume_a": assume_a}
    solved: Array = _solve(
        a,
        b,
        lower=lower,
        overwrite_a=overwrite_a,
        overwrite_b=overwrite_b,
        check_finite=check_finite,
        transposed=transposed,
        **options,
    )
    return solved


def _served_solve(
    a: Any, b: Any, lower: bool, overwrite_b: bool, check_finite: bool, assume_a: str | None, transposed: bool
) -> Array | None:
    """Solve on the server; None if SciPy handles the arguments."""
    sides = as_checked_array(b, check_finite)
    if sides is None or sides.ndim == 0 or sides.size == 0 or not np.isfinite(sides).all():
        return None
    matrix = _square(a, check_finite, assume_a, lower, sides)
    if matrix is None or sides.shape[0 if sides.ndim == 1 else -2] != matrix.shape[-1]:
        return None
    if transposed and np.iscomplexobj(matrix):
        return None
    typed = sides.astype(matrix.dtype, copy=False)
    columns = typed[:, np.newaxis] if typed.ndim == 1 else typed
    overwrite = overwrite_b and typed.ndim <= 2 and typed.flags.f_contiguous
    x = _factor_and_solve(matrix, columns, transposed, overwrite)
    return x[..., 0] if typed.ndim == 1 else x


def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """Invert a matrix or a stack of matrices, like `scipy.linalg.inv`.

    Parameters
    ----------
    a : array_like, shape (..., n, n), or sparse matrix
        A sparse matrix is inverted like by `scipy.sparse.linalg.inv`.
    overwrite_a : bool
        Allow the inverse to use the memory of a.
    check_finite : bool
        Raise ValueError if an element is not finite.
    assume_a, lower
        See `solve`.

    Returns
    -------
    ndarray, or sparse matrix for a sparse matrix

    Raises
    ------
    LinAlgError
        A matrix is singular.
    ValueError
        The matrix is not square.
    """
    if sparse.issparse(a):
        return spsolve(a, sparse.eye(*a.shape, dtype=a.dtype, format="csc"))
    matrix = _square(a, check_finite, assume_a, lower) if assume_a in _SERVED else None
    if matrix is None:
        options: dict[str, Any] = {} if assume_a is None else {"assume_a": assume_a, "lower": lower}
        return _inv(a, overwrite_a=overwrite_a, check_finite=check_finite, **options)
    unit = np.broadcast_to(np.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    inverse = _factor_and_solve(matrix, unit, False, False)
    if overwrite_a and matrix is a and a.ndim == 2 and a.flags.f_contiguous and a.flags.writeable:
        a[...] = inverse
        return a
    return inverse
