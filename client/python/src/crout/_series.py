"""What series of matrices have in common, asynchronous or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from crout.errors import InvalidRequest


def pairs(matrices: Iterable[Any], rhs: Any) -> Iterator[tuple[Any, Any]]:
    """Each matrix with its right-hand side: an iterator's next, else the same for all.

    Raises InvalidRequest where an iterator has not as many as there are matrices, and for a list of
    vectors: NumPy would make them the rows of one matrix.
    """
    if not isinstance(rhs, Iterator):
        if isinstance(rhs, (list, tuple)) and any(isinstance(side, np.ndarray) for side in rhs):
            raise InvalidRequest(
                "rhs is a list of arrays: pass iter(rhs) for one to each matrix, or "
                "numpy.column_stack(rhs) for all of them to every matrix"
            )
        return zip(matrices, itertools.repeat(rhs), strict=False)
    return _one_to_each(matrices, rhs)


def _one_to_each(matrices: Iterable[Any], sides: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    nothing = object()
    for A in matrices:
        b = next(sides, nothing)
        if b is nothing:
            raise InvalidRequest("the right-hand sides ended before the matrices did")
        yield A, b
    if next(sides, nothing) is not nothing:
        raise InvalidRequest("there are more right-hand sides than matrices")
