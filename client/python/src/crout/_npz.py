# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices from archives of scipy.sparse.save_npz."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

from crout.errors import InvalidRequest

_MAGIC = b"PK"  # start of zip files

# Exceptions of NumPy and SciPy for archives that are truncated, of another format, or inconsistent.
_DAMAGES = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def is_archive(path: str) -> bool:
    """Whether the file is a zip archive, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def load(path: str) -> Any:
    """The scipy.sparse matrix of an archive, with its indices checked."""
    try:
        from scipy import sparse
    except ImportError:
        raise InvalidRequest(f"{path}: reading an .npz archive needs SciPy, which is not installed") from None
    if not zipfile.is_zipfile(path):  # NumPy would report it a second time, from a destructor.
        raise InvalidRequest(f"{path} is no archive of scipy.sparse.save_npz: it is damaged or cut off")
    try:
        value = sparse.load_npz(path)
        if value.format in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)  # SciPy's conversions do not check them
    except _DAMAGES as error:
        raise InvalidRequest(f"{path} is no archive of scipy.sparse.save_npz: {error}") from error
    return value
