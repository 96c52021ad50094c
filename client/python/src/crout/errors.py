# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings.

Every failed call raises a `CroutError`. Exceptions with a counterpart in Python or NumPy also derive from
the counterpart: ``except numpy.linalg.LinAlgError`` and ``except TimeoutError`` work.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from crout.records import FactorRecord

if TYPE_CHECKING:
    _LinAlgWarning = RuntimeWarning
else:
    try:  # warning filters for SciPy's class then apply
        from scipy.linalg import LinAlgWarning as _LinAlgWarning
    except ImportError:
        _LinAlgWarning = RuntimeWarning


class CroutError(Exception):
    """A failed call.

    Attributes
    ----------
    code : str
        Status code of gRPC: "NOT_FOUND", "UNAVAILABLE", ... A request that is rejected before it is sent
        has "INVALID_ARGUMENT".
    reason : str
        The server's stable reason: "HANDLE_EXPIRED", "QUEUE_FULL", ...; "" if it sent none.
    details : dict of str to str
        The server's metadata of the reason. The key "field" has the path of an invalid field.
    retry_delay : float or None
        Seconds after which the server allows a retry; None if it sent no delay.
    """

    code: str = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        reason: str = "",
        details: Mapping[str, str] | None = None,
        retry_delay: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.reason = reason
        self.details = dict(details or {})
        self.retry_delay = retry_delay


class InvalidRequest(CroutError, ValueError):
    """The request is invalid, or it does not suit the factor."""

    code = "INVALID_ARGUMENT"


class UnreadableFile(CroutError, OSError):
    """A file that the caller named, such as a token file, cannot be read."""

    code = "INVALID_ARGUMENT"


class NotSupported(CroutError, NotImplementedError):
    """The server or the requested device does not support the request."""

    code = "UNIMPLEMENTED"


class HandleExpired(CroutError, LookupError):
    """The server does not have the factor: its lease ended, or it was released or evicted."""

    code = "NOT_FOUND"


class Singular(CroutError, np.linalg.LinAlgError):
    """The matrix is singular, or its factor is unusable.

    Attributes
    ----------
    factor : FactorRecord or None
        Record of the factorization, if the failed call factored.
    """

    code = "FAILED_PRECONDITION"
    factor: FactorRecord | None = None


class NotConverged(CroutError, np.linalg.LinAlgError):
    """An iterative method reached its limit of sweeps."""

    code = "ABORTED"


class Overloaded(CroutError):
    """The server has no capacity for the call now; retry after `retry_delay`."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(CroutError, ConnectionError):
    """No server answered, the connection was lost, or the server cannot serve now."""

    code = "UNAVAILABLE"


class NotPermitted(CroutError, PermissionError):
    """The caller is not authenticated (code "UNAUTHENTICATED"), or lacks the permission for the call."""

    code = "PERMISSION_DENIED"


class DeadlineExceeded(CroutError, TimeoutError):
    """The call's timeout passed, or the upload was too slow for the server."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(CroutError):
    """The call was cancelled, or the client is closed."""

    code = "CANCELLED"


class ProtocolError(CroutError):
    """The server's reply violates the protocol; the call has no result."""

    code = "INTERNAL"


class LinAlgWarning(_LinAlgWarning):
    """Warning about a result that needs a check before use.

    A subclass of `scipy.linalg.LinAlgWarning` if SciPy is installed, otherwise of `RuntimeWarning`.
    """


def warn(message: str, category: type[Warning] = LinAlgWarning) -> None:
    """Issue a warning with the location of the call into this package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module == "crout" or module.startswith("crout.")
