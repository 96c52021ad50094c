"""How the parts of a message are said in Python."""

from __future__ import annotations

import datetime
from typing import Any, Protocol

from crout.v1 import factor_pb2


class _EnumType(Protocol):
    def Name(self, number: Any) -> str: ...  # noqa: N802


def word(enum: _EnumType, prefix: str, number: int) -> str:
    """Make "getrf" of ALGORITHM_GETRF; the number where a newer server has more."""
    try:
        return enum.Name(number).removeprefix(prefix).lower()
    except ValueError:
        return str(number)


def algorithm(number: int) -> str:
    """Make "getrf" of its number."""
    return word(factor_pb2.Algorithm, "ALGORITHM_", number)


def solver(number: int) -> str:
    """Make "getrs" of its number."""
    return word(factor_pb2.Solver, "SOLVER_", number)


def time_of(message: Any) -> datetime.datetime:
    """Of a Timestamp; microseconds are as fine as Python tells."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def seconds(message: Any) -> float:
    """Of a Duration."""
    return float(message.seconds + message.nanos * 1e-9)


def timings(message: factor_pb2.Timings) -> dict[str, float]:
    """Seconds by phase, of those that happened."""
    return {field.name.removesuffix("_seconds"): value for field, value in message.ListFields()}


def optional(message: Any, name: str) -> Any:
    """A field, or None where it is not there."""
    return getattr(message, name) if message.HasField(name) else None
