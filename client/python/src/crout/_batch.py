# SPDX-License-Identifier: Apache-2.0
"""Requests and replies for batches of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _messages, _options, _payload, _requests, _wire
from crout._call import Call, Reply, RetryClass
from crout._linalg import MemberFactors
from crout._messages import parse, progress_of
from crout._options import call_options, distribute, factorize_options, integer, solve_options
from crout._replies import FACTORS_DATA, ByteTarget, MatrixReply, checked_record
from crout._requests import DATA, RHS_DATA
from crout.errors import InvalidRequest, ProtocolError
from crout.records import BatchRecord
from crout.results import BatchSolution
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_ALIGNMENT = 16  # bytes; every member starts at a multiple
_MAX_ELEMENTS = 1 << 24  # largest dense form of a sparse member


def is_batch(value: Any) -> bool:
    """Whether `value` is a list or tuple of two-dimensional matrices, or a three-dimensional array."""
    if not isinstance(value, (list, tuple)):
        return getattr(value, "ndim", None) == 3
    if not value:
        return True
    dimensions = getattr(value[0], "ndim", None)
    return bool((_payload.as_array(value[0]).ndim if dimensions is None else dimensions) == 2)


def _aligned(size: int) -> int:
    """Return the first position for a member after `size` bytes."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class _Layout:
    """Positions of consecutive matrices in a block of memory.

    Attributes
    ----------
    shapes : ndarray of int, shape (count, 2)
    offsets : ndarray of int, shape (count,)
        First byte of each matrix.
    size : int
        Bytes of the block.
    """

    def __init__(self, shapes: Array, itemsize: int) -> None:
        lengths = shapes[:, 0] * shapes[:, 1] * itemsize
        steps = -(-lengths // _ALIGNMENT) * _ALIGNMENT
        ends = np.cumsum(steps)
        self.shapes = shapes
        self.offsets = ends - steps
        self.size = int(self.offsets[-1] + lengths[-1]) if len(shapes) else 0


def _member(k: int, matrix: Any) -> Array:
    if not _payload.is_sparse(matrix):
        return _payload.as_array(matrix)
    if math.prod(matrix.shape) > _MAX_ELEMENTS:
        raise InvalidRequest(
            f"member {k} is a sparse matrix of shape {matrix.shape}, and batches are dense: "
            f"factor it alone, or give at most {_MAX_ELEMENTS} elements"
        )
    return _payload.as_array(matrix.toarray())


def _members_of(matrices: Any) -> tuple[list[Array], np.dtype[Any]]:
    """Return two-dimensional arrays, and the type that can represent the elements of all of them."""
    if isinstance(matrices, np.ndarray) and matrices.ndim != 3:
        raise InvalidRequest(
            f"the array has {matrices.ndim} dimensions: give a sequence of matrices, or an array with three"
        )
    arrays = [_payload.as_elements(_member(k, matrix)) for k, matrix in enumerate(matrices)]
    for k, array in enumerate(arrays):
        if array.ndim != 2:
            raise InvalidRequest(f"member {k} has {array.ndim} dimensions: a matrix has two")
    dtype = np.result_type(*{array.dtype for array in arrays}) if arrays else np.dtype("<f8")
    return arrays, dtype.newbyteorder("<")


def _shapes_of(arrays: Sequence[Array]) -> Array:
    """Return the shapes as they are sent."""
    return np.array([array.shape for array in arrays], "<i8").reshape(len(arrays), 2)


def _values_of(arrays: Sequence[Array], layout: _Layout, dtype: np.dtype[Any]) -> Array:
    """Return the members in column-major order, at the positions of `layout`."""
    memory = np.zeros(layout.size, np.uint8)
    for array, begin in zip(arrays, layout.offsets.tolist(), strict=True):
        end = begin + array.size * dtype.itemsize
        memory[begin:end].view(dtype)[:] = array.ravel(order="F")
    return memory


class _Matrices:
    """A batch to send, in a type that can represent all its members and elements of `dtype`."""

    def __init__(self, matrices: Any, dtype: np.dtype[Any] | None = None) -> None:
        arrays, own = _members_of(matrices)
        self.dtype = own if dtype is None else np.result_type(own, dtype).newbyteorder("<")
        self.shapes = _shapes_of(arrays)
        layout = _Layout(self.shapes, self.dtype.itemsize)
        max_rows, max_cols = self.shapes.max(axis=0, initial=0).tolist()
        total_rows, total_cols = self.shapes.sum(axis=0).tolist()
        batch = matrix_pb2.BatchSpec(
            dtype=_payload.dtype_code(self.dtype),
            members=len(arrays),
            max_rows=max_rows,
            max_cols=max_cols,
            total_rows=total_rows,
            total_cols=total_cols,
            value_bytes=layout.size,
        )
        pieces = _payload.pieces_of([self.shapes, _values_of(arrays, layout, self.dtype)])
        self.payload = _payload.Payload(matrix_pb2.MatrixSpec(batch=batch), self.dtype, None, pieces)


def batch_options(*, device: str = "", keep_matrix: bool = True) -> service.FactorizeOptions:
    """Convert the options of a batch: its device, and whether to keep its matrices."""
    return factorize_options(device=device, keep_matrix=keep_matrix)


def factorize(matrices: Any, **options: Any) -> Call[BatchRecord]:
    """Build Factorize."""

    def read() -> tuple[_payload.Payload, Callable[[], Reply[BatchRecord]]]:
        batch = _Matrices(matrices)
        return batch.payload, lambda: _FactorReply(service.FactorizeResponse, batch.shapes)

    return _requests.factorize_payload(read, batch_options, options)


def refactorize(record: BatchRecord, matrices: Any, **options: Any) -> Call[BatchRecord]:
    """Build Refactorize. Not retried after a lost connection, because it may have taken effect."""
    call, how = distribute(options, call_options, batch_options)
    batch = _Matrices(matrices, record.factor.dtype)
    header = service.RefactorizeHeader(
        handle=record.factor.handle, matrix=batch.payload.spec, options=batch_options(**how)
    )
    return Call(
        "Refactorize",
        service.RefactorizeRequest(header=header).SerializeToString(),
        lambda: _FactorReply(service.RefactorizeResponse, batch.shapes),
        RetryClass.REFUSED_ONLY,
        ((DATA, batch.payload.open),),
        **call_options(**call),
    )


def batch_solve_options(*, trans: _options.Trans = 0, verify: bool = True) -> service.SolveOptions:
    """Convert the options of a batch solve: its operation, and whether to compute backward errors."""
    return solve_options(trans=trans, verify=verify)


def _chosen(all_members: int, members: Iterable[int] | None, count: int) -> list[int]:
    """Return the member of each right-hand side."""
    chosen = list(range(all_members)) if members is None else [integer("members", k) for k in members]
    if len(chosen) != count:
        raise InvalidRequest(
            f"b has {count} right-hand sides for {len(chosen)} members: give one for each member"
        )
    for k in chosen:
        if not 0 <= k < all_members:
            raise InvalidRequest(
                f"member {k} does not exist: the batch has {all_members} members, counted from 0"
            )
    if len(set(chosen)) != count:
        raise InvalidRequest("members has duplicates: give several right-hand sides of a member as columns")
    return chosen


def _columns(b: Any, k: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Return a right-hand side of member k as a matrix of the batch's type, and its number of dimensions."""
    array = _payload.as_elements(_payload.as_array(b))
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise InvalidRequest(
            f"the right-hand side of member {k} is complex, the batch real: factor a complex batch"
        )
    if array.ndim not in (1, 2):
        raise InvalidRequest(
            f"the right-hand side of member {k} has {array.ndim} dimensions: give one or two"
        )
    if shape[0] != shape[1]:
        raise InvalidRequest(f"member {k} is {shape[0]} x {shape[1]}: only square members can solve a system")
    if array.shape[0] != shape[0]:
        raise InvalidRequest(f"the right-hand side of member {k} has {array.shape[0]} rows: give {shape[0]}")
    columns = array if array.ndim == 2 else array[:, np.newaxis]
    return columns.astype(dtype, copy=False), array.ndim


class _RightHandSides:
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
        self._dims = []
        arrays = []
        for i in order.tolist():
            rows, cols = shapes[chosen[i]].tolist()
            array, dim = _columns(sides[i], chosen[i], (rows, cols), dtype)
            arrays.append(array)
            self._dims.append(dim)
        self._layout = _Layout(_shapes_of(arrays), dtype.itemsize)
        pairs = self._layout.shapes.copy()
        pairs[:, 0] = [chosen[i] for i in order.tolist()]
        rhs = matrix_pb2.BatchRhsSpec(
            dtype=_payload.dtype_code(dtype), systems=len(arrays), value_bytes=self._layout.size
        )
        pieces = _payload.pieces_of([pairs, _values_of(arrays, self._layout, dtype)])
        self.payload = _payload.Payload(matrix_pb2.MatrixSpec(batch_rhs=rhs), dtype, None, pieces)

    def reply(self, kind: type[Any]) -> _SolutionReply:
        """Make the handler of the solutions, in messages of type `kind`."""
        return _SolutionReply(kind, self._layout, self._dims, self._at, self._dtype)


def solve(
    record: BatchRecord, b: Iterable[Any], members: Iterable[int] | None, **options: Any
) -> Call[BatchSolution]:
    """Build Solve."""
    call, how = distribute(options, call_options, batch_solve_options)
    sides = _RightHandSides(record.shapes, record.factor.dtype.newbyteorder("<"), b, members)
    header = service.SolveHeader(
        handle=record.factor.handle, rhs=sides.payload.spec, options=batch_solve_options(**how)
    )
    return Call(
        "Solve",
        service.SolveRequest(header=header).SerializeToString(),
        lambda: sides.reply(service.SolveResponse),
        payloads=((DATA, sides.payload.open),),
        **call_options(**call),
    )


def members_option(*, members: Iterable[int] | None = None) -> Iterable[int] | None:
    """Return the members to solve with, for a batch that is not kept; None: all."""
    return members


def factorize_and_solve(
    matrices: Any, b: Iterable[Any], **options: Any
) -> Call[tuple[BatchRecord, BatchSolution]]:
    """Build FactorizeAndSolve. It caches no factor."""
    call, how, solving, chosen = distribute(
        options, call_options, batch_options, batch_solve_options, members_option
    )
    batch = _Matrices(matrices)
    sides = _RightHandSides(batch.shapes, batch.dtype, b, members_option(**chosen))
    header = service.FactorizeAndSolveHeader(
        matrix=batch.payload.spec,
        options=batch_options(**how),
        rhs=sides.payload.spec,
        solve=batch_solve_options(**solving),
    )
    return Call(
        "FactorizeAndSolve",
        service.FactorizeAndSolveRequest(header=header).SerializeToString(),
        lambda: _FactorAndSolutionReply(batch.shapes, sides),
        payloads=((DATA, batch.payload.open), (RHS_DATA, sides.payload.open)),
        **call_options(**call),
    )


def get_member(record: BatchRecord, member: int) -> Call[MemberFactors]:
    """Build GetFactors for one member."""
    k = integer("member", member)
    if not 0 <= k < len(record.shapes):
        raise InvalidRequest(
            f"member {k} does not exist: the batch has {len(record.shapes)} members, counted from 0"
        )
    rows, cols = record.shapes[k].tolist()
    dtype = record.factor.dtype.newbyteorder("<")
    request = service.GetFactorsRequest(handle=record.factor.handle, first=k, count=1)
    return Call("GetFactors", request.SerializeToString(), lambda: _MemberReply(rows, cols, dtype))


class _FactorReply(Reply[BatchRecord]):
    """Reply of Factorize and others: progress, the figures of the members, then the factor."""

    def __init__(self, kind: type[Any], shapes: Array) -> None:
        self._kind = kind
        self._shapes = shapes
        self._figures = ByteTarget(len(shapes) * (8 + 8 + 4))
        self._batch = factor_pb2.BatchInfo()

    @property
    def done(self) -> bool:
        """Whether the factor has arrived."""
        return self._factor is not None

    def feed(self, message: bytes) -> service.Progress | None:
        response = parse(self._kind, message)
        self._figures.append(response.member_data)
        if response.HasField("factor"):
            self._batch = response.factor.batch
            if self._batch.members != len(self._shapes):
                raise ProtocolError("the server sent a factor with a different number of members")
            self._factor = checked_record(response.factor, None)
        return progress_of(response)

    def finish(self) -> BatchRecord:
        """Return the record. The caller issues its warnings, and releases the batch if they are errors."""
        growths, qualities, end = (len(self._shapes) * size for size in (8, 16, 20))
        figures = self._figures.finish()
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


class _SolutionReply(MatrixReply[BatchSolution]):
    """Reply of Solve and FactorizeAndSolve: the solutions and figures of the systems, then the result.

    Parameters
    ----------
    kind : type
        Type of the messages.
    layout : _Layout
        Positions of the right-hand sides, which are also those of the solutions.
    dims : list of int
        Number of dimensions of each solution for the caller.
    at : ndarray of int
        Index among `layout` of each of the caller's solutions.
    """

    def __init__(
        self, kind: type[Any], layout: _Layout, dims: list[int], at: Array, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(kind, "solution", ByteTarget(_aligned(layout.size) + len(dims) * (8 + 4)))
        self._layout = layout
        self._dims = dims
        self._at = at
        self._dtype = dtype

    def finish(self) -> BatchSolution:
        data = self._complete()
        errors = _aligned(self._layout.size)
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
        rows, cols = self._layout.shapes[k].tolist()
        begin = int(self._layout.offsets[k])
        end = begin + rows * cols * self._dtype.itemsize
        x = data[begin:end].view(self._dtype).reshape((rows, cols), order="F")
        return x[:, 0] if self._dims[k] == 1 else x


class _FactorAndSolutionReply(Reply[tuple[BatchRecord, BatchSolution]]):
    """Reply of FactorizeAndSolve: the factor, then the solutions."""

    def __init__(self, shapes: Array, sides: _RightHandSides) -> None:
        self._factorization = _FactorReply(service.FactorizeAndSolveResponse, shapes)
        self._solution = sides.reply(service.FactorizeAndSolveResponse)

    def feed(self, message: bytes) -> service.Progress | None:
        if not self._factorization.done:
            self._factorization.feed(message)
        return self._solution.feed(message)

    def finish(self) -> tuple[BatchRecord, BatchSolution]:
        return self._factorization.finish(), self._solution.finish()


class _MemberReply(Reply[MemberFactors]):
    """Reply of GetFactors for one member."""

    def __init__(self, rows: int, cols: int, dtype: np.dtype[Any]) -> None:
        self._shape = (rows, cols)
        self._dtype = dtype
        self._pivots = _aligned(16 + rows * cols * dtype.itemsize)
        self._target = ByteTarget(self._pivots + 4 * min(rows, cols))

    def feed(self, message: bytes) -> None:
        rest, pieces = _wire.split(message, FACTORS_DATA)
        parse(service.GetFactorsResponse, rest)
        for piece in pieces:
            self._target.append(piece)

    def finish(self) -> MemberFactors:
        data = self._target.finish()
        if tuple(data[:16].view("<i8").tolist()) != self._shape:
            raise ProtocolError("the server sent a member with a different shape")
        end = 16 + self._shape[0] * self._shape[1] * self._dtype.itemsize
        lu = data[16:end].view(self._dtype).reshape(self._shape, order="F")
        return MemberFactors(lu, data[self._pivots :].view("<i4").astype(np.intp) - 1)
