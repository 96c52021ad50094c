# SPDX-License-Identifier: Apache-2.0
"""Layout of batches, and handlers of replies about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _messages, _wire
from crout._call import Reply
from crout._linalg import MemberFactors
from crout._messages import parse, progress_of
from crout._replies import FACTORS_DATA, ByteTarget, MatrixReply, checked_record
from crout.errors import ProtocolError
from crout.records import BatchRecord
from crout.results import BatchSolution
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_ALIGNMENT = 16  # bytes; every member starts at a multiple


def aligned(size: int) -> int:
    """Return the first position for a member after `size` bytes."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Layout:
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


class BatchFactorReply(Reply[BatchRecord]):
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


class BatchSolutionReply(MatrixReply[BatchSolution]):
    """Reply of Solve and FactorizeAndSolve: the solutions and figures of the systems, then the result.

    Parameters
    ----------
    kind : type
        Type of the messages.
    layout : Layout
        Positions of the right-hand sides, which are also those of the solutions.
    dims : list of int
        Number of dimensions of each solution for the caller.
    at : ndarray of int
        Index among `layout` of each of the caller's solutions.
    stack : tuple of int or None
        Shape of the solutions as one array; None for a list.
    """

    def __init__(
        self,
        kind: type[Any],
        layout: Layout,
        dims: list[int],
        at: Array,
        dtype: np.dtype[Any],
        stack: tuple[int, ...] | None,
    ) -> None:
        super().__init__(kind, "solution", ByteTarget(aligned(layout.size) + len(dims) * (8 + 4)))
        self._layout = layout
        self._dims = dims
        self._at = at
        self._dtype = dtype
        self._stack = stack

    def finish(self) -> BatchSolution:
        data = self._complete()
        x: list[Array] | Array = [self._solution(data, k) for k in self._at.tolist()]
        if self._stack is not None:
            x = np.array(x, self._dtype).reshape(self._stack)
        errors = aligned(self._layout.size)
        infos = errors + 8 * len(self._dims)
        return BatchSolution(
            x,
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


class BatchFactorAndSolutionReply(Reply[tuple[BatchRecord, BatchSolution]]):
    """Reply of FactorizeAndSolve: the factor, then the solutions."""

    def __init__(self, shapes: Array, solution: BatchSolutionReply) -> None:
        self._factorization = BatchFactorReply(service.FactorizeAndSolveResponse, shapes)
        self._solution = solution

    def feed(self, message: bytes) -> service.Progress | None:
        if not self._factorization.done:
            self._factorization.feed(message)
        return self._solution.feed(message)

    def finish(self) -> tuple[BatchRecord, BatchSolution]:
        return self._factorization.finish(), self._solution.finish()


class MembersReply(Reply[list[MemberFactors]]):
    """Reply of GetFactors for some members: their shapes, LU and row interchanges."""

    def __init__(self, shapes: Array, dtype: np.dtype[Any]) -> None:
        self._shapes = shapes
        self._dtype = dtype
        self._layout = Layout(shapes, dtype.itemsize)
        self._values = _ALIGNMENT * len(shapes)  # the shapes fill the bytes before
        self._pivots = self._values + aligned(self._layout.size)
        self._target = ByteTarget(self._pivots + 4 * int(shapes.min(axis=1).sum()))

    def feed(self, message: bytes) -> None:
        rest, pieces = _wire.split(message, FACTORS_DATA)
        parse(service.GetFactorsResponse, rest)
        for piece in pieces:
            self._target.append(piece)

    def finish(self) -> list[MemberFactors]:
        data = self._target.finish()
        if not np.array_equal(data[: self._values].view("<i8").reshape(-1, 2), self._shapes):
            raise ProtocolError("the server sent members with different shapes")
        pivots = data[self._pivots :].view("<i4").astype(np.intp) - 1
        parts = np.split(pivots, np.cumsum(self._shapes.min(axis=1))[:-1])
        return [self._member(data, k, piv) for k, piv in enumerate(parts)]

    def _member(self, data: Array, k: int, piv: Array) -> MemberFactors:
        shape = tuple(self._shapes[k].tolist())
        begin = self._values + int(self._layout.offsets[k])
        values = data[begin : begin + math.prod(shape) * self._dtype.itemsize].view(self._dtype)
        return MemberFactors(values.reshape(shape, order="F"), piv)
