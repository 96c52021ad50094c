# SPDX-License-Identifier: Apache-2.0
"""The result of a step of a series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from crout._factor_record import FactorRecord
from crout._words import solver, timings, word
from crout.v1 import factor_pb2, factorization_service_pb2

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SeriesStep:
    """One step of a series: X, its accuracy, and the work done.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs), or None
        Has the shape of B; None if the matrix is singular.
    accurate : bool
        Whether the backward error is at most `accuracy`.
    backward_error : float or None
        Largest over the columns, in the infinity-norm; None without x.
    accuracy : float
        The requested backward error.
    strategy : str
        Strategy that solved the step: "reuse" of the current factor, "update" of it, or "refactor".
    old_iterations, new_iterations : int
        Applications of the previous factor, and of a new one.
    age : int
        Steps since the current factor was made; 0 if this step made it.
    update_rank : int
        Rank of the changes that an "update" applied; otherwise 0.
    amplification : float
        A lower bound of the matrix's condition number.
    warnings : tuple of str
        Reasons to check the result: "not_accurate", "nearly_singular".
    solver : str
        Solver that computed X.
    factor : FactorRecord or None
        Record of the current factor; other calls may use its handle while the series lasts.
    device : str
        Device that solved.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    x: Array | None
    accurate: bool
    backward_error: float | None
    accuracy: float
    strategy: str
    old_iterations: int
    new_iterations: int
    age: int
    update_rank: int
    amplification: float
    warnings: tuple[str, ...]
    solver: str
    factor: FactorRecord | None
    device: str
    timings: Mapping[str, float]


def series_step(
    x: Array | None, message: factorization_service_pb2.SeriesResult, factor: FactorRecord | None
) -> SeriesStep:
    """The step of a SeriesResult message."""
    return SeriesStep(
        x=x,
        accurate=message.accurate,
        backward_error=message.backward_error if message.solved else None,
        accuracy=message.accuracy,
        strategy=word(factorization_service_pb2.SeriesStrategy, "SERIES_STRATEGY_", message.strategy),
        old_iterations=message.old_iterations,
        new_iterations=message.new_iterations,
        age=message.age,
        update_rank=message.update_rank,
        amplification=message.amplification,
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
        solver=solver(message.solver),
        factor=factor,
        device=message.device,
        timings=timings(message.timings),
    )
