# SPDX-License-Identifier: Apache-2.0
"""Requests for batches of matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _options, _payload
from crout._batch_layout import Places, declare, members_of, shapes_of, values_of
from crout._batch_replies import (
    DATA,
    SOLUTION_DATA,
    BothReply,
    FactorReply,
    MemberReply,
    SolutionReply,
)
from crout._call import Call, RetryClass
from crout._linalg import MemberFactors
from crout._options import cache_options, call_options, distribute, integer, request_id_option
from crout.errors import InvalidRequest
from crout.results import BatchRecord, BatchSolution
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_RHS_DATA = 3  # `bytes` field of FactorizeAndSolveBatch for the right-hand sides


def batch_options(*, device: str = "", keep_matrix: bool = True) -> dict[str, Any]:
    """Device of a batch, and whether to keep its matrices."""
    return {"device": _options.text("device", device), "drop_matrix": not keep_matrix}


def factorize(matrices: Any, *, replaces: BatchRecord | None = None, **options: Any) -> Call[BatchRecord]:
    """FactorizeBatch; with `replaces` the next version of that batch."""
    call, how, cache, identity = distribute(
        options, call_options, batch_options, cache_options, request_id_option
    )
    request_id = request_id_option(**identity)
    arrays, dtype = members_of(matrices)
    if replaces is not None:
        dtype = np.result_type(dtype, replaces.factor.dtype).newbyteorder("<")
    shapes = shapes_of(arrays)
    places = Places(shapes, dtype.itemsize)
    header = service.FactorizeBatchHeader(**batch_options(**how))
    declare(header.batch, places, dtype)
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
        lambda: FactorReply(shapes),
        RetryClass.IDEMPOTENT if request_id else RetryClass.REFUSED_ONLY,
        ((DATA, _payload.pieces_of([shapes, values_of(arrays, places, dtype)])),),
        waits=bool(request_id),
        **call_options(**call),
    )


def batch_solve_options(*, trans: _options.Trans = 0, verify: bool = True) -> dict[str, Any]:
    """Operation of a batch solve, and whether to compute backward errors."""
    return {"operation": _options.operation(trans), "skip_verification": not verify}


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
        self.places = Places(shapes_of(self._arrays), dtype.itemsize)
        self._pairs = self.places.shapes.copy()
        self._pairs[:, 0] = [chosen[i] for i in order.tolist()]

    def __len__(self) -> int:
        return len(self._arrays)

    def pieces(self) -> Any:
        """The payload."""
        return _payload.pieces_of([self._pairs, values_of(self._arrays, self.places, self._dtype)])

    def reply(self, field: int = DATA) -> SolutionReply:
        """The receiver of the solutions in that field."""
        return SolutionReply(self.places, self._dims, self._at, self._dtype, field)


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
        payloads=((DATA, sides.pieces()),),
        **call_options(**call),
    )


def placement(*, device: str = "") -> dict[str, Any]:
    """Device of a batch that is not kept."""
    return {"device": _options.text("device", device)}


def factorize_and_solve(
    matrices: Any, b: Iterable[Any], members: Iterable[int] | None, **options: Any
) -> Call[tuple[BatchRecord, BatchSolution]]:
    """FactorizeAndSolveBatch without a cached factor."""
    call, where, how = distribute(options, call_options, placement, batch_solve_options)
    arrays, dtype = members_of(matrices)
    shapes = shapes_of(arrays)
    places = Places(shapes, dtype.itemsize)
    sides = _Sides(shapes, dtype, b, members)
    header = service.FactorizeAndSolveBatchHeader(
        systems=len(sides),
        rhs_value_bytes=sides.places.size,
        **placement(**where),
        **batch_solve_options(**how),
    )
    declare(header.batch, places, dtype)
    return Call(
        "FactorizeAndSolveBatch",
        service.FactorizeAndSolveBatchRequest(header=header).SerializeToString(),
        lambda: BothReply(FactorReply(shapes), sides.reply(SOLUTION_DATA)),
        payloads=(
            (DATA, _payload.pieces_of([shapes, values_of(arrays, places, dtype)])),
            (_RHS_DATA, sides.pieces()),
        ),
        **call_options(**call),
    )


def get_member(record: BatchRecord, member: int) -> Call[MemberFactors]:
    """GetBatchFactors for one member."""
    k = integer("member", member)
    if not 0 <= k < len(record.shapes):
        raise InvalidRequest(f"member {k} of a batch of {len(record.shapes)}: they count from 0")
    rows, cols = record.shapes[k].tolist()
    dtype = record.factor.dtype.newbyteorder("<")
    request = service.GetBatchFactorsRequest(handle=record.factor.handle, first=k, count=1)
    return Call("GetBatchFactors", request.SerializeToString(), lambda: MemberReply(rows, cols, dtype))
