# SPDX-License-Identifier: Apache-2.0
"""Exceptions for failed calls and warnings about results. Both state the next step.

The details of a status are google.rpc messages in the grpc-status-details-bin trailer. They are parsed with
_wire, because generated google.rpc messages would collide with googleapis-common-protos in protobuf's
registry.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable

import numpy as np
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from crout import _wire
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
    warn,
)
from crout.records import BatchRecord, FactorRecord
from crout.results import BatchSolution, Complement, EchelonForm, SeriesStep, Solution

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

# By google.rpc.Code, from 0 on.
_CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)

# Starts of gRPC's messages for a stream that a proxy or a stopping server reset. The messages for calls that
# this client cancelled differ.
_RESET = ("Received RST_STREAM", "Stream removed", "CANCELLED")


def error_from(
    code: str, message: str, trailers: Iterable[tuple[str, str | bytes]], address: str, tls: bool = False
) -> CroutError:
    """Make the exception for a failed call to `address`. `tls` is true if the client uses TLS."""
    packed = b""
    for key, value in trailers:
        if key == _TRAILER and isinstance(value, bytes):
            packed = value
    if message.startswith(_RESET):
        code, message = _before_reset(packed, message)
    # Malformed details must not hide the status.
    reason, delay = "", None
    details: dict[str, str] = {}
    with contextlib.suppress(ProtocolError, DecodeError, UnicodeDecodeError):
        reason, details, delay = _read_details(packed)
    kind = _class_of(code, reason, delay)
    hint = next_step(kind, reason, delay, address)
    if kind is Singular and "replace_if_singular" in message:
        hint = ""  # the message has the next step
    if kind is Unavailable and not reason:
        message = without_lookup(message)
        hint = advice_on_connection(message, tls, address) or hint
    text = in_python(message)
    text = f"{text.rstrip('.')}. {hint}." if hint else text
    return kind(text, code=code, reason=reason, details=details, retry_delay=delay)


def _before_reset(packed: bytes, message: str) -> tuple[str, str]:
    """Return the code and the message of the status that the server sent, or UNAVAILABLE if it sent none.

    A proxy may reset the stream after the status, if the upload has not ended. gRPC then replaces the code.
    """
    with contextlib.suppress(ProtocolError, UnicodeDecodeError):
        key, code = (*packed[:2], 0, 0)[:2]
        if key == 8 and 0 < code < len(_CODES):  # field 1, a varint of one byte
            return _CODES[code], _text(packed, 2)
    return "UNAVAILABLE", f"the server or a proxy ended the call: {message}"


def _class_of(code: str, reason: str, delay: float | None) -> type[CroutError]:
    if reason == "SINGULAR_MATRIX":
        return Singular
    if code == "ABORTED" and delay is not None:
        return Overloaded  # another call with this request_id is in progress
    return _CLASSES.get(code, CroutError)


def _read_details(packed: bytes) -> tuple[str, dict[str, str], float | None]:
    """Return the reason, metadata and retry delay in seconds of a serialized google.rpc.Status."""
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


# Advice for HandleExpired in addition to the server's message, by ErrorInfo.reason.
_LOST_FACTOR_ADVICE = {
    "HANDLE_EXPIRED": "A `with` block renews the lease while the program runs and the server answers",
    "HANDLE_RELEASED": (
        "The end of a `with` block releases its factor; the end of a series releases the factor of the series"
    ),
    "HANDLE_UNKNOWN": "The handle may also belong to another tenant=",
    "SERVER_RESTARTED": 'lu_factor(..., on_lost="refactor") factors a lost matrix again',
}


# Advice for DeadlineExceeded, by ErrorInfo.reason.
_TIMEOUT_ADVICE = {
    "UPLOAD_IDLE": "Send without pauses, or raise the server's --upload-idle-timeout",
    "UPLOAD_SLOW": "Send over a faster connection, or lower the server's --upload-min-rate",
    "SERIES_IDLE": "Start another series with start= its factor, or raise the server's --series-idle-timeout",
}

# Keywords of this package for protocol fields, by the last part of the field's path.
_KEYWORDS = {
    "matrix": "A",
    "rhs": "b",
    "condition": "rcond=",
    "factor_dtype": "dtype=",
    "interval_high": "interval",
    "interval_low": "interval",
    "keep_matrix": "keep_matrix=",
    "leading_order": "leading_order",
    "max_refinement_steps": "refine=",
    "operation": "trans=",
    "refine_componentwise": "componentwise=",
    "solver_tolerance": "tolerance=",
    "verify": "verify=",
}
_PATH = re.compile(r"\bheader((?:\.[a-z_0-9]+)+)")
_WORD = re.compile(rf"\b({'|'.join(name for name in _KEYWORDS if '_' in name)})\b(?!=)")
# Paths below these fields become the argument: "header.matrix.dense.rows" becomes "A".
_MATRICES = ("matrix", "rhs", "x0")


def in_python(message: str) -> str:
    """Replace the protocol fields in a message of the server by keywords of this package."""
    return _WORD.sub(lambda word: _KEYWORDS[word[0]], _PATH.sub(lambda path: _keyword(path[1]), message))


def _keyword(path: str) -> str:
    parts = path[1:].split(".")
    if parts[0] in _MATRICES:
        return _KEYWORDS.get(parts[0], parts[0])
    if parts[:2] == ["options", "parameters"]:
        name = parts[-1]
        return "parameters=" if name == "parameters" else f"parameters= {_KEYWORDS.get(name, name)!r}"
    if parts[-1] in ("options", "solve", "cache", "change"):
        return "the options" if parts[-1] in ("options", "solve") else parts[-1]
    if parts[0] == "change":
        return "the change"
    return _KEYWORDS.get(parts[-1], parts[-1] + "=")


def next_step(kind: type[CroutError], reason: str, delay: float | None, address: str) -> str:
    """Return the remedy for an error; "" if the message contains it."""
    if kind is HandleExpired:
        return _LOST_FACTOR_ADVICE.get(reason, "")
    if reason == "PATTERN_MISMATCH":
        return "Use refactor(A) without values_only; in a series, send A instead of crout.Values(A)"
    if kind is DeadlineExceeded:
        return _TIMEOUT_ADVICE.get(reason, "Give the call or the client a longer timeout=")
    if kind is Unavailable and not reason:
        return f"Start croutd at {address}, or connect to another server"
    if kind is Overloaded and delay is not None:
        return f"Try again in {delay:.3g} s"
    if kind is Overloaded:
        return "Release factors, factor a smaller matrix, or give the server more memory"
    if kind is Singular:
        return "numpy.linalg.lstsq solves a singular system in the least-squares sense"
    return ""


def advice_on_connection(message: str, tls: bool, address: str) -> str:
    """Return advice for gRPC's message about a failed connection; "" if there is none."""
    text = message.lower().replace("_", " ")
    if text.startswith("the name "):
        return "Check the name of the server"
    if "ping timeout" in text or "keepalive watchdog" in text or "before receiving settings" in text:
        return f"{address} stopped answering: the server is stopped or overloaded, or the network is broken"
    if "http1.x server" in text:
        return "The port speaks HTTP/1, like croutd's metrics port: call the port of --listen"
    if "certificate verify failed" in text:
        return (
            "The server's certificate has expired, or no trusted authority signed it: give the authority's "
            "certificate by ca="
        )
    if "not in peer certificate" in text or "hostname verification" in text:
        return (
            "The server's certificate is for another name: connect by a name in the certificate, or give "
            "server_name="
        )
    if "wrong version number" in text:
        return "The port does not speak TLS: omit tls=, or call the port that does"
    if "unsupported protocol" in text or "protocol version" in text:
        return "The server speaks only versions of TLS before 1.2: enable TLS 1.2 or newer on the server"
    if "socket closed" not in text and "connection reset" not in text and "handshake failed" not in text:
        return ""
    if tls:
        return (
            "The server ended the handshake: give a valid client certificate (cert=, key=) that the "
            "server's authority has signed"
        )
    return "The server ended the connection: if it speaks TLS, give tls=True"


def without_lookup(message: str) -> str:
    """Shorten gRPC's message about a failed name lookup. Returns other messages unchanged."""
    found = re.fullmatch(r"DNS resolution failed for (\S+):\d+: .*: (.*)", message)
    return f"the name {found[1]} has no address ({found[2]})" if found else message


def perturbed_pivots(record: FactorRecord) -> str:
    """Return the number of perturbed pivots of a sparse factor, as in "2 pivots were perturbed"."""
    count = 0 if record.sparse is None else record.sparse.perturbed_pivots
    return f"{count} pivot was perturbed" if count == 1 else f"{count} pivots were perturbed"


def warn_of_factor(record: FactorRecord) -> None:
    """Warn if a factor needs a check before use."""
    if record.info > 0:
        where = record.singular_reason or "zero_pivot"
        warn(
            f"the matrix is singular, or its factor unusable (info={record.info}, {where}): "
            "solves with it raise Singular"
        )
        return
    if np.isinf(record.pivot_growth):
        warn(f"the factorization overflowed: {advice_on_overflow(record)}")
    elif "poor_factor" in record.warnings:
        warn(
            f"the factor is poor (quality {record.quality:.3g}, pivot growth "
            f"{record.pivot_growth:.3g}): {advice_on_poor_factor(record)}"
        )
    if "nearly_singular" in record.warnings:
        rcond = "" if record.rcond is None else f" (rcond={record.rcond:.6g})"
        warn(
            f"the matrix is ill-conditioned{rcond} and may be numerically singular: solutions may have no "
            "correct digit"
        )
    if "perturbed_rcond" in record.warnings:
        warn(
            f"rcond={record.rcond:.6g} belongs to a nearby matrix, because {perturbed_pivots(record)}: the "
            "rcond of the given matrix may be far smaller"
        )


def warn_of_solution(solution: Solution) -> None:
    """Warn if a solution needs a check before use."""
    error = "not measured" if solution.backward_error is None else f"{solution.backward_error:.3g}"
    bound = solution.forward_error_bound
    # With an infinite bound the server sends "not_accurate" even if the backward error is small.
    if "not_accurate" in solution.warnings and (bound is None or np.isfinite(bound)):
        if solution.corrections is not None:
            warn(
                f"the solution is poor after {solution.corrections} corrections (backward error {error}): "
                f"{advice_on_poor_solution(solution.factor)}"
            )
            return
        warn(
            f"the solution is poor (backward error {error}): solve with refine=, or factor by another "
            "algorithm"
        )
    # If the call also factored, warn_of_factor has issued the factor's warnings.
    if "poor_factor" in solution.warnings and solution.factor is None:
        warn(
            "the factor is poor, and the backward error was not measured: factor with keep_matrix=True and "
            "solve with verify=True"
        )
    if "nearly_singular" in solution.warnings and (
        solution.factor is None or "nearly_singular" not in solution.factor.warnings
    ):
        warn("the matrix may be numerically singular: the solution may have no correct digit")
    if bound is not None and not bound < 1:
        warn(
            f"the solution may have no correct digit (forward error bound {bound:.3g}, backward error "
            f"{error})"
        )


def warn_of_complement(complement: Complement) -> None:
    """Warn if S, or the factor of A11, needs a check before use."""
    warn_of_factor(complement.record)
    if complement.warnings:
        warn(
            f"the Schur complement is poor (backward error {complement.backward_error}, growth "
            f"{complement.growth})"
        )


def warn_of_echelon_form(form: EchelonForm) -> None:
    """Warn if the rank and the form may be wrong."""
    if "poor_echelon_form" in form.warnings:
        warn(
            f"the rank and the echelon form may be wrong (growth {form.growth:.3g}): find the rank by "
            "singular values (numpy.linalg.matrix_rank), and solve a system with solve(A, b, refine=5)"
        )


def warn_of_step(step: SeriesStep) -> None:
    """Warn if a step of a series has no solution, or if the solution needs a check before use."""
    if step.x is None:
        warn("the matrix of a step is singular: the step has no solution, and the series continues")
    elif "nearly_singular" in step.warnings:
        warn(
            f"the matrix of a step is nearly singular (its condition is at least "
            f"{step.amplification:.3g}): the solution may have no correct digit"
        )
    elif not step.accurate:
        warn(
            f"the solution of a step has a backward error of {step.backward_error:.3g} instead of "
            f"{step.accuracy:.3g}"
        )


def warn_of_batch(record: BatchRecord) -> None:
    """Warn about members that need a check before use."""
    singular = np.flatnonzero(record.info)
    if singular.size:
        verb = "is" if singular.size == 1 else "are"
        warn(
            f"{singular.size} of {len(record.info)} members {verb} singular; the first is {singular[0]}. "
            "Solutions with singular members are NaN"
        )
    if record.poor:
        verb = "has" if record.poor == 1 else "have"
        first = record.first_poor
        warn(
            f"{record.poor} of {len(record.info)} members {verb} a poor or non-finite factor; the first is "
            f"{first} (quality {record.quality[first]:.3g}, pivot growth {record.pivot_growth[first]:.3g})"
        )
    if record.nearly_singular:
        warn(
            f"{record.nearly_singular} of {len(record.info)} members may be numerically singular; the first "
            f"is {record.first_nearly_singular}. Solutions with such members may have no correct digit"
        )


def warn_of_batch_solution(solution: BatchSolution) -> None:
    """Warn about solutions that need a check before use."""
    if "not_accurate" in solution.warnings:
        # NaN for a solution that is not finite; singular members have no solution.
        largest = np.max(solution.backward_error[solution.info == 0])
        verb = "is" if solution.inaccurate == 1 else "are"
        warn(
            f"{solution.inaccurate} of {len(solution.info)} solutions {verb} poor (largest backward error "
            f"{largest:.3g}): factor these members one by one, or in double precision"
        )
    if "poor_factor" in solution.warnings:
        warn(
            "factors of members are poor, and backward errors were not measured: factor with "
            "keep_matrix=True and solve with verify=True"
        )


_WITHOUT_PIVOTING = ("cm", "icm", "pcm", "block_lu")
_PIVOT = "use an algorithm that pivots, such as algorithm='getrf'"


def advice_on_overflow(record: FactorRecord) -> str:
    """Return the next step after an overflow."""
    if record.algorithm in _WITHOUT_PIVOTING:
        return _PIVOT
    ways = []
    if not (record.row_scaled or record.col_scaled):
        ways.append("equilibrate=True")
    if np.dtype(record.dtype).char in "fF":
        ways.append("dtype=float64")
    return f"use {' or '.join(ways)}, or scale the matrix" if ways else "scale the matrix"


def advice_on_poor_factor(record: FactorRecord) -> str:
    """Return the next step for a poor factor."""
    if record.algorithm in _WITHOUT_PIVOTING:
        return _PIVOT
    if record.sparse is None and record.precision is None:
        return "solve with refine="
    if record.has_matrix:
        return "solves with it are corrected"
    return "factor with keep_matrix=True, so that solves are corrected"


def advice_on_poor_solution(record: FactorRecord | None) -> str:
    """Return the next step if X is poor after corrections. `record`: None if the factor is unknown."""
    if record is None:
        return "factor by another algorithm, or without precision= if the factor has one"
    return "factor by another algorithm" if record.precision is None else "factor without precision="
