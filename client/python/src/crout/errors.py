"""What can go wrong, and what should be looked at.

Every exception of this package is a `CroutError`; those that Python or NumPy have a name for are
that as well, so that ``except numpy.linalg.LinAlgError`` or ``except TimeoutError`` work as anywhere.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crout.results import FactorRecord

    _LinAlgWarning = RuntimeWarning
else:
    try:  # So that filters on SciPy's warning meet ours too.
        from scipy.linalg import LinAlgWarning as _LinAlgWarning
    except ImportError:
        _LinAlgWarning = RuntimeWarning


class CroutError(Exception):
    """A call that failed.

    Attributes
    ----------
    code : str
        Of gRPC: "NOT_FOUND", "UNAVAILABLE", ...; "INVALID_ARGUMENT" too for what was refused before
        it was sent.
    reason : str
        The server's word for programs, stable: "HANDLE_EXPIRED", "QUEUE_FULL", ...; else "".
    details : Mapping of str to str
        What the server adds to its reason, and the "field" of the request that was wrong.
    retry_delay : float or None
        Seconds after which the server would be tried again.
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
    """The request makes no sense, or not for this factor."""

    code = "INVALID_ARGUMENT"


class UnreadableFile(CroutError, OSError):
    """A file that the caller named, such as that of a token, cannot be read."""

    code = "INVALID_ARGUMENT"


class NotSupported(CroutError, NotImplementedError):
    """The server, or the device that was named, cannot do that."""

    code = "UNIMPLEMENTED"


class HandleExpired(CroutError, LookupError):
    """The server does not have the factor (any more): its lease ended, or it was released."""

    code = "NOT_FOUND"


class Singular(CroutError, np.linalg.LinAlgError):
    """The matrix is singular, or its factor unusable.

    Attributes
    ----------
    factor : FactorRecord or None
        What the factorization found, where the call that failed was one.
    """

    code = "FAILED_PRECONDITION"
    factor: FactorRecord | None = None


class NotConverged(CroutError, np.linalg.LinAlgError):
    """An iterative method gave up."""

    code = "ABORTED"


class Overloaded(CroutError):
    """The server has no room for the call now; `retry_delay` says when it may have."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(CroutError, ConnectionError):
    """No server answers, the connection was lost, or the server is stopping."""

    code = "UNAVAILABLE"


class NotPermitted(CroutError, PermissionError):
    """The server does not know who calls (UNAUTHENTICATED), or does not allow them that."""

    code = "PERMISSION_DENIED"


class DeadlineExceeded(CroutError, TimeoutError):
    """The call's timeout passed, or the upload was too slow for the server."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(CroutError):
    """The call was cancelled."""

    code = "CANCELLED"


class ProtocolError(CroutError):
    """The server's reply contradicts the contract; nothing of it was used."""

    code = "INTERNAL"


class LinAlgWarning(_LinAlgWarning):
    """A result that should not be relied on without a look at it.

    A subclass of `scipy.linalg.LinAlgWarning` where SciPy is installed, else of `RuntimeWarning`.
    """


def warn(message: str) -> None:
    """Warn whoever called into this package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, LinAlgWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module == "crout" or module.startswith("crout.")
