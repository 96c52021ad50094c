# SPDX-License-Identifier: Apache-2.0
"""Changes of the matrix in a series. A step with a change does not send the whole matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _payload
from crout.errors import InvalidRequest
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Entries:
    """New values for some entries of a dense matrix: ``A[rows[k], cols[k]] = values[k]``.

    Parameters
    ----------
    rows, cols : array_like of int, shape (count,)
        Positions, 0-based; each at most once.
    values : array_like, shape (count,)
        New values. They are converted to the matrix's type; complex values of a real matrix are an
        `InvalidRequest`.
    """

    rows: Any
    cols: Any
    values: Any


@dataclass(frozen=True, eq=False)
class LowRank:
    """A low-rank change of a dense matrix: ``A += U @ V.T``, without conjugation.

    Parameters
    ----------
    U, V : array_like, shape (n, rank) or (n,)
        Converted to the matrix's type.
    """

    U: Any
    V: Any


@dataclass(frozen=True, eq=False)
class Values:
    """New values for the last sparse matrix, or coordinate file, of the series.

    Parameters
    ----------
    values : sparse matrix, or array_like of shape (nnz,)
        A scipy.sparse matrix with its entries at the same positions and in the same order as the last
        sparse matrix of the series. Another pattern or order is an `InvalidRequest` with the reason
        "PATTERN_MISMATCH".

        Or an array of values, in the order of the file's lines, or of ``A.data`` of a matrix that was sent
        in the format "csr", "csc" or "coo". Only their number is checked. Duplicates are summed, and the
        symmetry of a file is expanded, as in the original.
    """

    values: Any


Change = Entries | LowRank | Values


def _cast(value: Any, dtype: np.dtype[Any], name: str) -> Array:
    array = _payload.as_elements(_payload.as_array(value))
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise InvalidRequest(f"{name} is complex, the matrix is real: send the matrix in full")
    return array.astype(dtype.newbyteorder("<"), copy=False)


def _indices(value: Any, n: int | None, count: int, name: str) -> Array:
    array = _payload.as_array(value)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise InvalidRequest(f"{name} are integers, as many as there are values ({count})")
    if count and (array.min() < 0 or (n is not None and array.max() >= n)):
        index = array.min() if array.min() < 0 else array.max()
        raise InvalidRequest(
            f"{name} has the index {index}, beyond the matrix of order {n}: they count from 0"
        )
    return array.astype("<i4")


def _values_of(change: Values, n: int | None, digest: str) -> tuple[Any, str]:
    """Return the values, and the digest of the entries to which they belong."""
    if not _payload.is_sparse(change.values):
        return change.values, digest
    shape = change.values.shape
    if len(shape) != 2 or shape[0] != shape[1] or n not in (None, shape[0]):
        raise InvalidRequest(
            f"the matrix of the values has the shape {shape}, the series' matrix has the order {n}: "
            "give new values of that matrix"
        )
    by_rows, indices, values = _payload.sparse_entries(change.values)
    return values, _payload.entry_digest(by_rows, indices, shape[0])


def _parts(
    change: Change, n: int | None, dtype: np.dtype[Any], digest: str
) -> tuple[service.MatrixChange, list[Array]]:
    if isinstance(change, Values):
        given, digest = _values_of(change, n, digest)
        values = _cast(given, dtype, "values")
        if values.ndim != 1 or not values.size:
            raise InvalidRequest("the values of a pattern are a vector, of one at least")
        spec = service.MatrixChange(values=values.size, entry_digest=digest)
        return spec, [np.ascontiguousarray(values)]
    if isinstance(change, Entries):
        values = _cast(change.values, dtype, "values")
        if values.ndim != 1 or not values.size:
            raise InvalidRequest("the values of changed entries are a vector, of one at least")
        rows = _indices(change.rows, n, values.size, "rows")
        cols = _indices(change.cols, n, values.size, "cols")
        return service.MatrixChange(entries=values.size), [np.ascontiguousarray(values), rows, cols]
    U = _cast(change.U, dtype, "U")
    V = _cast(change.V, dtype, "V")
    if U.ndim == 1 and V.ndim == 1:
        U, V = U[:, np.newaxis], V[:, np.newaxis]
    if U.ndim != 2 or U.shape != V.shape or (n is not None and U.shape[0] != n):
        raise InvalidRequest(f"U and V are {U.shape} and {V.shape}, not both ({n}, rank)")
    return service.MatrixChange(rank=U.shape[1]), [
        np.ascontiguousarray(U.T),
        np.ascontiguousarray(V),
    ]


def payload(
    change: Change, n: int | None, dtype: np.dtype[Any], digest: str
) -> tuple[service.MatrixChange, _payload.Opener]:
    """Return the header fields and the payload of `change`. Raises InvalidRequest.

    Parameters
    ----------
    n : int or None
        Order of the matrix; None if unknown.
    dtype : numpy.dtype
        Type of the matrix.
    digest : str
        SeriesResult.entry_digest of the last matrix, for `Values` with an array.
    """
    spec, parts = _parts(change, n, dtype, digest)
    return spec, _payload.pieces_of(parts)
