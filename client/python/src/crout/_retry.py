# SPDX-License-Identifier: Apache-2.0
"""The retry policy, the same as in the C++ client (client/cpp/retry.h)."""

from __future__ import annotations

import enum
import random
import time
from dataclasses import dataclass

from crout.errors import CroutError

_MAX_TIMEOUT = 1e9  # seconds; gRPC cannot represent much longer deadlines


class RetryClass(enum.Enum):
    """Effect of a second attempt."""

    # A second attempt could repeat the effect. Retried only after a refusal before any effect:
    # RESOURCE_EXHAUSTED and ABORTED with the server's delay.
    REFUSED_ONLY = enum.auto()
    # A second attempt has no further effect: reads, and calls with a request_id. Retried also after
    # UNAVAILABLE.
    IDEMPOTENT = enum.auto()


@dataclass(frozen=True)
class RetryPolicy:
    """Policy of retries.

    The server's delay takes precedence over the exponential one. Retries end at the call's timeout.

    Attributes
    ----------
    max_attempts : int
        1: no retries.
    initial_backoff, max_backoff : float
        Seconds before the second attempt, and the largest delay; the delay doubles each time.
    max_server_delay : float
        Largest delay that is accepted from a server, in seconds.
    """

    max_attempts: int = 4
    initial_backoff: float = 0.05
    max_backoff: float = 5.0
    max_server_delay: float = 30.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError("max_attempts is less than 1")


class Attempts:
    """Counts the attempts of one call and watches its deadline."""

    def __init__(self, policy: RetryPolicy, retry: RetryClass, timeout: float | None) -> None:
        self._policy = policy
        self._retry = retry
        if timeout is not None and timeout > _MAX_TIMEOUT:
            timeout = None
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._made = 0

    def begin(self) -> float | None:
        """Count an attempt. Returns its remaining seconds, None for no limit."""
        self._made += 1
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def delay_after(self, error: CroutError, repeatable: bool) -> float:
        """Seconds to wait before the next attempt. Raises `error` if there is none."""
        if not repeatable or self._made >= self._policy.max_attempts or not self._may_retry(error):
            raise error
        delay = self._delay(error.retry_delay)
        if self._deadline is not None and time.monotonic() + delay >= self._deadline:
            raise error
        return delay

    def _may_retry(self, error: CroutError) -> bool:
        if error.code in ("RESOURCE_EXHAUSTED", "ABORTED"):
            return error.retry_delay is not None
        return error.code == "UNAVAILABLE" and self._retry is RetryClass.IDEMPOTENT

    def _delay(self, server_delay: float | None) -> float:
        """Randomize the delay, so that clients refused together do not retry together."""
        if server_delay is not None:
            return min(server_delay, self._policy.max_server_delay) * random.uniform(1.0, 1.2)
        backoff: float = self._policy.initial_backoff * 2 ** (self._made - 1)
        return min(backoff, self._policy.max_backoff) * random.uniform(0.5, 1.0)
