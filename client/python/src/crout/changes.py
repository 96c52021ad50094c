"""How the next matrix of a series follows from the last one, where that is less to send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _payload, _sparse_arrays
from crout.errors import InvalidRequest
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Entries:
    """Some entries have new values: ``A[rows[k], cols[k]] = values[k]``.

    Parameters
    ----------
    rows, cols : array_like of int, shape (k,)
        From 0. Each entry at most once.
    values : array_like, shape (k,)
        In the type of the matrix, or one that it holds exactly.
    """

    rows: Any
    cols: Any
    values: Any


@dataclass(frozen=True, eq=False)
class LowRank:
    """A product is added: ``A += U @ V.T``, of complex matrices too.

    Parameters
    ----------
    U, V : array_like, shape (n, rank) or (n,)
    """

    U: Any
    V: Any


@dataclass(frozen=True, eq=False)
class Values:
    """The last sparse matrix, or Matrix Market file with coordinates, of this series with other values.

    Parameters
    ----------
    values : sparse matrix, or array_like of shape (nnz,)
        A matrix of `scipy.sparse` that stores its entries at the same positions and in the same order
        as the series' last one; another pattern is refused. Or the values alone, unchecked but for
        their number: in the order of the file's lines, or of ``A.data`` of a matrix that was sent in
        the format "csr", "csc" or "coo". Duplicates add up, and a file's symmetry holds.
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
        raise InvalidRequest(f"{name} are beyond the matrix of order {n}: they count from 0")
    return array.astype("<i4")


def _values_of(change: Values, order: bytes | None) -> Any:
    if not _sparse_arrays.is_sparse(change.values):
        return change.values
    if order is None:
        raise InvalidRequest("the series' last matrix was no matrix of scipy.sparse: send this one in full")
    if _sparse_arrays.order_digest(change.values) != order:
        raise InvalidRequest(
            "the matrix has entries at other positions, or in another order, than the series' last sparse "
            "one: send it in full"
        )
    return _sparse_arrays.entries(change.values)[2]


def _parts(
    change: Change, n: int | None, dtype: np.dtype[Any], order: bytes | None
) -> tuple[service.MatrixChange, list[Array]]:
    if isinstance(change, Values):
        values = _cast(_values_of(change, order), dtype, "values")
        if values.ndim != 1 or not values.size:
            raise InvalidRequest("the values of a pattern are a vector, of one at least")
        return service.MatrixChange(values=values.size), [np.ascontiguousarray(values)]
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
    change: Change, n: int | None, dtype: np.dtype[Any], order: bytes | None
) -> tuple[service.MatrixChange, _payload.Opener]:
    """What of `change` goes into the header, and what follows it.

    The matrix has order n, None: unknown. `order` is the order_digest of the last sparse matrix in
    memory, None: the last matrix was another one.
    """
    spec, parts = _parts(change, n, dtype, order)
    return spec, _payload.pieces_of(parts)
