# SPDX-License-Identifier: Apache-2.0
"""Renews the leases of factors in ``with`` blocks, on a thread of the client."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from crout.errors import CroutError, HandleExpired


def pause(lease: float, failed: bool = False) -> float:
    """Seconds until a lease of that many seconds is renewed, or the renewal retried.

    Two attempts may fail, or be late, before the lease ends.
    """
    return lease / (12 if failed else 3)


_of_this_process: weakref.WeakSet[Renewals] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """In a forked child: the parent's threads do not exist and may have held any lock."""
    for renewals in _of_this_process:
        renewals._reset()


os.register_at_fork(after_in_child=_reset_after_fork)


class Renewals:
    """The leases to renew; thread-safe. Its thread runs while there are any.

    After a fork the child renews none; the parent's leases stay with the parent.
    """

    def __init__(self, renew: Callable[[str, float], object]) -> None:
        self._renew = renew
        self._reset()
        _of_this_process.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[str, tuple[float, float]] = {}  # handle: lease, time of its renewal
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
        """Whether the lease is renewed."""
        with self._changed:
            return handle in self._held

    def drop(self, handle: str) -> None:
        """Stop renewing a lease. A running renewal may still end after this."""
        with self._changed:
            self._held.pop(handle, None)
            self._changed.notify()

    def close(self) -> None:
        """Stop all renewals. A running renewal ends with its call."""
        with self._changed:
            self._held.clear()
            self._changed.notify()

    def join(self, timeout: float) -> None:
        """Wait for the thread of a closed object, with a time limit."""
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
                self.drop(handle)  # its next use reports the error
            except CroutError:
                failed = True
            with self._changed:
                if handle in self._held:
                    self._held[handle] = (lease, time.monotonic() + pause(lease, failed))

    def _next_due(self) -> tuple[str, float] | None:
        """Wait until a lease is due. None, which ends the thread, if there is no lease."""
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
