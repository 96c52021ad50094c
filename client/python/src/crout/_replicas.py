# SPDX-License-Identifier: Apache-2.0
"""The servers that have the client's factors, if several servers share one address."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

# Metadata that a reply about a factor has, and that each later call on its handle repeats. Proxies choose the
# server by its value.
METADATA = "crout-replica"

# Reason of a call that a server refused because another server has the factor. The call had no effect.
OTHER_REPLICA = "OTHER_REPLICA"

_MAX_VALUE = 128  # longer values are not a server's


class Replicas:
    """The values of the metadata by handle. Thread-safe.

    At least the `handles` handles that were set last are stored.
    """

    def __init__(self, handles: int = 32768) -> None:
        self._handles = handles
        self._lock = threading.Lock()
        self._newer: dict[str, str] = {}  # at most `handles`
        self._older: dict[str, str] = {}  # replaced when _newer is full

    def metadata(self, handle: str) -> list[tuple[str, str]]:
        """Return the metadata of a call on `handle`; empty for "" and for an unknown handle."""
        with self._lock:
            value = self._newer.get(handle) or self._older.get(handle)
        return [] if value is None else [(METADATA, value)]

    def learn(self, handle: str, trailers: Iterable[Any] | None) -> None:
        """Store the value in the trailing metadata of a call on `handle`, if there is one."""
        for key, value in trailers or ():
            if handle and key == METADATA and isinstance(value, str) and 0 < len(value) <= _MAX_VALUE:
                with self._lock:
                    self._newer[handle] = value
                    if len(self._newer) >= self._handles:
                        self._newer, self._older = {}, self._newer
