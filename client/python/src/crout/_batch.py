# SPDX-License-Identifier: Apache-2.0
"""Requests and replies for batches of matrices."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from crout import _options, _payload, _requests
from crout._batch_replies import (
    BatchFactorAndSolutionReply,
    BatchFactorReply,
    BatchSolutionReply,
    Layout,
    MembersReply,
)
from crout._call import Call, Reply, RetryClass, Steps
from crout._linalg import MemberFactors
from crout._options import call_options, distribute, factorize_options, integer, solve_options
from crout._requests import DATA, RHS_DATA
from crout.errors import InvalidRequest
from crout.records import BatchRecord
from crout.results import BatchSolution
from crout.v1 import factorization_service_pb2 as service
from crout.v1 import matrix_pb2

Array = npt.NDArray[Any]
T = TypeVar("T")

_MAX_ELEMENTS = 1 << 24  # largest dense form of a sparse member


def is_batch(value: Any) -> bool:
    """Whether `value` is a list or tuple of matrices or paths, or a three-dimensional array."""
    if not isinstance(value, (list, tuple)):
        return getattr(value, "ndim", None) == 3
    if not value:
        return True
    if isinstance(value[0], (str, os.PathLike)):
        return True
    dimensions = getattr(value[0], "ndim", None)
    return bool((_payload.as_array(value[0]).ndim if dimensions is None else dimensions) == 2)


def _member(k: int, matrix: Any) -> Array:
    if isinstance(matrix, (str, os.PathLike)):
        return _payload.dense_of_file(os.fspath(matrix))
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


def _values_of(arrays: Sequence[Array], layout: Layout, dtype: np.dtype[Any]) -> Array:
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
        layout = Layout(self.shapes, self.dtype.itemsize)
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
        return batch.payload, lambda: BatchFactorReply(service.FactorizeResponse, batch.shapes)

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
        lambda: BatchFactorReply(service.RefactorizeResponse, batch.shapes),
        RetryClass.REFUSED_ONLY,
        ((DATA, batch.payload.open),),
        handle=header.handle,
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
    array = _payload.as_elements(_member(k, b))
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
    stacked : bool
        Whether the solutions of a `b` that is one array are one array, too.
    """

    def __init__(
        self,
        shapes: Array,
        dtype: np.dtype[Any],
        b: Iterable[Any],
        members: Iterable[int] | None,
        stacked: bool = True,
    ) -> None:
        sides = list(b)
        chosen = _chosen(len(shapes), members, len(sides))
        order = np.argsort(np.array(chosen, dtype=int), kind="stable")
        self._dtype = dtype
        self._at = np.argsort(order)
        self._stack = b.shape if stacked and isinstance(b, np.ndarray) else None
        self._dims = []
        arrays = []
        for i in order.tolist():
            rows, cols = shapes[chosen[i]].tolist()
            array, dim = _columns(sides[i], chosen[i], (rows, cols), dtype)
            arrays.append(array)
            self._dims.append(dim)
        self._layout = Layout(_shapes_of(arrays), dtype.itemsize)
        pairs = self._layout.shapes.copy()
        pairs[:, 0] = [chosen[i] for i in order.tolist()]
        rhs = matrix_pb2.BatchRhsSpec(
            dtype=_payload.dtype_code(dtype), systems=len(arrays), value_bytes=self._layout.size
        )
        pieces = _payload.pieces_of([pairs, _values_of(arrays, self._layout, dtype)])
        self.payload = _payload.Payload(matrix_pb2.MatrixSpec(batch_rhs=rhs), dtype, None, pieces)

    def reply(self, kind: type[Any]) -> BatchSolutionReply:
        """Make the handler of the solutions, in messages of type `kind`."""
        return BatchSolutionReply(kind, self._layout, self._dims, self._at, self._dtype, self._stack)


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
        handle=header.handle,
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
    stacked = not isinstance(matrices, (list, tuple))
    sides = _RightHandSides(batch.shapes, batch.dtype, b, members_option(**chosen), stacked)
    header = service.FactorizeAndSolveHeader(
        matrix=batch.payload.spec,
        options=batch_options(**how),
        rhs=sides.payload.spec,
        solve=batch_solve_options(**solving),
    )
    return Call(
        "FactorizeAndSolve",
        service.FactorizeAndSolveRequest(header=header).SerializeToString(),
        lambda: BatchFactorAndSolutionReply(batch.shapes, sides.reply(service.FactorizeAndSolveResponse)),
        payloads=((DATA, batch.payload.open), (RHS_DATA, sides.payload.open)),
        **call_options(**call),
    )


def get_member(record: BatchRecord, member: int, form: Callable[[MemberFactors], T]) -> Steps[T]:
    """Build GetFactors for one member, in a form of its factors."""
    k = integer("member", member)
    if not 0 <= k < len(record.shapes):
        raise InvalidRequest(
            f"member {k} does not exist: the batch has {len(record.shapes)} members, counted from 0"
        )
    return get_members(record, k, 1).then(lambda members: form(members[0]))


def get_members(record: BatchRecord, first: int, count: int) -> Call[list[MemberFactors]]:
    """Build GetFactors for `count` members, which exist; `count` is not 0."""
    shapes = record.shapes[first : first + count]
    dtype = record.factor.dtype.newbyteorder("<")
    request = service.GetFactorsRequest(handle=record.factor.handle, first=first, count=count)
    return Call(
        "GetFactors", request.SerializeToString(), lambda: MembersReply(shapes, dtype), handle=request.handle
    )
