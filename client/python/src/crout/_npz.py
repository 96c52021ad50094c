"""Sparse matrices in the archives that scipy.sparse.save_npz writes."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

from crout.errors import InvalidRequest

_MAGIC = b"PK"  # as of all zip files

# What NumPy and SciPy raise for archives that are cut off, of another format, or inconsistent.
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
    """The matrix of scipy.sparse in an archive; its indices are checked."""
    try:
        from scipy import sparse
    except ImportError:
        raise InvalidRequest(f"{path}: reading an .npz archive needs SciPy, which is not installed") from None
    if not zipfile.is_zipfile(path):  # NumPy would complain a second time, from a destructor.
        raise InvalidRequest(f"{path} is no archive of scipy.sparse.save_npz: it is damaged or cut off")
    try:
        value = sparse.load_npz(path)
        if value.format in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)  # SciPy's conversions trust them.
    except _DAMAGES as error:
        raise InvalidRequest(f"{path} is no archive of scipy.sparse.save_npz: {error}") from error
    return value
