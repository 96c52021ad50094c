# SPDX-License-Identifier: Apache-2.0
"""Series of systems: changes of the matrix from step to step, and the rounds of the call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _messages, _payload
from crout._call import RoundCall, RoundReply
from crout._options import cache_options, call_options, distribute, factorize_options, series_options
from crout._replies import MatrixReply, Target, checked_record
from crout._requests import DATA, RHS_DATA, Rhs, order_of
from crout.errors import InvalidRequest, ProtocolError
from crout.records import FactorRecord
from crout.results import SeriesStep
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_X0_DATA = 4  # number of the `bytes` field of SolveSeriesRequest with the initial guess


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
        raise InvalidRequest(f"{name} is complex, and the matrix is real: send the matrix in full")
    return array.astype(dtype.newbyteorder("<"), copy=False)


def _indices(value: Any, n: int | None, count: int, name: str) -> Array:
    array = _payload.as_array(value)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise InvalidRequest(
            f"{name} has the shape {array.shape} and the type {array.dtype}: give {count} integers, one for "
            "each value"
        )
    if count and (array.min() < 0 or (n is not None and array.max() >= n)):
        index = array.min() if array.min() < 0 else array.max()
        raise InvalidRequest(
            f"{name} has the index {index}, and the matrix has order {n}: give indices from 0 to n - 1"
        )
    return array.astype("<i4")


def _values_of(change: Values, n: int | None, digest: str) -> tuple[Any, str]:
    """Return the values, and the digest of the entries to which they belong."""
    if not _payload.is_sparse(change.values):
        return change.values, digest
    shape = change.values.shape
    if len(shape) != 2 or shape[0] != shape[1] or n not in (None, shape[0]):
        raise InvalidRequest(
            f"the matrix of the values has the shape {shape}, and the series has the order {n}: give a "
            "matrix of this order"
        )
    by_rows, indices, values = _payload.sparse_entries(change.values)
    return values, _payload.entry_digest(by_rows, indices, shape[0])


def _parts(
    change: Change, n: int | None, dtype: np.dtype[Any], digest: str
) -> tuple[service.MatrixChange, list[Array]]:
    """Return the header fields and the arrays of `change`. Raises InvalidRequest.

    Parameters
    ----------
    n : int or None
        Order of the matrix; None if unknown.
    dtype : numpy.dtype
        Type of the matrix.
    digest : str
        SeriesResult.entry_digest of the last matrix, for `Values` with an array.
    """
    if isinstance(change, Values):
        given, digest = _values_of(change, n, digest)
        values = _cast(given, dtype, "values")
        if values.ndim != 1 or not values.size:
            raise InvalidRequest(
                "values is not a vector with at least one element: give one value for each entry"
            )
        spec = service.MatrixChange(values=values.size, entry_digest=digest)
        return spec, [np.ascontiguousarray(values)]
    if isinstance(change, Entries):
        values = _cast(change.values, dtype, "values")
        if values.ndim != 1 or not values.size:
            raise InvalidRequest(
                "values is not a vector with at least one element: give one value for each changed entry"
            )
        rows = _indices(change.rows, n, values.size, "rows")
        cols = _indices(change.cols, n, values.size, "cols")
        return service.MatrixChange(entries=values.size), [np.ascontiguousarray(values), rows, cols]
    U = _cast(change.U, dtype, "U")
    V = _cast(change.V, dtype, "V")
    if U.ndim == 1 and V.ndim == 1:
        U, V = U[:, np.newaxis], V[:, np.newaxis]
    if U.ndim != 2 or U.shape != V.shape or (n is not None and U.shape[0] != n):
        raise InvalidRequest(
            f"U and V have the shapes {U.shape} and {V.shape}: give the shape ({n}, rank) for both"
        )
    return service.MatrixChange(rank=U.shape[1]), [np.ascontiguousarray(U.T), np.ascontiguousarray(V)]


class Series:
    """Builds the rounds of one series. Stores the state after the last step.

    Attributes
    ----------
    n : int or None
        Order of the matrix; None if the client cannot compute it.
    factor : FactorRecord or None
        Record of the current factor. A reply stores it as soon as it arrives, so that the factor is
        released even if the rest of the reply fails.
    entry_digest : str
        SeriesResult.entry_digest of the last step.
    """

    def __init__(self, start: FactorRecord | None, options: Mapping[str, Any]) -> None:
        call, how, cache, series = distribute(
            options, call_options, factorize_options, cache_options, series_options
        )
        self._call = call_options(**call)
        header = series_options(**series)
        header.options.CopyFrom(factorize_options(**how))
        self.factor = start
        if start is None:
            header.cache.CopyFrom(cache_options(**cache))
        elif cache:
            raise InvalidRequest("with start= the factor already has a name and a lease: omit name and lease")
        else:
            header.handle = start.handle
        self._header: service.SolveSeriesHeader | None = header  # None after the first step
        self.n = None if start is None else start.n
        self._dtype = None if start is None else start.matrix_dtype
        self.entry_digest = ""

    def step(self, A: Any | None, b: Any, x0: Any | None = None) -> RoundCall[SeriesStep]:
        """Build a round of SolveSeries. If A or x0 is None, the server uses the previous matrix or x."""
        header = self._header or service.SolveSeriesHeader()
        payloads = []
        if isinstance(A, Change):
            if self._dtype is None:
                raise InvalidRequest(
                    "the first step is a change without a matrix: give a matrix first, or a factor by start="
                )
            change, parts = _parts(A, self.n, self._dtype, self.entry_digest)
            header.change.CopyFrom(change)
            payloads.append((DATA, _payload.pieces_of(parts)))
        elif A is not None:
            matrix = _payload.square(A)
            header.matrix.CopyFrom(matrix.spec)
            payloads.append((DATA, matrix.open))
            self.n, self._dtype = order_of(matrix), matrix.dtype
        elif self._dtype is None:
            raise InvalidRequest("the first step has no matrix: give a matrix, or a factor by start=")
        if isinstance(b, (str, os.PathLike)):
            b = _payload.dense_of_file(os.fspath(b))
        rhs = Rhs(b, self.n, self._dtype, overwrite=False)
        assert rhs.shape is not None  # not a file
        shape = rhs.shape
        header.rhs.CopyFrom(rhs.payload.spec)
        payloads.append((RHS_DATA, rhs.payload.open))
        if x0 is not None:
            start = rhs.start(x0)
            header.x0.CopyFrom(start.spec)
            payloads.append((_X0_DATA, start.open))
        call: RoundCall[SeriesStep] = RoundCall(
            "SolveSeries",
            service.SolveSeriesRequest(header=header).SerializeToString(),
            lambda: StepReply(self, rhs.target(), shape),
            payloads=tuple(payloads),
            reply_bytes=rhs.nbytes,
            device_reply=rhs.device_reply,
            handle=header.handle,
            **self._call,
        )
        self._header = None
        return call


def systems(matrices: Iterable[Any], rhs: Any, x0: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Combine each matrix with its right-hand side and initial guess.

    `rhs` and `x0` are iterators with one value for each matrix, or one value for all. Raises InvalidRequest
    if an iterator has more or fewer values than there are matrices, and for a list of vectors, which NumPy
    would read as the rows of one matrix.
    """
    for name, values in (("rhs", rhs), ("x0", x0)):
        if isinstance(values, (list, tuple)) and any(isinstance(value, np.ndarray) for value in values):
            raise InvalidRequest(
                f"{name} is a list of arrays: pass iter({name}) to use one array for each matrix, or "
                f"numpy.column_stack({name}) to use all arrays for every matrix"
            )
    nothing = object()
    sides = {"right-hand sides": rhs, "initial guesses": x0}

    def combined() -> Iterator[tuple[Any, Any, Any]]:
        for A in matrices:
            b, start = (
                next(values, nothing) if isinstance(values, Iterator) else values for values in sides.values()
            )
            for what, value in zip(sides, (b, start), strict=True):
                if value is nothing:
                    raise InvalidRequest(f"there are fewer {what} than matrices: give one for each matrix")
            yield A, b, start
        for what, values in sides.items():
            if isinstance(values, Iterator) and next(values, nothing) is not nothing:
                raise InvalidRequest(f"there are more {what} than matrices: give one for each matrix")

    return combined()


class StepReply(MatrixReply[SeriesStep], RoundReply[SeriesStep]):
    """Reply of one round of SolveSeries: the new factor, if one was made, X, and the result.

    Parameters
    ----------
    series : Series
        Receives the new factor and the digest of the entries.
    target : Target
        Destination of X.
    shape : tuple of int
        Shape of X for the caller.
    """

    repeatable = False

    def __init__(self, series: Series, target: Target, shape: tuple[int, ...]) -> None:
        super().__init__(service.SolveSeriesResponse, "solution", target, series.n)
        self._series = series
        self._shape = shape
        self._factor = series.factor

    @property
    def done(self) -> bool:
        """Whether the result of the step has arrived."""
        return self._result is not None

    def _take_factor(self, message: factor_pb2.Factor) -> None:
        if message.info == 0:
            self._factor = self._series.factor = checked_record(message, self._n)

    def _take_result(self, message: service.SeriesResult) -> None:
        self._result = message
        self._series.entry_digest = message.entry_digest

    def finish(self) -> SeriesStep:
        """Return the step. The caller issues its warnings, and closes the series if they are errors."""
        if self._result is None:
            raise ProtocolError("the server sent no result")
        x = self._target.finish().reshape(self._shape) if self._result.solved else None
        return _messages.series_step(x, self._result, self._factor)
