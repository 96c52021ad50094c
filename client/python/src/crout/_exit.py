"""Iterators that hold something on the server: they are closed before the interpreter shuts down."""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

_unfinished: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()

# What a process began before it forked stays its own.
os.register_at_fork(after_in_child=_unfinished.clear)


def closed_at_exit(iterator: Generator[T, None, None]) -> Generator[T, None, None]:
    """The iterator, which is closed at the program's end if it is there still.

    Later, while modules are torn down, threads do not start, and gRPC's do not run.
    """
    _unfinished.add(iterator)
    return iterator


@atexit.register
def _close_all() -> None:
    for iterator in list(_unfinished):
        with contextlib.suppress(ValueError):  # Another thread is inside.
            iterator.close()
