"""The condition of a factor that is only known by its solves."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crout.results import FactorRecord

Array = npt.NDArray[Any]

_STEPS = 5  # LAPACK's; it rarely takes more than two.


def _signs(y: Array) -> Array:
    """Divide each number by its modulus; 1 of 0."""
    if not np.iscomplexobj(y):
        return np.where(y < 0, -1.0, 1.0)
    modulus = np.abs(y)
    return np.where(modulus > 0, y / np.where(modulus > 0, modulus, 1), 1)


def inverse_norm(n: int) -> Generator[tuple[Array, Literal[0, 2]], Array, float]:
    """Estimate the 1-norm of A^-1 by a few solves, as LAPACK's lacn2.

    N. J. Higham, "FORTRAN codes for estimating the one-norm of a real or complex matrix, with
    applications to condition estimation", ACM TOMS 14 (1988). The estimate is a lower bound, rarely
    too small by more than a factor of 3.

    Yields
    ------
    b : ndarray, shape (n,)
    trans : 0 or 2
        Which system to solve with it: A x = b or A^H x = b. Send x.

    Returns
    -------
    float
        0 for n = 0.
    """
    if n == 0:
        return 0.0
    y = yield np.full(n, 1 / n), 0
    estimate = float(np.abs(y).sum())
    signs = _signs(y)
    column = -1
    for _ in range(_STEPS if n > 1 else 0):
        z = yield signs, 2
        steepest = int(np.argmax(np.abs(z)))
        if column >= 0 and abs(z[steepest]) == abs(z[column]):
            break
        column = steepest
        unit = np.zeros(n)
        unit[column] = 1
        y = yield unit, 0
        previous, estimate = estimate, max(estimate, float(np.abs(y).sum()))
        before, signs = signs, _signs(y)
        if estimate <= previous or np.array_equal(signs, before):
            break
    if n > 1:  # A matrix on which the steps above are led astray is not by this one too.
        i = np.arange(n)
        y = yield (-1.0) ** i * (1 + i / (n - 1)), 0
        estimate = max(estimate, 2 * float(np.abs(y).sum()) / (3 * n))
    return estimate


def with_rcond(record: FactorRecord, inverse: float) -> FactorRecord:
    """The record with its rcond, from the 1-norm of A^-1; 0 where a norm left the range of its type."""
    if record.n == 0:
        return dataclasses.replace(record, rcond=1.0)
    product = record.norm_one * inverse
    rcond = 1 / product if np.isfinite(product) and product > 0 else 0.0
    return dataclasses.replace(record, rcond=min(rcond, 1.0))
