# SPDX-License-Identifier: Apache-2.0
"""Layout of the members of a batch on the wire, and its declaration in the header."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _payload
from crout.errors import InvalidRequest
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]

_ALIGNMENT = 16  # bytes; every member starts at a multiple
_MAX_ELEMENTS = 1 << 24  # largest dense form of a sparse member


def aligned(size: int) -> int:
    """The first position for a member after `size` bytes."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Places:
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
            "factor it by itself, lu_factor keeps it sparse"
        )
    return _payload.as_array(matrix.toarray())


def members_of(matrices: Any) -> tuple[list[Array], np.dtype[Any]]:
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


def shapes_of(arrays: Sequence[Array]) -> Array:
    """The pairs of sizes, as they are sent."""
    return np.array([array.shape for array in arrays], "<i8").reshape(len(arrays), 2)


def values_of(arrays: Sequence[Array], places: Places, dtype: np.dtype[Any]) -> Array:
    """The members in column-major order, at the positions of `places`."""
    memory = np.zeros(places.size, np.uint8)
    for array, begin in zip(arrays, places.begins.tolist(), strict=True):
        end = begin + array.size * dtype.itemsize
        memory[begin:end].view(dtype)[:] = array.ravel(order="F")
    return memory


def declare(spec: service.BatchSpec, places: Places, dtype: np.dtype[Any]) -> None:
    """Declare the batch in a header."""
    spec.dtype = _payload.dtype_code(dtype)
    spec.members = len(places.shapes)
    spec.max_rows, spec.max_cols = places.shapes.max(axis=0, initial=0).tolist()
    spec.total_rows, spec.total_cols = places.shapes.sum(axis=0).tolist()
    spec.value_bytes = places.size
