# SPDX-License-Identifier: Apache-2.0
"""`lu_factor` and `lu_solve` of `crout.scipy`.

SciPy itself handles arguments that are invalid or empty, so that its exceptions and results stay the same.
"""

from __future__ import annotations

import abc
import dataclasses
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.linalg import blas, lapack

from crout import _batch, _payload
from crout._diagnostics import warn_of_batch_solution
from crout._linalg import MemberFactors
from crout._scipy_server import Held, HeldFactor
from crout.errors import HandleExpired, Singular, warn
from crout.records import BatchRecord
from crout.results import BatchSolution

Array = npt.NDArray[Any]

# SciPy's own functions, also if a program replaces them by those of this module.
_lu_factor = linalg.lu_factor
_lu_solve = linalg.lu_solve


def as_checked_array(value: Any, check_finite: bool) -> Array | None:
    """Convert an argument to an array; None if only SciPy handles it."""
    if sparse.issparse(value) or isinstance(value, np.ma.MaskedArray):
        return None
    array = _payload.as_array(value)
    if array.dtype.kind not in "biufc":
        return None
    if check_finite:
        array = np.asarray_chkfinite(array)
    return array


def blas_dtype(*arrays: Array) -> np.dtype[Any]:
    """Return the type in which LAPACK computes with these arrays."""
    dtype: np.dtype[Any] = blas.find_best_blas_type(arrays)[1]
    return dtype


def columns_of(b: Array) -> Array:
    """Return the matrices of a stack side by side."""
    if b.ndim <= 2:
        return b
    return np.moveaxis(b, -2, 0).reshape(b.shape[-2], -1)


def from_columns(x: Array, shape: tuple[int, ...]) -> Array:
    """Reverse `columns_of`."""
    if len(shape) <= 2:
        return x
    return np.moveaxis(x.reshape(shape[-2], *shape[:-2], shape[-1]), 0, -2)


class _Solver(abc.ABC):
    """A factor on the server, or the factors of a stack.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, matrices: Array) -> None:
        self.shape = matrices.shape
        self.dtype = matrices.dtype

    @abc.abstractmethod
    def solve(self, b: Array, trans: Literal[0, 1, 2], overwrite_b: bool) -> Array | None:
        """Solve; None if only the arrays lu and piv can do it."""

    @abc.abstractmethod
    def download(self) -> tuple[Array, Array]:
        """Return lu and piv."""


class _MatrixSolver(_Solver):
    """The factor of one square matrix, which must not change."""

    def __init__(self, matrix: Array) -> None:
        super().__init__(matrix)
        self.held = HeldFactor(matrix, equilibrate=False)  # with the row interchanges of LAPACK

    def download(self) -> tuple[Array, Array]:
        lu, piv = self.held.download().lu_piv()
        self.held.forget()  # the arrays replace a factor that the server loses
        return lu, piv

    def solve(self, b: Array, trans: Literal[0, 1, 2], overwrite_b: bool) -> Array | None:
        try:
            x = self.held.solve(columns_of(b), trans, overwrite_b=overwrite_b)
        except HandleExpired:
            return None
        return from_columns(x, b.shape)


class _StackSolver(_Solver):
    """The factors of a stack of matrices, which may be rectangular and must not change."""

    def __init__(self, matrices: Array) -> None:
        super().__init__(matrices)
        members = matrices.reshape(-1, *matrices.shape[-2:])
        self._held: Held[BatchRecord] = Held(
            lambda lease: _batch.factorize(members, lease=lease), lambda record: record.factor.handle
        )

    @property
    def info(self) -> Array:
        """LAPACK's info of each matrix."""
        return self._held.record.info

    def download(self) -> tuple[Array, Array]:
        members: list[MemberFactors]
        members = self._held.run(lambda record: _batch.get_members(record, 0, len(record.shapes)))
        lu = np.stack([member.lu for member in members])
        piv = np.stack([member.piv for member in members])
        return lu.reshape(self.shape), piv.reshape(*self.shape[:-2], -1)

    def solve(self, b: Array, trans: Literal[0, 1, 2], overwrite_b: bool) -> Array | None:
        lead = self.shape[:-2]
        sides = b[:, np.newaxis] if b.ndim == 1 else b
        if b.dtype.kind != self.dtype.kind or np.broadcast_shapes(lead, sides.shape[:-2]) != lead:
            return None
        sides = np.broadcast_to(sides, lead + sides.shape[-2:])
        members = sides.reshape(-1, *sides.shape[-2:])
        solution = self._held.run(lambda record: _batch.solve(record, members, None, trans=trans))
        warn_if_stack_inaccurate(solution)
        x = np.asarray(solution.x).reshape(sides.shape)
        return x[..., 0] if b.ndim == 1 else x


class LuFactors(Sequence[Array]):
    """A factor on the server. It unpacks like the pair (lu, piv) of `scipy.linalg.lu_factor`.

    The arrays are downloaded when they are first used. They are read-only, because `lu_solve` solves with
    the factor on the server instead. It is released when neither this object nor lu is used any more.

    Attributes
    ----------
    shape : tuple of int
        Shape of lu.
    dtype : numpy.dtype
        Type of lu.
    """

    def __init__(self, solver: _Solver) -> None:
        self._solver = solver
        self._lock = threading.Lock()
        self._pair: tuple[Array, Array] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._solver.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._solver.dtype

    def _arrays(self) -> tuple[Array, Array]:
        with self._lock:
            if self._pair is None:
                lu, piv = self._solver.download()
                piv = piv.astype(np.int32)
                lu.flags.writeable = piv.flags.writeable = False
                _remember(lu, piv, self._solver)
                self._pair = lu, piv
            return self._pair

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[Array]:
        return iter(self._arrays())

    def __getitem__(self, index: Any) -> Any:
        return self._arrays()[index]

    def __repr__(self) -> str:
        return f"<crout.scipy.LuFactors of shape {self.shape}, {self.dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._arrays(),)  # the factor belongs to this process


# Solvers by the id of the array lu that a caller may have unpacked, with references to lu and piv.
_unpacked: dict[int, tuple[weakref.ref[Array], weakref.ref[Array], _Solver]] = {}


def _remember(lu: Array, piv: Array, solver: _Solver) -> None:
    """Keep `solver` as long as `lu` exists, so that `lu_solve` finds it."""
    key = id(lu)
    _unpacked[key] = weakref.ref(lu, lambda _: _unpacked.pop(key, None)), weakref.ref(piv), solver


def _solver_of(lu_and_piv: Any) -> _Solver | None:
    """Return the solver of a pair; None if its arrays have another origin or may have changed."""
    if isinstance(lu_and_piv, LuFactors):
        return lu_and_piv._solver
    lu, piv = lu_and_piv
    found = _unpacked.get(id(lu))
    if found is None or not (found[0]() is lu and found[1]() is piv):
        return None
    writeable = any(array is None or array.flags.writeable for array in (lu, piv))
    return None if writeable else found[2]


def warn_if_stack_inaccurate(solution: BatchSolution) -> None:
    if "not_accurate" in solution.warnings:
        warn_of_batch_solution(dataclasses.replace(solution, warnings=("not_accurate",)))


def _warn_of_zero_pivot(info: int) -> None:
    warn(f"Diagonal number {info} is exactly zero. Singular matrix.", linalg.LinAlgWarning)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Factor a matrix or a stack of matrices, like `scipy.linalg.lu_factor`; the factors stay on the server.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    overwrite_a : bool
        Ignored: `a` does not change, and the caller may change it afterwards.
    check_finite : bool
        Raise ValueError if an element is not finite.

    Returns
    -------
    LuFactors
        Unpacks into lu and piv. For a singular or empty matrix this is a tuple of arrays, as in SciPy.
    """
    array = as_checked_array(a, check_finite)
    if array is None or array.ndim < 2 or array.size == 0 or not np.isfinite(array).all():
        return _lu_factor(a, overwrite_a=overwrite_a, check_finite=check_finite)
    matrix = array.astype(blas_dtype(array))  # a copy, because a lost factor is made again from it
    if matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]:
        solver = _MatrixSolver(matrix)
        info = solver.held.record.info
        if info == 0:
            return LuFactors(solver)
        _warn_of_zero_pivot(info)
        try:
            lu, piv = solver.download()
        except Singular:  # the server factored only to the zero pivot
            lu, piv, _ = lapack.get_lapack_funcs(("getrf",), (matrix,))[0](matrix)
        return lu, piv.astype(np.int32)
    stack = _StackSolver(matrix)
    for info in stack.info[stack.info > 0].tolist():
        _warn_of_zero_pivot(info)
    if stack.info.any():
        lu, piv = stack.download()
        return lu, piv.astype(np.int32)
    return LuFactors(stack)


def lu_solve(
    lu_and_piv: Any, b: Any, trans: Literal[0, 1, 2] = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solve with a factor, like `scipy.linalg.lu_solve`.

    Parameters
    ----------
    lu_and_piv : LuFactors, or tuple of arrays
        From `lu_factor`. SciPy solves with all other pairs, and with arrays that were made writeable.
    b : array_like, shape (n,) or (..., n, nrhs)
    trans : {0, 1, 2}
        0: A x = b. 1: A^T x = b. 2: A^H x = b.
    overwrite_b : bool
        Allow x to use the memory of b.
    check_finite : bool
        Raise ValueError if an element of b is not finite.

    Returns
    -------
    ndarray, shape of b
    """
    solver = _solver_of(lu_and_piv)
    sides = None if solver is None else as_checked_array(b, check_finite)
    if solver is not None and sides is not None and sides.ndim > 0 and sides.size > 0:
        rows = sides.shape[0 if sides.ndim == 1 else -2]
        if solver.shape[-2] != solver.shape[-1] or rows != solver.shape[-1]:
            raise ValueError(f"Shapes of lu {solver.shape} and b {sides.shape} are incompatible")
        if trans not in (0, 1, 2):
            raise ValueError(f"trans is {trans!r}: give 0, 1 or 2")
        if np.isfinite(sides).all():
            typed = sides.astype(blas_dtype(np.empty(0, solver.dtype), sides), copy=False)
            x = solver.solve(typed, trans, overwrite_b and typed.ndim <= 2 and typed.flags.f_contiguous)
            if x is not None:
                return x
    solved: Array = _lu_solve(
        tuple(lu_and_piv), b, trans=trans, overwrite_b=overwrite_b, check_finite=check_finite
    )
    return solved
