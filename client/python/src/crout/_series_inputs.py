# SPDX-License-Identifier: Apache-2.0
"""Inputs of the steps of synchronous and asynchronous series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from crout.errors import InvalidRequest


def systems(matrices: Iterable[Any], rhs: Any, x0: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Combine each matrix with its right-hand side and initial guess.

    These come from an iterator, or are the same for all steps. Raises InvalidRequest if an iterator has
    another number than there are matrices, and for a list of vectors, which NumPy would read as the rows
    of one matrix.
    """
    for name, values in (("rhs", rhs), ("x0", x0)):
        if isinstance(values, (list, tuple)) and any(isinstance(value, np.ndarray) for value in values):
            raise InvalidRequest(
                f"{name} is a list of arrays: pass iter({name}) for one to each matrix, or "
                f"numpy.column_stack({name}) for all of them to every matrix"
            )
    nothing = object()
    sides = {"right-hand sides": rhs, "starts": x0}

    def one_to_each() -> Iterator[tuple[Any, Any, Any]]:
        for A in matrices:
            b, start = (
                next(values, nothing) if isinstance(values, Iterator) else values for values in sides.values()
            )
            for what, value in zip(sides, (b, start), strict=True):
                if value is nothing:
                    raise InvalidRequest(f"the {what} ended before the matrices did")
            yield A, b, start
        for what, values in sides.items():
            if isinstance(values, Iterator) and next(values, nothing) is not nothing:
                raise InvalidRequest(f"there are more {what} than matrices")

    return one_to_each()
