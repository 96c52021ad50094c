"""What series of matrices have in common, asynchronous or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any


def right_hand_sides(rhs: Any) -> Iterable[Any]:
    """One right-hand side for each matrix: an iterator's own, else the same for all."""
    return rhs if isinstance(rhs, Iterator) else itertools.repeat(rhs)
