# SPDX-License-Identifier: Apache-2.0
"""Conversion of matrices of all kinds to a specification and bytes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _sparse_arrays
from crout._npz import is_archive, load
from crout._sparse_arrays import is_sparse
from crout.errors import InvalidRequest
from crout.v1 import matrix_pb2

Array = npt.NDArray[Any]
Bytes = bytes | memoryview
Opener = Callable[[], Iterator[Bytes]]
"""The bytes from the start, in pieces."""

CHUNK = 1 << 20
"""Most payload bytes of a message, as the contract advises."""

_DTYPES = {
    "f4": matrix_pb2.DTYPE_FLOAT32,
    "f8": matrix_pb2.DTYPE_FLOAT64,
    "c8": matrix_pb2.DTYPE_COMPLEX64,
    "c16": matrix_pb2.DTYPE_COMPLEX128,
}
_DLPACK_CPU = 1


@dataclass(frozen=True)
class Payload:
    """A matrix to send.

    Attributes
    ----------
    spec : MatrixSpec
        Specification for the header.
    dtype : numpy.dtype
        Type of the elements on the server.
    shape : tuple of int, or None
        Rows and columns; None if only the text contains them.
    open : callable
        Returns the bytes from the start, in pieces; views of the caller's memory for a dense matrix.
    """

    spec: matrix_pb2.MatrixSpec
    dtype: np.dtype[Any]
    shape: tuple[int, int] | None
    open: Opener


def dtype_code(dtype: npt.DTypeLike) -> matrix_pb2.Dtype:
    """The contract's value of a NumPy type.

    This includes complex types; the server decides whether it supports them.
    """
    code = _DTYPES.get(np.dtype(dtype).str[1:])
    if code is None:
        raise InvalidRequest(
            f"no factors of type {np.dtype(dtype)}: use float32, float64, complex64 or complex128"
        )
    return code


def numpy_dtype(code: int) -> np.dtype[Any]:
    """The little-endian NumPy type of a Dtype value; 0 is float64."""
    for name, known in _DTYPES.items():
        if known == code:
            return np.dtype("<" + name)
    return np.dtype("<f8")


def as_array(value: Any) -> Array:
    """`value` as an array in host memory, without a copy if it can be shared.

    Accepts NumPy arrays, objects with DLPack (PyTorch, CuPy, JAX, ...; copied from a GPU), and everything
    that `numpy.asarray` accepts.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidRequest(
            "masked arrays are not supported: pass a.filled(...), or a.data to ignore the mask"
        )
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if value.__dlpack_device__()[0] != _DLPACK_CPU:
        value = _to_host(value)
        if isinstance(value, np.ndarray):
            return value
    if hasattr(value, "detach"):  # PyTorch does not export tensors that require gradients.
        value = value.detach()
    return np.from_dlpack(value)


def _to_host(value: Any) -> Any:
    for method in ("get", "cpu"):  # methods of CuPy and PyTorch
        if hasattr(value, method):
            return getattr(value, method)()
    raise InvalidRequest(f"{type(value).__name__} is not in host memory: copy it there first")


def as_elements(array: Array) -> Array:
    """`array` in a little-endian type of the contract; a copy only if it has another type.

    Integers and booleans become float64, float16 becomes float32, with rounding only where necessary.
    """
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "iub":
        return array.astype("<f8")
    if kind == "f" and size == 2:
        return array.astype("<f4")
    if array.dtype.str[1:] not in _DTYPES:
        raise InvalidRequest(f"arrays of {array.dtype} cannot be sent: convert to float64 first")
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def matrix(value: Any) -> Payload:
    """A matrix: two-dimensional array, scipy.sparse matrix, or path of a file.

    Files are Matrix Market, or archives of `scipy.sparse.save_npz`. A Payload is returned unchanged; it
    may generate its matrix while it is sent.
    """
    if isinstance(value, Payload):
        return value
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        if not is_archive(path):
            return _file(path)
        value = load(path)
    if is_sparse(value):
        return _sparse(value)
    array = as_array(value)
    if array.ndim != 2:
        raise InvalidRequest(
            f"a matrix has two dimensions, this array has {array.ndim}: use A.reshape(rows, columns)"
        )
    return dense(as_elements(array))


def path_of(value: Any) -> str:
    """The path, if `value` is one; otherwise ""."""
    return str(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else ""


def square(value: Any) -> Payload:
    """Like `matrix`, but refuses a matrix that is not square, if its shape is known."""
    return _as_square(matrix(value))


def square_values(value: Any) -> Payload:
    """Like `sparse_values`, but refuses a matrix that is not square, if its shape is known."""
    return _as_square(sparse_values(value))


def _as_square(payload: Payload) -> Payload:
    if payload.shape is not None and payload.shape[0] != payload.shape[1]:
        raise InvalidRequest(f"the matrix is {payload.shape[0]} x {payload.shape[1]}, not square")
    return payload


def dense(array: Array) -> Payload:
    """An array from `as_elements`; both storage orders are sent unchanged."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    row_major = array.flags.c_contiguous
    rows, cols = array.shape
    spec = matrix_pb2.MatrixSpec(
        dense=matrix_pb2.DenseSpec(
            dtype=dtype_code(array.dtype),
            layout=matrix_pb2.LAYOUT_ROW_MAJOR if row_major else matrix_pb2.LAYOUT_COLUMN_MAJOR,
            rows=rows,
            cols=cols,
        )
    )
    return Payload(spec, array.dtype, (rows, cols), pieces_of([array]))


def pieces_of(arrays: Sequence[Array]) -> Opener:
    """The bytes of contiguous arrays, concatenated."""

    def pieces() -> Iterator[Bytes]:
        for array in arrays:
            memory = array.ravel(order="K").view(np.uint8).data
            for start in range(0, len(memory), CHUNK):
                yield memory[start : start + CHUNK]

    return pieces


def _text(dtype: np.dtype[Any]) -> matrix_pb2.MatrixSpec:
    return matrix_pb2.MatrixSpec(matrix_market=matrix_pb2.MatrixMarketSpec(dtype=dtype_code(dtype)))


def _sparse(value: Any) -> Payload:
    """Compressed rows unchanged; other formats as coordinates, in the order of their data."""
    by_rows, indices, values = _sparse_arrays.entries(value)
    rows, cols = value.shape
    data = as_elements(values)
    wide = any(index.dtype.itemsize == 8 for index in indices)
    index_dtype = np.dtype("<i8" if wide else "<i4")
    arrays = [np.ascontiguousarray(index, dtype=index_dtype) for index in indices]
    spec = matrix_pb2.MatrixSpec(
        sparse=matrix_pb2.SparseSpec(
            dtype=dtype_code(data.dtype),
            format=(
                matrix_pb2.SPARSE_FORMAT_COMPRESSED_ROWS if by_rows else matrix_pb2.SPARSE_FORMAT_COORDINATE
            ),
            rows=rows,
            cols=cols,
            entries=len(data),
            index_bytes=index_dtype.itemsize,
        )
    )
    return Payload(spec, data.dtype, (rows, cols), pieces_of([*arrays, np.ascontiguousarray(data)]))


def sparse_values(value: Any) -> Payload:
    """The values of a scipy.sparse matrix in the order of compressed columns, and its pattern."""
    if isinstance(value, Payload):
        return value
    if isinstance(value, (str, os.PathLike)) and is_archive(os.fspath(value)):
        value = load(os.fspath(value))
    if not is_sparse(value):
        raise InvalidRequest("values_only is for a matrix of scipy.sparse: send others in full")
    columns = _sparse_arrays.by_columns(value)
    data = as_elements(columns.data)
    spec = matrix_pb2.MatrixSpec(
        values=matrix_pb2.SparseValuesSpec(
            dtype=dtype_code(data.dtype),
            entries=len(data),
            pattern_digest=_sparse_arrays.pattern_digest(columns),
        )
    )
    return Payload(spec, data.dtype, value.shape, pieces_of([np.ascontiguousarray(data)]))


def _file(path: str) -> Payload:
    os.stat(path)  # raises the error of an invalid path before any call

    def pieces() -> Iterator[Bytes]:
        with open(path, "rb") as file:
            while piece := file.read(CHUNK):
                yield piece

    dtype = np.dtype("<c16" if _is_complex_file(path) else "<f8")
    return Payload(_text(dtype), dtype, None, pieces)


def _is_complex_file(path: str) -> bool:
    """Whether the banner of a Matrix Market file, plain or gzip, names the field complex."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if compressed else open(path, "rb") as text:
            banner = text.readline(1024).lower().split()
    except (OSError, EOFError):
        return False  # not a usable text: the server reports the error
    return len(banner) > 3 and banner[3] == b"complex"
