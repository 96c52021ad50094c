"""Renews the leases of factors that are held by a ``with`` block, on a thread of the client's own."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from crout.errors import CroutError, HandleExpired


def pause(lease: float, failed: bool = False) -> float:
    """Seconds until a lease of that many seconds is renewed (again, where that failed).

    Two attempts may fail, or be late, before it ends.
    """
    return lease / (12 if failed else 3)


_of_this_process: weakref.WeakSet[Renewals] = weakref.WeakSet()


def _begin_anew() -> None:
    """In a forked child: the parent's threads are not there, and may have held any lock."""
    for renewals in _of_this_process:
        renewals._reset()


os.register_at_fork(after_in_child=_begin_anew)


class Renewals:
    """The leases that are held; thread-safe. Its thread runs while there are any.

    After a fork the child holds none: what its parent held stays the parent's.
    """

    def __init__(self, renew: Callable[[str, float], object]) -> None:
        self._renew = renew
        self._reset()
        _of_this_process.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[str, tuple[float, float]] = {}  # handle: lease, when it is due
        self._thread: threading.Thread | None = None

    def hold(self, handle: str, lease: float) -> None:
        """Renew the lease from now on."""
        with self._changed:
            self._held[handle] = (lease, time.monotonic() + pause(lease))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="crout-renewals", daemon=True)
                self._thread.start()
            self._changed.notify()

    def holds(self, handle: str) -> bool:
        """Whether it is renewed."""
        with self._changed:
            return handle in self._held

    def drop(self, handle: str) -> None:
        """Renew it no more. A renewal under way may still end after this."""
        with self._changed:
            self._held.pop(handle, None)
            self._changed.notify()

    def close(self) -> None:
        """Renew nothing more. A renewal under way ends with its call."""
        with self._changed:
            self._held.clear()
            self._changed.notify()

    def join(self, timeout: float) -> None:
        """Wait for the thread of a closed one, but not for longer than that."""
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _work(self) -> None:
        while (due := self._next_due()) is not None:
            handle, lease = due
            failed = False
            try:
                self._renew(handle, lease)
            except HandleExpired:
                self.drop(handle)  # Its next use says so.
            except CroutError:
                failed = True
            with self._changed:
                if handle in self._held:
                    self._held[handle] = (lease, time.monotonic() + pause(lease, failed))

    def _next_due(self) -> tuple[str, float] | None:
        """Wait until a lease is due. None, and the thread is to end, when none is held."""
        with self._changed:
            while self._held:
                handle = min(self._held, key=lambda held: self._held[held][1])
                lease, due = self._held[handle]
                wait = due - time.monotonic()
                if wait <= 0:
                    return handle, lease
                self._changed.wait(wait)
            self._thread = None
            return None
