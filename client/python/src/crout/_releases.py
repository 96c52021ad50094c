# SPDX-License-Identifier: Apache-2.0
"""Releases factors when their owners are collected, and all of them when the client closes."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable

from crout.errors import CroutError, HandleExpired

_MAX_CLOSE_SECONDS = 5.0  # limit of the releases of `close`

_of_this_process: weakref.WeakSet[Releases] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Forget the parent's factors, and replace all locks: threads of the parent may have held them."""
    for releases in _of_this_process:
        releases._reset()


os.register_at_fork(after_in_child=_reset_after_fork)


@atexit.register
def _close_all() -> None:
    for releases in list(_of_this_process):
        releases.close()


class Releases:
    """Releases factors on a thread, which runs while there are owners. Thread-safe.

    A forked child does not release its parent's factors.

    Parameters
    ----------
    release : callable
        Releases a handle, in at most the given seconds.
    """

    def __init__(self, release: Callable[[str, float], object]) -> None:
        self._release = release
        self._reset()
        _of_this_process.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._handles: set[str] = set()
        self._thread: threading.Thread | None = None
        # Destructors run at any time, even while this thread holds a lock; SimpleQueue permits that.
        self._collected: queue.SimpleQueue[str] = queue.SimpleQueue()

    def own(self, owner: object, handle: str) -> Callable[[], object]:
        """Release `handle` after `owner` is collected. The returned function releases it before that."""
        release = weakref.finalize(owner, self._collected.put, handle)
        release.atexit = False
        with self._lock:
            self._handles.add(handle)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="crout-releases", daemon=True)
                self._thread.start()
        return release

    def disown(self, handle: str, release: Callable[[], object]) -> None:
        """Cancel the release of `handle`, where `release` is the result of `own`."""
        with self._lock:
            self._handles.discard(handle)
        if isinstance(release, weakref.finalize):
            release.detach()
        self._collected.put(handle)  # wakes the thread, which may now end

    def close(self) -> None:
        """Release all factors, in a few seconds at most. Those that remain live until their leases end."""
        with self._lock:
            handles, self._handles = self._handles, set()
            if self._thread is not None:
                self._collected.put("")  # wakes the thread, which ends
        end = time.monotonic() + _MAX_CLOSE_SECONDS
        for handle in handles:
            try:
                self._release(handle, max(end - time.monotonic(), 0.01))
            except HandleExpired:
                continue
            except CroutError:
                break  # the server does not answer

    def _work(self) -> None:
        while True:
            handle = self._collected.get()
            with self._lock:
                known = handle in self._handles
                self._handles.discard(handle)
            if known:
                with contextlib.suppress(CroutError):  # the factor then lives until its lease ends
                    self._release(handle, _MAX_CLOSE_SECONDS)
            with self._lock:
                if not self._handles:
                    self._thread = None
                    return
