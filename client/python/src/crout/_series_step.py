"""What the server says of a step of a series."""

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
    """One step of a series: X, how far it can be trusted, and what was done for it.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs), or None
        As B is; None where the matrix is singular.
    accurate : bool
        The backward error is what was asked, or better.
    backward_error : float or None
        Largest over the columns, in the infinity-norm; None without x.
    accuracy : float
        The backward error that was asked.
    strategy : str
        What solved it: "reuse" of the factor that was there, that with an "update", or "refactor".
    old_iterations, new_iterations : int
        Applications of the factor that was there, and of a new one.
    age : int
        Steps since the factor that is there now was made; 0 where this one made it.
    update_rank : int
        Rank of the changes that an "update" was of; else 0.
    amplification : float
        A lower bound of the matrix's condition number.
    warnings : tuple of str
        What should be looked at: "not_accurate", "nearly_singular".
    solver : str
        Whose answer X is.
    factor : FactorRecord or None
        Of the factor that is there now; its handle is good for any call while the series lasts.
    device : str
        Where it was solved.
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
