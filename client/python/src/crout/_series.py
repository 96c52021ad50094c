"""What series of matrices have in common, asynchronous or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from crout.errors import InvalidRequest


def right_hand_sides(rhs: Any) -> Iterable[Any]:
    """One right-hand side for each matrix: an iterator's own, else the same for all."""
    return _each_of(rhs) if isinstance(rhs, Iterator) else itertools.repeat(rhs)


def _each_of(rhs: Iterator[Any]) -> Iterator[Any]:
    yield from rhs
    raise InvalidRequest("the right-hand sides ended before the matrices did")
