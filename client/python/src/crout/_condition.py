# SPDX-License-Identifier: Apache-2.0
"""Condition estimates from solves."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crout.errors import CroutError
from crout.results import FactorRecord, Solution

Array = npt.NDArray[Any]

_STEPS = 5  # LAPACK's limit; two are usually enough
_VERSIONS = 5  # limit of versions, if others replace the factor meanwhile


def _signs(y: Array) -> Array:
    """Divide each number by its modulus; 0 becomes 1."""
    if not np.iscomplexobj(y):
        return np.where(y < 0, -1.0, 1.0)
    modulus = np.abs(y)
    return np.where(modulus > 0, y / np.where(modulus > 0, modulus, 1), 1)


def inverse_norm(n: int) -> Generator[tuple[Array, Literal[0, 2]], Array, float]:
    """Estimate the 1-norm of A^-1 with a few solves, as LAPACK's lacn2.

    N. J. Higham, "FORTRAN codes for estimating the one-norm of a real or complex matrix, with applications
    to condition estimation", ACM TOMS 14 (1988). The estimate is a lower bound, rarely too small by more
    than a factor of 3.

    Yields
    ------
    b : ndarray, shape (n,)
    trans : 0 or 2
        The system to solve: A x = b or A^H x = b. Send x.

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
    if n > 1:  # covers matrices for which the steps above fail
        i = np.arange(n)
        y = yield (-1.0) ** i * (1 + i / (n - 1)), 0
        estimate = max(estimate, 2 * float(np.abs(y).sum()) / (3 * n))
    return estimate


Step = Generator[tuple[Array, Literal[0, 2]] | None, Solution | FactorRecord, FactorRecord]


def estimate(record: FactorRecord) -> Step:
    """The record with its rcond, from solves with that version of the factor.

    If another user replaces the factor meanwhile, the estimate starts again with the new version.

    Yields
    ------
    (b, trans) or None
        As `inverse_norm`: send the Solution. None: send the current record of the factor.

    Returns
    -------
    FactorRecord
        With its rcond; of a later version if the factor was replaced.

    Raises
    ------
    CroutError
        The factor was replaced too often: "ABORTED".
    """
    for _ in range(_VERSIONS):
        if record.rcond is not None:
            return record
        inverse = yield from _inverse_norm_of(record)
        if inverse is not None:
            return _with_rcond(record, inverse)
        described = yield None
        assert isinstance(described, FactorRecord)
        record = described
    raise CroutError(
        "the factor was replaced again and again while its condition was estimated: ask for it with "
        "rcond=True where it is factored",
        code="ABORTED",
    )


def _inverse_norm_of(
    record: FactorRecord,
) -> Generator[tuple[Array, Literal[0, 2]], Solution | FactorRecord, float | None]:
    """`inverse_norm` of one version; None if a solution belongs to another version."""
    if record.info > 0:
        return np.inf
    steps = inverse_norm(record.n)
    try:
        question = next(steps)
        while True:
            solution = yield question
            assert isinstance(solution, Solution)
            if solution.factor_version != record.version:
                return None
            question = steps.send(solution.x)
    except StopIteration as end:
        return float(end.value)


def _with_rcond(record: FactorRecord, inverse: float) -> FactorRecord:
    """The record with its rcond, from the 1-norm of A^-1; 0 if a norm overflowed."""
    if record.n == 0:
        return dataclasses.replace(record, rcond=1.0)
    product = record.norm_one * inverse
    rcond = 1 / product if np.isfinite(product) and product > 0 else 0.0
    return dataclasses.replace(record, rcond=min(rcond, 1.0))
