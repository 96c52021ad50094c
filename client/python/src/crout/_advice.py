# SPDX-License-Identifier: Apache-2.0
"""Messages of errors in terms of this package, and the next step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from crout.errors import CroutError, DeadlineExceeded, HandleExpired, Overloaded, Singular, Unavailable

if TYPE_CHECKING:
    from crout.results import FactorRecord

# Advice in addition to the server's message, by the reason why the factor is gone.
_GONE = {
    "HANDLE_EXPIRED": "A `with` block renews the lease while the program runs and the server answers",
    "HANDLE_RELEASED": (
        "The end of a `with` block releases its factor, and the end of a series the factor of the series"
    ),
    "HANDLE_UNKNOWN": "The handle may also belong to another server or tenant=",
}

_WITHOUT_PIVOTING = ("cm", "icm", "pcm", "block_lu")
_PIVOT = "use an algorithm that pivots, such as algorithm='getrf'"

_LATE = {
    "UPLOAD_IDLE": "Send without pauses, or raise the server's --upload-idle-timeout",
    "UPLOAD_SLOW": "Send over a faster connection, or lower the server's --upload-min-rate",
    "SERIES_IDLE": "Take the series up by start= its factor, or raise the server's --series-idle-timeout",
}

# Keywords of this package for fields of the contract, by the last part of their path.
_KEYWORDS = {
    "matrix": "A",
    "rhs": "b",
    "condition": "rcond=",
    "factor_dtype": "dtype=",
    "keep_matrix": "keep_matrix=",
    "interval_high": "interval",
    "interval_low": "interval",
    "leading_order": "leading_order",
    "max_refinement_steps": "refine=",
    "operation": "trans=",
    "refine_componentwise": "componentwise=",
    "solver_tolerance": "tolerance=",
    "verify": "verify=",
}
_PATH = re.compile(r"\bheader((?:\.[a-z_0-9]+)+)")
_WORD = re.compile(rf"\b({'|'.join(name for name in _KEYWORDS if '_' in name)})\b(?!=)")
# Fields of a matrix's format have no keyword: "header.matrix.dense.rows" becomes "A".
_MATRICES = ("matrix", "rhs", "x0")


def in_python(message: str) -> str:
    """The server's message, with keywords of this package instead of the contract's fields."""
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
    """The remedy for an error; empty if the message contains it."""
    if kind is HandleExpired:
        return _GONE.get(reason, "")
    if reason == "PATTERN_MISMATCH":
        return "`refactor(A)` without values_only does that; in a series, A in place of crout.Values(A)"
    if kind is DeadlineExceeded:
        return _LATE.get(reason, "Give the call a longer timeout=, or the client, or none")
    if kind is Unavailable and not reason:
        return f"Start croutd at {address}, or connect to another server"
    if kind is Overloaded and delay is not None:
        return f"Try again in {delay:.3g} s"
    if kind is Overloaded:
        return "Release factors, factor a smaller matrix, or give the server more memory"
    if kind is Singular:
        return "numpy.linalg.lstsq solves a singular system in the least-squares sense"
    return ""


def of_connection(message: str, tls: bool, address: str) -> str:
    """Advice derived from gRPC's message about a connection; empty if there is none."""
    text = message.lower().replace("_", " ")
    if text.startswith("no address is known"):
        return "Check the name of the server"
    if "ping timeout" in text or "keepalive watchdog" in text or "before receiving settings" in text:
        return (
            f"Nothing has answered at {address} for some time: the server is stopped or overloaded, or the "
            "network between is broken"
        )
    if "http1.x server" in text:
        return "What answers there speaks HTTP/1, as croutd's metrics port does: call the port of --listen"
    if "certificate verify failed" in text:
        return (
            "The server's certificate is not signed by an authority that this client was told to trust "
            "(ca=), or its time is over"
        )
    if "not in peer certificate" in text or "hostname verification" in text:
        return (
            "The server's certificate is not for this name: call it by one that it has, or give server_name="
        )
    if "wrong version number" in text:
        return "The server speaks no TLS there: leave tls= out, or call the port that speaks it"
    if "unsupported protocol" in text or "protocol version" in text:
        return "The server speaks no TLS 1.2 or newer there, and this client nothing older"
    if "socket closed" not in text and "connection reset" not in text and "handshake failed" not in text:
        return ""
    if tls:
        return (
            "The server ended the handshake: give a client certificate (cert=, key=), one that its "
            "authority has signed and whose time is not over"
        )
    return "The server ended the connection: if it speaks TLS, give tls=True"


def without_lookup(message: str) -> str:
    """The message without the details of a failed name lookup, if it reports one."""
    found = re.fullmatch(r"DNS resolution failed for (\S+):\d+: .*: (.*)", message)
    return f"no address is known for {found[1]} ({found[2]})" if found else message


def of_overflow(record: FactorRecord) -> str:
    """The next step after an overflow, except what the algorithm already does."""
    if record.algorithm in _WITHOUT_PIVOTING:
        return _PIVOT
    ways = []
    if not (record.row_scaled or record.col_scaled):
        ways.append("equilibrate=True")
    if np.dtype(record.dtype).char in "fF":
        ways.append("dtype=float64")
    return f"use {' or '.join(ways)}, or scale the matrix" if ways else "scale the matrix"


def of_poor_factor(record: FactorRecord) -> str:
    """The next step after pivot growth, except what the algorithm already does."""
    if record.algorithm in _WITHOUT_PIVOTING:
        return _PIVOT
    if record.sparse is None and record.precision is None:
        return "solve with refine="
    if record.has_matrix:
        return "solves with it are corrected"
    return "factor with keep_matrix=True, so that solves are corrected"


def of_poor_correction(record: FactorRecord | None) -> str:
    """The next step after corrections that left X poor. `record` is None if the factor is unknown."""
    if record is None:
        return "factor by another algorithm, or without precision= if the factor has one"
    return "factor by another algorithm" if record.precision is None else "factor without precision="
