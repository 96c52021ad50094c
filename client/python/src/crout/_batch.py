# SPDX-License-Identifier: Apache-2.0
"""Requests and replies for batches of matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _messages, _options, _payload, _wire
from crout._call import Call, Reply, RetryClass
from crout._linalg import MemberFactors
from crout._messages import convert, parse, progress_of
from crout._options import cache_options, call_options, distribute, integer, request_id_option
from crout.errors import InvalidRequest, ProtocolError
from crout.results import BatchRecord, BatchSolution
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_ALIGNMENT = 16  # bytes; every member starts at a multiple
_MAX_ELEMENTS = 1 << 24  # largest dense form of a sparse member
# `bytes` fields of requests and replies.
_DATA = 2
_RHS_DATA = 3  # FactorizeAndSolve: the right-hand sides
_SOLUTION_DATA = 3  # Solve and FactorizeAndSolve: the solutions
_FACTORS_DATA = 2  # GetFactors
_MEMBER_DATA = 3  # Factorize and Refactorize: figures of the members
_BOTH_MEMBER_DATA = 6  # FactorizeAndSolve: figures of the members


def is_batch(value: Any) -> bool:
    """Whether `value` is a list or tuple of matrices with two dimensions, or an array with three."""
    if not isinstance(value, (list, tuple)):
        return getattr(value, "ndim", None) == 3
    if not value:
        return True
    dimensions = getattr(value[0], "ndim", None)
    return bool((_payload.as_array(value[0]).ndim if dimensions is None else dimensions) == 2)


def _aligned(size: int) -> int:
    """The first position for a member after `size` bytes."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class _Places:
    """Positions of consecutive matrices of these shapes: `begins` and `size`, in bytes."""

    def __init__(self, shapes: Array, itemsize: int) -> None:
        lengths = shapes[:, 0] * shapes[:, 1] * itemsize
        steps = -(-lengths // _ALIGNMENT) * _ALIGNMENT
        ends = np.cumsum(steps)
        self.shapes = shapes
        self.begins = ends - steps
        self.size = int(self.begins[-1] + lengths[-1]) if len(shapes) else 0


def _member(k: int, matrix: Any) -> Array:
    if not _payload.is_sparse(matrix):
        return _payload.as_array(matrix)
    if math.prod(matrix.shape) > _MAX_ELEMENTS:
        raise InvalidRequest(
            f"member {k} is a sparse matrix of shape {matrix.shape}, and batches are factored dense: "
            "factor it alone, so that it can be factored as sparse"
        )
    return _payload.as_array(matrix.toarray())


def _members_of(matrices: Any) -> tuple[list[Array], np.dtype[Any]]:
    """Two-dimensional arrays in the one type that holds them all."""
    if isinstance(matrices, np.ndarray) and matrices.ndim != 3:
        raise InvalidRequest(
            f"a batch is a sequence of matrices, or an array of three dimensions, not {matrices.ndim}"
        )
    arrays = [_payload.as_elements(_member(k, matrix)) for k, matrix in enumerate(matrices)]
    for k, array in enumerate(arrays):
        if array.ndim != 2:
            raise InvalidRequest(f"member {k} has {array.ndim} dimensions, a matrix has two")
    dtype = np.result_type(*{array.dtype for array in arrays}) if arrays else np.dtype("<f8")
    return arrays, dtype.newbyteorder("<")


def _shapes_of(arrays: Sequence[Array]) -> Array:
    """The pairs of sizes, as they are sent."""
    return np.array([array.shape for array in arrays], "<i8").reshape(len(arrays), 2)


def _values_of(arrays: Sequence[Array], places: _Places, dtype: np.dtype[Any]) -> Array:
    """The members in column-major order, at the positions of `places`."""
    memory = np.zeros(places.size, np.uint8)
    for array, begin in zip(arrays, places.begins.tolist(), strict=True):
        end = begin + array.size * dtype.itemsize
        memory[begin:end].view(dtype)[:] = array.ravel(order="F")
    return memory


def _declare(spec: matrix_pb2.MatrixSpec, places: _Places, dtype: np.dtype[Any]) -> None:
    """Declare the batch in a header."""
    batch = spec.batch
    batch.dtype = _payload.dtype_code(dtype)
    batch.members = len(places.shapes)
    batch.max_rows, batch.max_cols = places.shapes.max(axis=0, initial=0).tolist()
    batch.total_rows, batch.total_cols = places.shapes.sum(axis=0).tolist()
    batch.value_bytes = places.size


def batch_options(*, device: str = "", keep_matrix: bool = True) -> dict[str, Any]:
    """Device of a batch, and whether to keep its matrices."""
    return {"device": _options.text("device", device), "keep_matrix": keep_matrix}


def factorize(matrices: Any, *, replaces: BatchRecord | None = None, **options: Any) -> Call[BatchRecord]:
    """Factorize of a batch; with `replaces` Refactorize, which makes the next version of that batch."""
    call, how, cache, identity = distribute(
        options, call_options, batch_options, cache_options, request_id_option
    )
    request_id = request_id_option(**identity)
    arrays, dtype = _members_of(matrices)
    if replaces is not None:
        dtype = np.result_type(dtype, replaces.factor.dtype).newbyteorder("<")
    shapes = _shapes_of(arrays)
    places = _Places(shapes, dtype.itemsize)
    request: service.FactorizeRequest | service.RefactorizeRequest
    if replaces is None:
        request = service.FactorizeRequest()
        request.header.cache.CopyFrom(cache_options(**cache))
        request.header.cache.request_id = request_id
    elif cache or request_id:
        raise InvalidRequest("a batch that replaces another keeps its name and lease")
    else:
        request = service.RefactorizeRequest()
        request.header.handle = replaces.factor.handle
    request.header.options.CopyFrom(service.FactorizeOptions(**batch_options(**how)))
    _declare(request.header.matrix, places, dtype)
    response = service.FactorizeResponse if replaces is None else service.RefactorizeResponse
    return Call(
        "Factorize" if replaces is None else "Refactorize",
        request.SerializeToString(),
        lambda: _FactorReply(shapes, response),
        RetryClass.IDEMPOTENT if request_id else RetryClass.REFUSED_ONLY,
        ((_DATA, _payload.pieces_of([shapes, _values_of(arrays, places, dtype)])),),
        waits=bool(request_id),
        **call_options(**call),
    )


def batch_solve_options(*, trans: _options.Trans = 0, verify: bool = True) -> dict[str, Any]:
    """Operation of a batch solve, and whether to compute backward errors."""
    return {"operation": _options.operation(trans), "verify": verify}


def _chosen(all_members: int, members: Iterable[int] | None, count: int) -> list[int]:
    """The members of the right-hand sides."""
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
    """A right-hand side of member k as a matrix of the batch's type, and its own number of dimensions."""
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
    """Right-hand sides in the ascending order of members that the server requires.

    Parameters
    ----------
    shapes : ndarray of int, shape (members, 2)
        Shapes of the batch's members.
    dtype : dtype
        Type of the batch, little-endian.
    b, members
        Arguments of the caller.
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
        self.places = _Places(_shapes_of(self._arrays), dtype.itemsize)
        self._pairs = self.places.shapes.copy()
        self._pairs[:, 0] = [chosen[i] for i in order.tolist()]

    def __len__(self) -> int:
        return len(self._arrays)

    def pieces(self) -> Any:
        """The payload."""
        return _payload.pieces_of([self._pairs, _values_of(self._arrays, self.places, self._dtype)])

    def declare(self, spec: matrix_pb2.MatrixSpec) -> None:
        """Declare the right-hand sides in a header."""
        spec.batch_rhs.dtype = _payload.dtype_code(self._dtype)
        spec.batch_rhs.systems = len(self)
        spec.batch_rhs.value_bytes = self.places.size

    def reply(self) -> _SolutionReply:
        """The receiver of the solutions."""
        return _SolutionReply(self.places, self._dims, self._at, self._dtype)


def solve(
    record: BatchRecord, b: Iterable[Any], members: Iterable[int] | None, **options: Any
) -> Call[BatchSolution]:
    """Solve with members of a batch."""
    call, how = distribute(options, call_options, batch_solve_options)
    dtype = record.factor.dtype.newbyteorder("<")
    sides = _Sides(record.shapes, dtype, b, members)
    header = service.SolveHeader(
        handle=record.factor.handle, options=service.SolveOptions(**batch_solve_options(**how))
    )
    sides.declare(header.rhs)
    return Call(
        "Solve",
        service.SolveRequest(header=header).SerializeToString(),
        sides.reply,
        payloads=((_DATA, sides.pieces()),),
        **call_options(**call),
    )


def placement(*, device: str = "") -> dict[str, Any]:
    """Device of a batch that is not kept."""
    return {"device": _options.text("device", device)}


def members_option(*, members: Iterable[int] | None = None) -> Iterable[int] | None:
    """The members of a batch that is not kept, to solve with; None: all."""
    return members


def factorize_and_solve(
    matrices: Any, b: Iterable[Any], **options: Any
) -> Call[tuple[BatchRecord, BatchSolution]]:
    """FactorizeAndSolve of a batch, without a cached factor."""
    call, where, how, chosen = distribute(
        options, call_options, placement, batch_solve_options, members_option
    )
    arrays, dtype = _members_of(matrices)
    shapes = _shapes_of(arrays)
    places = _Places(shapes, dtype.itemsize)
    sides = _Sides(shapes, dtype, b, members_option(**chosen))
    header = service.FactorizeAndSolveHeader(
        options=service.FactorizeOptions(**placement(**where)),
        solve=service.SolveOptions(**batch_solve_options(**how)),
    )
    _declare(header.matrix, places, dtype)
    sides.declare(header.rhs)
    response = service.FactorizeAndSolveResponse
    return Call(
        "FactorizeAndSolve",
        service.FactorizeAndSolveRequest(header=header).SerializeToString(),
        lambda: _BothReply(_FactorReply(shapes, response, _BOTH_MEMBER_DATA), sides.reply()),
        payloads=(
            (_DATA, _payload.pieces_of([shapes, _values_of(arrays, places, dtype)])),
            (_RHS_DATA, sides.pieces()),
        ),
        **call_options(**call),
    )


def get_member(record: BatchRecord, member: int) -> Call[MemberFactors]:
    """GetFactors for one member of a batch."""
    k = integer("member", member)
    if not 0 <= k < len(record.shapes):
        raise InvalidRequest(f"member {k} of a batch of {len(record.shapes)}: they count from 0")
    rows, cols = record.shapes[k].tolist()
    dtype = record.factor.dtype.newbyteorder("<")
    request = service.GetFactorsRequest(handle=record.factor.handle, first=k, count=1)
    return Call("GetFactors", request.SerializeToString(), lambda: _MemberReply(rows, cols, dtype))


class _Data:
    """The data of a reply in one field of its messages, with a known size."""

    def __init__(self, size: int, field: int) -> None:
        self._memory = bytearray(size)
        self._field = field
        self._filled = 0

    def take(self, message: bytes) -> bytes:
        """Take the data out of a message and return the rest. Raises ProtocolError."""
        rest, pieces = _wire.split(message, self._field)
        for piece in pieces:
            end = self._filled + len(piece)
            if end > len(self._memory):
                raise ProtocolError("the server sent more data than it should")
            self._memory[self._filled : end] = piece
            self._filled = end
        return rest

    def whole(self) -> Array:
        """All data as bytes. Raises ProtocolError if some are missing."""
        if self._filled != len(self._memory):
            raise ProtocolError("the server sent less data than it should")
        return np.frombuffer(self._memory, np.uint8)


class _FactorReply(Reply[BatchRecord]):
    """Reply with a batch's factor: progress, figures of the members, then the factor."""

    def __init__(self, shapes: Array, response: Any, field: int = _MEMBER_DATA) -> None:
        self._shapes = shapes
        self._response = response
        self.data = _Data(len(shapes) * (8 + 8 + 4), field)
        self._batch = factor_pb2.BatchInfo()

    def feed(self, message: bytes) -> service.Progress | None:
        response = parse(self._response, self.data.take(message))
        self.take_factor(response)
        return progress_of(response)

    def take_factor(self, response: Any) -> None:
        """Store the factor of a response, if it has one."""
        if not response.HasField("factor"):
            return
        if response.factor.batch.members != len(self._shapes):
            raise ProtocolError("the server sent the factor of another batch")
        self._factor = convert(_messages.factor_record, response.factor)
        self._batch = response.factor.batch

    def finish(self) -> BatchRecord:
        """The record. The owner of the batch issues its warnings, because they may be errors."""
        growths, qualities, end = (len(self._shapes) * size for size in (8, 16, 20))
        figures = self.data.whole()
        if self._factor is None:
            raise ProtocolError("the server sent no factor")
        return BatchRecord(
            self._factor,
            self._shapes,
            info=figures[qualities:end].view("<i4"),
            pivot_growth=figures[:growths].view("<f8"),
            quality=figures[growths:qualities].view("<f8"),
            poor=self._batch.poor,
            first_poor=self._batch.first_poor,
            nearly_singular=self._batch.nearly_singular,
            first_nearly_singular=self._batch.first_nearly_singular,
        )


class _SolutionReply(Reply[BatchSolution]):
    """Reply of Solve: progress, the solutions and figures of the systems, then the result.

    Parameters
    ----------
    places : _Places
        Positions of the right-hand sides, which are also those of the solutions.
    dims : list of int
        Number of dimensions of each solution for the caller.
    at : ndarray of int
        Index of each of the caller's solutions among them.
    """

    def __init__(self, places: _Places, dims: list[int], at: Array, dtype: np.dtype[Any]) -> None:
        self._places = places
        self._dims = dims
        self._at = at
        self._dtype = dtype
        self.data = _Data(_aligned(places.size) + len(dims) * (8 + 4), _SOLUTION_DATA)
        self._result: service.SolveResult | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        response = parse(service.SolveResponse, self.data.take(message))
        self.take_result(response)
        return progress_of(response)

    def take_result(self, response: Any) -> None:
        """Store the result of a response, if it has one."""
        if response.HasField("result"):
            self._result = response.result

    def finish(self) -> BatchSolution:
        data = self.data.whole()
        if self._result is None:
            raise ProtocolError("the server sent no result")
        errors = _aligned(self._places.size)
        infos = errors + 8 * len(self._dims)
        return BatchSolution(
            [self._solution(data, k) for k in self._at.tolist()],
            backward_error=data[errors:infos].view("<f8")[self._at],
            info=data[infos:].view("<i4")[self._at],
            factor_version=self._result.factor_version,
            timings=_messages.timings(self._result.timings),
            inaccurate=self._result.batch.inaccurate,
            warnings=_messages.warnings(self._result),
        )

    def _solution(self, data: Array, k: int) -> Array:
        rows, cols = self._places.shapes[k].tolist()
        begin = int(self._places.begins[k])
        end = begin + rows * cols * self._dtype.itemsize
        x = data[begin:end].view(self._dtype).reshape((rows, cols), order="F")
        return x[:, 0] if self._dims[k] == 1 else x


class _BothReply(Reply[tuple[BatchRecord, BatchSolution]]):
    """Reply of FactorizeAndSolve: the factor, then the solutions."""

    def __init__(self, factor: _FactorReply, solution: _SolutionReply) -> None:
        self._factorization = factor
        self._solution = solution

    def feed(self, message: bytes) -> service.Progress | None:
        rest = self._solution.data.take(self._factorization.data.take(message))
        response = parse(service.FactorizeAndSolveResponse, rest)
        self._factorization.take_factor(response)
        self._solution.take_result(response)
        return progress_of(response)

    def finish(self) -> tuple[BatchRecord, BatchSolution]:
        return self._factorization.finish(), self._solution.finish()


class _MemberReply(Reply[MemberFactors]):
    """Reply of GetFactors for one member of this shape."""

    def __init__(self, rows: int, cols: int, dtype: np.dtype[Any]) -> None:
        self._shape = (rows, cols)
        self._dtype = dtype
        self._pivots = _aligned(16 + rows * cols * dtype.itemsize)
        self._data = _Data(self._pivots + 4 * min(rows, cols), _FACTORS_DATA)

    def feed(self, message: bytes) -> service.Progress | None:
        parse(service.GetFactorsResponse, self._data.take(message))
        return None

    def finish(self) -> MemberFactors:
        data = self._data.whole()
        if tuple(data[:16].view("<i8").tolist()) != self._shape:
            raise ProtocolError("the server sent another member")
        end = 16 + self._shape[0] * self._shape[1] * self._dtype.itemsize
        lu = data[16:end].view(self._dtype).reshape(self._shape, order="F")
        return MemberFactors(lu, data[self._pivots :].view("<i4").astype(np.intp) - 1)
