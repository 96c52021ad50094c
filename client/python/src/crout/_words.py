# SPDX-License-Identifier: Apache-2.0
"""Conversion of message fields to Python values."""

from __future__ import annotations

import datetime
from typing import Any, Protocol

from crout.v1 import factor_pb2


class _EnumType(Protocol):
    def Name(self, number: Any) -> str: ...  # noqa: N802


def word(enum: _EnumType, prefix: str, number: int) -> str:
    """Convert ALGORITHM_GETRF to "getrf". An unknown value of a newer server becomes its number."""
    try:
        return enum.Name(number).removeprefix(prefix).lower()
    except ValueError:
        return str(number)


def algorithm(number: int) -> str:
    """The name of an algorithm, such as "getrf"."""
    return word(factor_pb2.Algorithm, "ALGORITHM_", number)


def solver(number: int) -> str:
    """The name of a solver, such as "getrs"."""
    return word(factor_pb2.Solver, "SOLVER_", number)


def time_of(message: Any) -> datetime.datetime:
    """A datetime of a Timestamp, with microseconds, the resolution of datetime."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def seconds(message: Any) -> float:
    """Seconds of a Duration."""
    return float(message.seconds + message.nanos * 1e-9)


def timings(message: factor_pb2.Timings) -> dict[str, float]:
    """Seconds by phase, without phases that did not happen."""
    return {field.name.removesuffix("_seconds"): value for field, value in message.ListFields()}


def optional(message: Any, name: str) -> Any:
    """A field, or None if it is not set."""
    return getattr(message, name) if message.HasField(name) else None
