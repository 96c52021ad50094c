# SPDX-License-Identifier: Apache-2.0
"""Closes iterators that hold objects on the server before the interpreter shuts down."""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

_unfinished: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()

# A child process does not close iterators of its parent.
os.register_at_fork(after_in_child=_unfinished.clear)


def closed_at_exit(iterator: Generator[T, None, None]) -> Generator[T, None, None]:
    """Register the iterator, so that it is closed at exit if it still exists.

    While modules are torn down, threads cannot start and gRPC's threads do not run.
    """
    _unfinished.add(iterator)
    return iterator


@atexit.register
def _close_all() -> None:
    for iterator in list(_unfinished):
        with contextlib.suppress(ValueError):  # another thread is running it
            iterator.close()
