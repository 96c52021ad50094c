"""Batches of matrices on the wire: how they are laid out, what is asked, what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _options, _payload, _wire, results
from crout._call import Call
from crout._options import cache_options, call_options, distribute, integer, request_id_option
from crout._replies import convert, parse
from crout._retry import RetryClass
from crout.errors import CroutError, InvalidRequest, ProtocolError
from crout.results import FactorRecord
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_DATA = 2  # The `bytes` field of the requests, and of the replies.
_RHS_DATA = 3  # Of FactorizeAndSolveBatch, for the right-hand sides,
_SOLUTION_DATA = 4  # and for the solutions.
_ALIGNMENT = 16  # Of every member, in bytes.


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Places:
    """Where matrices of these shapes lie, one after the other: `begins` and `size`, in bytes."""

    def __init__(self, shapes: Array, itemsize: int) -> None:
        lengths = shapes[:, 0] * shapes[:, 1] * itemsize
        steps = -(-lengths // _ALIGNMENT) * _ALIGNMENT
        ends = np.cumsum(steps)
        self.shapes = shapes
        self.begins = ends - steps
        self.size = int(self.begins[-1] + lengths[-1]) if len(shapes) else 0


def _members(matrices: Any) -> tuple[list[Array], np.dtype[Any]]:
    """Two-dimensional arrays of the one type that holds them all."""
    if isinstance(matrices, np.ndarray) and matrices.ndim != 3:
        raise InvalidRequest(
            f"a batch is a sequence of matrices, or an array of three dimensions, not {matrices.ndim}"
        )
    arrays = [_payload.as_elements(_payload.as_array(matrix)) for matrix in matrices]
    for k, array in enumerate(arrays):
        if array.ndim != 2:
            raise InvalidRequest(f"member {k} has {array.ndim} dimensions, a matrix has two")
    dtype = np.result_type(*{array.dtype for array in arrays}) if arrays else np.dtype("<f8")
    return arrays, dtype.newbyteorder("<")


def _shapes(arrays: Sequence[Array]) -> Array:
    return np.array([array.shape for array in arrays], "<i8").reshape(len(arrays), 2)


def _values(arrays: Sequence[Array], places: Places, dtype: np.dtype[Any]) -> Array:
    """The members by columns, where `places` has them."""
    memory = np.zeros(places.size, np.uint8)
    for array, begin in zip(arrays, places.begins.tolist(), strict=True):
        end = begin + array.size * dtype.itemsize
        memory[begin:end].view(dtype)[:] = array.ravel(order="F")
    return memory


@dataclass(frozen=True, eq=False)
class BatchRecord:
    """What the server says of a batch.

    Attributes
    ----------
    factor : FactorRecord
        Of all of it: handle, lease, the worst growth and quality.
    shapes : ndarray of int, shape (members, 2)
    info : ndarray of int, shape (members,)
        LAPACK's, of each member: 0, or the 1-based index of the first pivot that is exactly zero.
    pivot_growth, quality : ndarray, shape (members,)
        As `FactorRecord` has them; infinite where a member's factors hold an infinity or NaN.
    """

    factor: FactorRecord
    shapes: Array
    info: Array
    pivot_growth: Array
    quality: Array


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """Solutions with members of a batch, and what is known of them.

    Attributes
    ----------
    x : list of ndarray
        Of the shapes that the right-hand sides had; NaN where the member is singular.
    backward_error : ndarray
        One for each; NaN where it was not verified, or is not finite.
    info : ndarray of int
        The members'.
    factor_version : int
        Of the batch that was used.
    timings : Mapping of str to float
        Seconds in each phase.
    """

    x: list[Array]
    backward_error: Array
    info: Array
    factor_version: int
    timings: dict[str, float]


@dataclass(frozen=True, eq=False)
class MemberFactors:
    """L and U of a member in one array, and its row interchanges.

    Attributes
    ----------
    lu : ndarray, shape (m, n)
        L strictly below the diagonal, with ones on it; U on the diagonal and above.
    piv : ndarray of int, shape (min(m, n),)
        Row i was interchanged with row piv[i]. 0-based, as SciPy's.
    """

    lu: Array
    piv: Array

    def plu(self) -> tuple[Array, Array, Array]:
        """P, L and U with A = P L U, as `scipy.linalg.lu` returns them."""
        rows, cols = self.lu.shape
        order = np.arange(rows)
        for i, k in enumerate(self.piv.tolist()):
            order[[i, k]] = order[[k, i]]
        permutation = np.zeros((rows, rows), self.lu.real.dtype)
        permutation[order, np.arange(rows)] = 1
        diagonal = min(rows, cols)
        lower = np.tril(self.lu[:, :diagonal], -1)
        np.fill_diagonal(lower, 1)
        return permutation, lower, np.triu(self.lu[:diagonal])


class _Data:
    """The data of a reply, of a size that is known, in that field of its messages."""

    def __init__(self, size: int, field: int = _DATA) -> None:
        self._memory = bytearray(size)
        self._field = field
        self._filled = 0

    def take(self, message: bytes) -> bytes:
        """Take the data out of a message, and return the rest. Raises ProtocolError."""
        rest, pieces = _wire.split(message, self._field)
        for piece in pieces:
            end = self._filled + len(piece)
            if end > len(self._memory):
                raise ProtocolError("the server sent more data than it should")
            self._memory[self._filled : end] = piece
            self._filled = end
        return rest

    def whole(self) -> Array:
        """All of it, as bytes. Raises ProtocolError where some are missing."""
        if self._filled != len(self._memory):
            raise ProtocolError("the server sent less data than it should")
        return np.frombuffer(self._memory, np.uint8)


class _FactorReply:
    """Of FactorizeBatch: progress, figures of the members, then the factor."""

    repeatable = True

    def __init__(self, shapes: Array) -> None:
        self._shapes = shapes
        self._data = _Data(len(shapes) * (8 + 8 + 4))
        self._factor: FactorRecord | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        """As in Reply."""
        response = parse(service.FactorizeBatchResponse, self._data.take(message))
        self.take_factor(response)
        return response.progress if response.HasField("progress") else None

    def take_data(self, message: bytes) -> bytes:
        """As `_Data.take`."""
        return self._data.take(message)

    def take_factor(self, response: Any) -> None:
        """Take the factor out of a response that may have it."""
        if not response.HasField("factor"):
            return
        if response.factor.batch.members != len(self._shapes):
            raise ProtocolError("the server sent the factor of another batch")
        self._factor = convert(results.factor_record, response.factor)

    def finish(self) -> BatchRecord:
        """As in Reply. Warning is left to whoever has the factor by then: a warning may be an error."""
        growths, qualities, end = (len(self._shapes) * size for size in (8, 16, 20))
        figures = self._data.whole()
        if self._factor is None:
            raise ProtocolError("the server sent no factor")
        return BatchRecord(
            self._factor,
            self._shapes,
            info=figures[qualities:end].view("<i4"),
            pivot_growth=figures[:growths].view("<f8"),
            quality=figures[growths:qualities].view("<f8"),
        )

    def explain(self, error: CroutError) -> None:
        """As in Reply."""


class _SolutionReply:
    """Of SolveBatch: progress, the solutions and figures of the systems, then the result.

    Parameters
    ----------
    places : Places
        Of the right-hand sides, which are those of the solutions.
    dims : list of int
        How many dimensions each of them has for the caller.
    at : ndarray of int
        Where each of the caller's is among them.
    """

    repeatable = True

    def __init__(
        self, places: Places, dims: list[int], at: Array, dtype: np.dtype[Any], field: int = _DATA
    ) -> None:
        self._places = places
        self._dims = dims
        self._at = at
        self._dtype = dtype
        self._data = _Data(_aligned(places.size) + len(dims) * (8 + 4), field)
        self._result: service.SolveBatchResult | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        """As in Reply."""
        response = parse(service.SolveBatchResponse, self._data.take(message))
        self.take_result(response)
        return response.progress if response.HasField("progress") else None

    def take_data(self, message: bytes) -> bytes:
        """As `_Data.take`."""
        return self._data.take(message)

    def take_result(self, response: Any) -> None:
        """Take the result out of a response that may have it."""
        if response.HasField("result"):
            self._result = response.result

    def finish(self) -> BatchSolution:
        """As in Reply."""
        data = self._data.whole()
        if self._result is None:
            raise ProtocolError("the server sent no result")
        errors = _aligned(self._places.size)
        infos = errors + 8 * len(self._dims)
        return BatchSolution(
            [self._solution(data, k) for k in self._at.tolist()],
            backward_error=data[errors:infos].view("<f8")[self._at],
            info=data[infos:].view("<i4")[self._at],
            factor_version=self._result.factor_version,
            timings=results.timings(self._result.timings),
        )

    def _solution(self, data: Array, k: int) -> Array:
        rows, cols = self._places.shapes[k].tolist()
        begin = int(self._places.begins[k])
        end = begin + rows * cols * self._dtype.itemsize
        x = data[begin:end].view(self._dtype).reshape((rows, cols), order="F")
        return x[:, 0] if self._dims[k] == 1 else x

    def explain(self, error: CroutError) -> None:
        """As in Reply."""


class _BothReply:
    """Of FactorizeAndSolveBatch: what FactorizeBatch answers with, then what SolveBatch does."""

    repeatable = True

    def __init__(self, factor: _FactorReply, solution: _SolutionReply) -> None:
        self._factor = factor
        self._solution = solution

    def feed(self, message: bytes) -> service.Progress | None:
        """As in Reply."""
        rest = self._solution.take_data(self._factor.take_data(message))
        response = parse(service.FactorizeAndSolveBatchResponse, rest)
        self._factor.take_factor(response)
        self._solution.take_result(response)
        return response.progress if response.HasField("progress") else None

    def finish(self) -> tuple[BatchRecord, BatchSolution]:
        """As in Reply."""
        return self._factor.finish(), self._solution.finish()

    def explain(self, error: CroutError) -> None:
        """As in Reply."""


class _MemberReply:
    """Of GetBatchFactors, for one member of this shape."""

    repeatable = True

    def __init__(self, rows: int, cols: int, dtype: np.dtype[Any]) -> None:
        self._shape = (rows, cols)
        self._dtype = dtype
        self._pivots = _aligned(16 + rows * cols * dtype.itemsize)
        self._data = _Data(self._pivots + 4 * min(rows, cols))

    def feed(self, message: bytes) -> service.Progress | None:
        """As in Reply."""
        parse(service.GetBatchFactorsResponse, self._data.take(message))
        return None

    def finish(self) -> MemberFactors:
        """As in Reply."""
        data = self._data.whole()
        if tuple(data[:16].view("<i8").tolist()) != self._shape:
            raise ProtocolError("the server sent another member")
        end = 16 + self._shape[0] * self._shape[1] * self._dtype.itemsize
        lu = data[16:end].view(self._dtype).reshape(self._shape, order="F")
        return MemberFactors(lu, data[self._pivots :].view("<i4").astype(np.intp) - 1)

    def explain(self, error: CroutError) -> None:
        """As in Reply."""


def batch_options(*, device: str = "", keep_matrix: bool = True) -> dict[str, Any]:
    """Where to factor a batch, and whether to keep its matrices."""
    return {"device": _options.text("device", device), "drop_matrix": not keep_matrix}


def _declare(spec: service.BatchSpec, places: Places, dtype: np.dtype[Any]) -> None:
    """Say in a header what the batch comes to."""
    spec.dtype = _payload.dtype_code(dtype)
    spec.members = len(places.shapes)
    spec.max_rows, spec.max_cols = places.shapes.max(axis=0, initial=0).tolist()
    spec.total_rows, spec.total_cols = places.shapes.sum(axis=0).tolist()
    spec.value_bytes = places.size


def factorize(matrices: Any, *, replaces: BatchRecord | None = None, **options: Any) -> Call[BatchRecord]:
    """FactorizeBatch; with `replaces` the next version of that batch."""
    call, how, cache, identity = distribute(
        options, call_options, batch_options, cache_options, request_id_option
    )
    request_id = request_id_option(**identity)
    arrays, dtype = _members(matrices)
    if replaces is not None:
        dtype = np.result_type(dtype, replaces.factor.dtype).newbyteorder("<")
    shapes = _shapes(arrays)
    places = Places(shapes, dtype.itemsize)
    header = service.FactorizeBatchHeader(**batch_options(**how))
    _declare(header.batch, places, dtype)
    if replaces is None:
        header.cache.CopyFrom(cache_options(**cache))
        header.cache.request_id = request_id
    elif cache or request_id:
        raise InvalidRequest("a batch that replaces another keeps its name and lease")
    else:
        header.handle = replaces.factor.handle
    return Call(
        "FactorizeBatch",
        service.FactorizeBatchRequest(header=header).SerializeToString(),
        lambda: _FactorReply(shapes),
        RetryClass.IDEMPOTENT if request_id else RetryClass.REFUSED_ONLY,
        ((_DATA, _payload.pieces_of([shapes, _values(arrays, places, dtype)])),),
        waits=bool(request_id),
        **call_options(**call),
    )


def batch_solve_options(*, trans: _options.Trans = 0, verify: bool = True) -> dict[str, Any]:
    """Which systems to solve with a batch, and whether to compute backward errors."""
    return {"operation": _options.operation(trans), "skip_verification": not verify}


def _chosen(all_members: int, members: Iterable[int] | None, count: int) -> list[int]:
    """Which members the right-hand sides are for."""
    chosen = list(range(all_members)) if members is None else [integer("members", k) for k in members]
    if len(chosen) != count:
        raise InvalidRequest(f"{count} right-hand sides for {len(chosen)} members")
    for k in chosen:
        if not 0 <= k < all_members:
            raise InvalidRequest(f"member {k} of a batch of {all_members}: they count from 0")
    if len(set(chosen)) != count:
        raise InvalidRequest("a member is solved with twice: give its right-hand sides as columns")
    return chosen


def _columns(b: Any, k: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, int]:
    """A right-hand side of member k as a matrix of the batch's type, and its own dimensions."""
    array = _payload.as_elements(_payload.as_array(b))
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise InvalidRequest(f"the right-hand side of member {k} is complex, the batch real")
    if array.ndim not in (1, 2):
        raise InvalidRequest(f"the right-hand side of member {k} has {array.ndim} dimensions")
    if shape[0] != shape[1]:
        raise InvalidRequest(f"member {k} is {shape[0]} x {shape[1]}: only square ones can be solved with")
    if array.shape[0] != shape[0]:
        raise InvalidRequest(f"member {k} has {shape[0]} rows, its right-hand side {array.shape[0]}")
    columns = array if array.ndim == 2 else array[:, np.newaxis]
    return columns.astype(dtype, copy=False), array.ndim


class _Sides:
    """Right-hand sides on their way, in the ascending order of their members that the server takes.

    Parameters
    ----------
    shapes : ndarray of int, shape (members, 2)
        Of the batch.
    dtype : dtype
        Of the batch, little-endian.
    b, members
        As the caller gave them.
    """

    def __init__(
        self, shapes: Array, dtype: np.dtype[Any], b: Iterable[Any], members: Iterable[int] | None
    ) -> None:
        sides = list(b)
        chosen = _chosen(len(shapes), members, len(sides))
        order = np.argsort(np.array(chosen, dtype=int), kind="stable")
        self._dtype = dtype
        self._at = np.argsort(order)
        self._arrays, self._dims = [], []
        for i in order.tolist():
            rows, cols = shapes[chosen[i]].tolist()
            array, dim = _columns(sides[i], chosen[i], (rows, cols), dtype)
            self._arrays.append(array)
            self._dims.append(dim)
        self.places = Places(_shapes(self._arrays), dtype.itemsize)
        self._pairs = self.places.shapes.copy()
        self._pairs[:, 0] = [chosen[i] for i in order.tolist()]

    def __len__(self) -> int:
        return len(self._arrays)

    def pieces(self) -> Any:
        """What is sent."""
        return _payload.pieces_of([self._pairs, _values(self._arrays, self.places, self._dtype)])

    def reply(self, field: int = _DATA) -> _SolutionReply:
        """What takes the solutions that come in that field."""
        return _SolutionReply(self.places, self._dims, self._at, self._dtype, field)


def solve(
    record: BatchRecord, b: Iterable[Any], members: Iterable[int] | None, **options: Any
) -> Call[BatchSolution]:
    """SolveBatch."""
    call, how = distribute(options, call_options, batch_solve_options)
    dtype = record.factor.dtype.newbyteorder("<")
    sides = _Sides(record.shapes, dtype, b, members)
    header = service.SolveBatchHeader(
        handle=record.factor.handle,
        dtype=_payload.dtype_code(dtype),
        systems=len(sides),
        value_bytes=sides.places.size,
        **batch_solve_options(**how),
    )
    return Call(
        "SolveBatch",
        service.SolveBatchRequest(header=header).SerializeToString(),
        sides.reply,
        payloads=((_DATA, sides.pieces()),),
        **call_options(**call),
    )


def placement(*, device: str = "") -> dict[str, Any]:
    """Where to factor a batch that is not kept."""
    return {"device": _options.text("device", device)}


def factorize_and_solve(
    matrices: Any, b: Iterable[Any], members: Iterable[int] | None, **options: Any
) -> Call[tuple[BatchRecord, BatchSolution]]:
    """FactorizeAndSolveBatch, which keeps nothing."""
    call, where, how = distribute(options, call_options, placement, batch_solve_options)
    arrays, dtype = _members(matrices)
    shapes = _shapes(arrays)
    places = Places(shapes, dtype.itemsize)
    sides = _Sides(shapes, dtype, b, members)
    header = service.FactorizeAndSolveBatchHeader(
        systems=len(sides),
        rhs_value_bytes=sides.places.size,
        **placement(**where),
        **batch_solve_options(**how),
    )
    _declare(header.batch, places, dtype)
    return Call(
        "FactorizeAndSolveBatch",
        service.FactorizeAndSolveBatchRequest(header=header).SerializeToString(),
        lambda: _BothReply(_FactorReply(shapes), sides.reply(_SOLUTION_DATA)),
        payloads=(
            (_DATA, _payload.pieces_of([shapes, _values(arrays, places, dtype)])),
            (_RHS_DATA, sides.pieces()),
        ),
        **call_options(**call),
    )


def get_member(record: BatchRecord, member: int) -> Call[MemberFactors]:
    """GetBatchFactors, of one member."""
    k = integer("member", member)
    if not 0 <= k < len(record.shapes):
        raise InvalidRequest(f"member {k} of a batch of {len(record.shapes)}: they count from 0")
    rows, cols = record.shapes[k].tolist()
    dtype = record.factor.dtype.newbyteorder("<")
    request = service.GetBatchFactorsRequest(handle=record.factor.handle, first=k, count=1)
    return Call("GetBatchFactors", request.SerializeToString(), lambda: _MemberReply(rows, cols, dtype))
