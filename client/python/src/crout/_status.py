# SPDX-License-Identifier: Apache-2.0
"""Converts the status of a call to an exception with the next step.

The details are google.rpc messages in the grpc-status-details-bin trailer. They are parsed with _wire,
because generated google.rpc messages would collide with those of googleapis-common-protos in protobuf's
registry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from crout import _advice, _wire
from crout.errors import (
    Cancelled,
    CroutError,
    DeadlineExceeded,
    HandleExpired,
    InvalidRequest,
    NotConverged,
    NotPermitted,
    NotSupported,
    Overloaded,
    ProtocolError,
    Singular,
    Unavailable,
)

_TRAILER = "grpc-status-details-bin"

_CLASSES: dict[str, type[CroutError]] = {
    "INVALID_ARGUMENT": InvalidRequest,
    "OUT_OF_RANGE": InvalidRequest,
    "FAILED_PRECONDITION": InvalidRequest,
    "UNIMPLEMENTED": NotSupported,
    "NOT_FOUND": HandleExpired,
    "RESOURCE_EXHAUSTED": Overloaded,
    "UNAVAILABLE": Unavailable,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "CANCELLED": Cancelled,
    "ABORTED": NotConverged,
    "UNAUTHENTICATED": NotPermitted,
    "PERMISSION_DENIED": NotPermitted,
}


def error_from(
    code: str, message: str, trailers: Iterable[tuple[str, str | bytes]], address: str, tls: bool = False
) -> CroutError:
    """The exception for a status other than OK of a call to `address`."""
    packed = b""
    for key, value in trailers:
        if key == _TRAILER and isinstance(value, bytes):
            packed = value
    # Malformed details must not hide the status.
    reason, delay = "", None
    details: dict[str, str] = {}
    with contextlib.suppress(ProtocolError, DecodeError, UnicodeDecodeError):
        reason, details, delay = _read_details(packed)
    kind = _class_of(code, reason, delay)
    hint = _advice.next_step(kind, reason, delay, address)
    if kind is Singular and "replace_if_singular" in message:
        hint = ""  # the factor stays usable, and the message has the next step
    if kind is Unavailable and not reason:
        message = _advice.without_lookup(message)
        hint = _advice.of_connection(message, tls, address) or hint
    text = _advice.in_python(message)
    text = f"{text.rstrip('.')}. {hint}." if hint else text
    return kind(text, code=code, reason=reason, details=details, retry_delay=delay)


def _class_of(code: str, reason: str, delay: float | None) -> type[CroutError]:
    if reason == "SINGULAR_MATRIX":
        return Singular
    if code == "ABORTED" and delay is not None:
        return Overloaded  # another call with this request_id is in progress
    return _CLASSES.get(code, CroutError)


def _read_details(packed: bytes) -> tuple[str, dict[str, str], float | None]:
    """Reason, metadata and retry delay of a google.rpc.Status."""
    reason = ""
    details: dict[str, str] = {}
    delay = None
    for any_message in _wire.values(packed, 3):
        kind = _text(any_message, 1).rpartition("/")[2]
        value = b"".join(_wire.values(any_message, 2))
        if kind == "google.rpc.ErrorInfo":
            reason = _text(value, 1)
            for entry in _wire.values(value, 3):
                details[_text(entry, 1)] = _text(entry, 2)
        elif kind == "google.rpc.RetryInfo":
            for encoded in _wire.values(value, 1):
                duration = Duration.FromString(encoded)
                delay = max(0.0, duration.seconds + duration.nanos * 1e-9)
        elif kind == "google.rpc.BadRequest":
            for violation in _wire.values(value, 1):
                details["field"] = _text(violation, 1)
    return reason, details, delay


def _text(message: bytes, number: int) -> str:
    return b"".join(_wire.values(message, number)).decode()
