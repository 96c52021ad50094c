# SPDX-License-Identifier: Apache-2.0
"""The solution of a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from crout._factor_record import FactorRecord
from crout._words import optional, solver, timings, word
from crout.v1 import factor_pb2, factorization_service_pb2

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Solution:
    """X of op(A) X = B, with its accuracy.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs)
        Has the shape of B.
    backward_error : float or None
        Largest over the columns, in the infinity-norm; None if it was not verified.
    componentwise_error, forward_error_bound : float or None
        On request.
    refinement_steps : int
        Steps whose corrections are in X.
    solver, fallback : str
        Solver that computed X, and the reason why it replaced another one ("none" if it did not).
    factor_version : int
        Version of the factor that was used.
    device : str
        Device that solved.
    promoted : bool
        Whether the factor was first copied back from host memory.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    factor : FactorRecord or None
        Set if the call also factored.
    corrections : int or None
        Applications of the factor to correct X. Set for a low-precision factor and for a sparse one that
        is inaccurate: with perturbed pivots, or with a large ``pivot_growth`` or ``quality``.
    warnings : tuple of str
        "not_accurate": the backward error is not accepted, or X is not finite. "poor_factor": it was not
        measured, and the factor is poor. "nearly_singular": X may have no correct digit.
    """

    x: Array
    backward_error: float | None
    componentwise_error: float | None
    forward_error_bound: float | None
    refinement_steps: int
    solver: str
    fallback: str
    factor_version: int
    device: str
    promoted: bool
    timings: Mapping[str, float]
    factor: FactorRecord | None = None
    corrections: int | None = None
    warnings: tuple[str, ...] = ()


def solution(
    x: Array, message: factorization_service_pb2.SolveResult, factor: FactorRecord | None
) -> Solution:
    """The solution of a SolveResult message."""
    return Solution(
        x=x,
        backward_error=optional(message, "backward_error"),
        componentwise_error=optional(message, "componentwise_error"),
        forward_error_bound=optional(message, "forward_error_bound"),
        refinement_steps=message.refinement_steps,
        solver=solver(message.solver),
        fallback=word(factor_pb2.SolverFallback, "SOLVER_FALLBACK_", message.fallback),
        factor_version=message.factor_version,
        device=message.device,
        promoted=message.promoted,
        timings=timings(message.timings),
        factor=factor,
        corrections=optional(message, "corrections"),
        warnings=tuple(word(factor_pb2.Warning, "WARNING_", w) for w in message.warnings),
    )
