# SPDX-License-Identifier: Apache-2.0
"""Replies about batches of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _messages, _wire
from crout._batch_layout import Places, aligned
from crout._call import Reply
from crout._linalg import MemberFactors
from crout._messages import convert, parse, progress_of
from crout.errors import ProtocolError
from crout.results import BatchRecord, BatchSolution
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

DATA = 2  # `bytes` field of the replies and requests
SOLUTION_DATA = 4  # `bytes` field of FactorizeAndSolveBatch for the solutions


class _Data:
    """The data of a reply in one field of its messages, with a known size."""

    def __init__(self, size: int, field: int = DATA) -> None:
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


class FactorReply(Reply[BatchRecord]):
    """Reply of FactorizeBatch: progress, figures of the members, then the factor."""

    def __init__(self, shapes: Array) -> None:
        self._shapes = shapes
        self.data = _Data(len(shapes) * (8 + 8 + 4))
        self._batch = factor_pb2.BatchInfo()

    def feed(self, message: bytes) -> service.Progress | None:
        response = parse(service.FactorizeBatchResponse, self.data.take(message))
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
        """Warnings are issued later, by the owner of the factor, because they may be errors."""
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


class SolutionReply(Reply[BatchSolution]):
    """Reply of SolveBatch: progress, the solutions and figures of the systems, then the result.

    Parameters
    ----------
    places : Places
        Positions of the right-hand sides, which are also those of the solutions.
    dims : list of int
        Number of dimensions of each solution for the caller.
    at : ndarray of int
        Index of each of the caller's solutions among them.
    """

    def __init__(
        self, places: Places, dims: list[int], at: Array, dtype: np.dtype[Any], field: int = DATA
    ) -> None:
        self._places = places
        self._dims = dims
        self._at = at
        self._dtype = dtype
        self.data = _Data(aligned(places.size) + len(dims) * (8 + 4), field)
        self._result: service.SolveBatchResult | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        response = parse(service.SolveBatchResponse, self.data.take(message))
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
        errors = aligned(self._places.size)
        infos = errors + 8 * len(self._dims)
        return BatchSolution(
            [self._solution(data, k) for k in self._at.tolist()],
            backward_error=data[errors:infos].view("<f8")[self._at],
            info=data[infos:].view("<i4")[self._at],
            factor_version=self._result.factor_version,
            timings=_messages.timings(self._result.timings),
            inaccurate=self._result.inaccurate,
            warnings=_messages.warnings(self._result),
        )

    def _solution(self, data: Array, k: int) -> Array:
        rows, cols = self._places.shapes[k].tolist()
        begin = int(self._places.begins[k])
        end = begin + rows * cols * self._dtype.itemsize
        x = data[begin:end].view(self._dtype).reshape((rows, cols), order="F")
        return x[:, 0] if self._dims[k] == 1 else x


class BothReply(Reply[tuple[BatchRecord, BatchSolution]]):
    """Reply of FactorizeAndSolveBatch: that of FactorizeBatch, then that of SolveBatch."""

    def __init__(self, factor: FactorReply, solution: SolutionReply) -> None:
        self._factorization = factor
        self._solution = solution

    def feed(self, message: bytes) -> service.Progress | None:
        rest = self._solution.data.take(self._factorization.data.take(message))
        response = parse(service.FactorizeAndSolveBatchResponse, rest)
        self._factorization.take_factor(response)
        self._solution.take_result(response)
        return progress_of(response)

    def finish(self) -> tuple[BatchRecord, BatchSolution]:
        return self._factorization.finish(), self._solution.finish()


class MemberReply(Reply[MemberFactors]):
    """Reply of GetBatchFactors for one member of this shape."""

    def __init__(self, rows: int, cols: int, dtype: np.dtype[Any]) -> None:
        self._shape = (rows, cols)
        self._dtype = dtype
        self._pivots = aligned(16 + rows * cols * dtype.itemsize)
        self._data = _Data(self._pivots + 4 * min(rows, cols))

    def feed(self, message: bytes) -> service.Progress | None:
        parse(service.GetBatchFactorsResponse, self._data.take(message))
        return None

    def finish(self) -> MemberFactors:
        data = self._data.whole()
        if tuple(data[:16].view("<i8").tolist()) != self._shape:
            raise ProtocolError("the server sent another member")
        end = 16 + self._shape[0] * self._shape[1] * self._dtype.itemsize
        lu = data[16:end].view(self._dtype).reshape(self._shape, order="F")
        return MemberFactors(lu, data[self._pivots :].view("<i4").astype(np.intp) - 1)
