# SPDX-License-Identifier: Apache-2.0
"""Files named by the caller: servers, tokens, certificates."""

from __future__ import annotations

import os
import stat

from crout.errors import InvalidRequest, UnreadableFile


def read_file(path: str | os.PathLike[str], what: str, *, advice: str = "", writers: bool = True) -> bytes:
    """Read a file.

    Parameters
    ----------
    what : str
        Description of the file in errors.
    advice : str
        The remedy if it cannot be read.
    writers : bool
        Whether others may be able to write it.

    Raises
    ------
    UnreadableFile InvalidRequest
        Others can write it.
    """
    content, mode = _read(path, what, advice)
    if not writers and mode & 0o022:
        raise InvalidRequest(
            f"others can write {path} (mode {mode:03o}), and could redirect tokens: chmod 600 it"
        )
    return content


def read_secret(path: str | os.PathLike[str], what: str, *, advice: str = "") -> bytes:
    """Like `read_file`, but only the owner may be able to read the file: otherwise InvalidRequest."""
    content, mode = _read(path, what, advice)
    if mode & 0o077:
        raise InvalidRequest(f"others can read the {what} {path} (mode {mode:03o}): chmod 600 it")
    return content


def _read(path: str | os.PathLike[str], what: str, advice: str) -> tuple[bytes, int]:
    try:
        with open(path, "rb") as file:
            return file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        hint = f"; {advice}" if advice else ""
        raise UnreadableFile(f"the {what} {path} cannot be read: {error.strerror}{hint}") from error
