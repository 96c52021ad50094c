# SPDX-License-Identifier: Apache-2.0
"""Conversion of matrices, dense or sparse, from memory or files, to a MatrixSpec and bytes."""

from __future__ import annotations

import gzip
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout._device import DeviceView, view_of
from crout.errors import InvalidRequest
from crout.v1 import matrix_pb2

Array = npt.NDArray[Any]

Bytes = bytes | memoryview


@dataclass(frozen=True)
class Opener:
    """The bytes of a payload. A call returns an iterator over them, in pieces.

    Attributes
    ----------
    pieces : callable
        Returns the iterator.
    size : int
        Number of bytes; -1 if unknown.
    arrays : tuple of ndarray
        The contiguous arrays that the bytes are read from; empty if there are none.
    view : DeviceView or None
        The array in GPU memory that the bytes are read from.
    """

    pieces: Callable[[], Iterator[Bytes]]
    size: int = -1
    arrays: tuple[Array, ...] = ()
    view: DeviceView | None = None

    def __call__(self) -> Iterator[Bytes]:
        """Return an iterator over the bytes from the start."""
        return self.pieces()


CHUNK = 1 << 20
"""Largest payload of a message, as factorization_service.proto advises."""

DTYPES = {
    "f4": matrix_pb2.DTYPE_FLOAT32,
    "f8": matrix_pb2.DTYPE_FLOAT64,
    "c8": matrix_pb2.DTYPE_COMPLEX64,
    "c16": matrix_pb2.DTYPE_COMPLEX128,
}
_LITTLE_DTYPES = frozenset("<" + name for name in DTYPES)
_DLPACK_CPU = 1
_HASH_BLOCK = 1 << 20  # positions hashed at once

_NPZ_MAGIC = b"PK"  # start of zip files
# Exceptions of NumPy and SciPy for archives that are truncated, inconsistent, or of another format.
_NPZ_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Payload:
    """A matrix or a batch to send.

    Attributes
    ----------
    spec : MatrixSpec
        Specification for the header.
    dtype : numpy.dtype
        Type of the elements on the server.
    shape : tuple of int, or None
        Rows and columns; None for a batch, and for a file, whose text contains them.
    open : Opener
        Returns the bytes from the start, in pieces. For a dense matrix these are views of the caller's
        memory.
    """

    spec: matrix_pb2.MatrixSpec
    dtype: np.dtype[Any]
    shape: tuple[int, int] | None
    open: Opener


def dtype_code(dtype: npt.DTypeLike) -> matrix_pb2.Dtype:
    """Convert a NumPy type to a Dtype value. Raises InvalidRequest if it is not one of the four types."""
    code = DTYPES.get(np.dtype(dtype).str[1:])
    if code is None:
        raise InvalidRequest(
            f"the type {np.dtype(dtype)} is not supported: use float32, float64, complex64 or complex128"
        )
    return code


def numpy_dtype(code: int) -> np.dtype[Any]:
    """Convert a Dtype value to a little-endian NumPy type; float64 for DTYPE_UNSPECIFIED."""
    for name, known in DTYPES.items():
        if known == code:
            return np.dtype("<" + name)
    return np.dtype("<f8")


def as_array(value: Any) -> Array:
    """Convert `value` to an array in host memory, without a copy if its memory can be shared.

    Accepts NumPy arrays, objects with DLPack (PyTorch, CuPy, JAX, ...; copied from a GPU), and everything
    that `numpy.asarray` accepts. Raises InvalidRequest for masked arrays.
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
    if hasattr(value, "__array__"):  # JAX
        return np.asarray(value)
    raise InvalidRequest(f"{type(value).__name__} is not in host memory: copy it there first")


def as_elements(array: Array) -> Array:
    """Convert `array` to a little-endian type that can be sent; a copy only if it has another type.

    Integers and booleans become float64; 64-bit integers may be rounded. float16 becomes float32. Raises
    InvalidRequest for all other types.
    """
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "iub":
        return array.astype("<f8")
    if kind == "f" and size == 2:
        return array.astype("<f4")
    if array.dtype.str[1:] not in DTYPES:
        raise InvalidRequest(f"arrays of {array.dtype} cannot be sent: convert them to float64 or complex128")
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def matrix(value: Any) -> Payload:
    """Convert a matrix: a two-dimensional array, a scipy.sparse matrix, or the path of a file.

    Files are Matrix Market texts or archives of `scipy.sparse.save_npz`. A Payload is returned unchanged;
    it may generate its matrix while it is sent. Raises InvalidRequest, and OSError for a file.
    """
    if isinstance(value, Payload):
        return value
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        if not _is_npz(path):
            return _file(path)
        value = _load_npz(path)
    if is_sparse(value):
        return _sparse(value)
    view = view_of(value)
    if view is not None and len(view.shape) == 2 and can_send(view):
        return device_dense(view)
    array = as_array(value)
    if array.ndim != 2:
        raise InvalidRequest(
            f"a matrix has two dimensions, this array has {array.ndim}: use A.reshape(rows, columns)"
        )
    return dense(as_elements(array))


def path_of(value: Any) -> str:
    """Return `value` if it is a path; otherwise ""."""
    return str(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else ""


def square(value: Any) -> Payload:
    """Like `matrix`. Raises InvalidRequest if the shape is known and not square."""
    return _as_square(matrix(value))


def square_values(value: Any) -> Payload:
    """Like `sparse_values`. Raises InvalidRequest if the shape is known and not square."""
    return _as_square(sparse_values(value))


def _as_square(payload: Payload) -> Payload:
    if payload.shape is not None and payload.shape[0] != payload.shape[1]:
        raise InvalidRequest(f"the matrix is {payload.shape[0]} x {payload.shape[1]}: give a square matrix")
    return payload


def dense(array: Array) -> Payload:
    """Convert a matrix from `as_elements`. Contiguous arrays of either order are not copied."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    rows, cols = array.shape
    spec = _dense_spec(rows, cols, array.dtype, array.flags.c_contiguous)
    return Payload(spec, array.dtype, (rows, cols), pieces_of([array]))


def _dense_spec(rows: int, cols: int, dtype: np.dtype[Any], row_major: bool) -> matrix_pb2.MatrixSpec:
    return matrix_pb2.MatrixSpec(
        dense=matrix_pb2.DenseSpec(
            dtype=dtype_code(dtype),
            layout=matrix_pb2.LAYOUT_ROW_MAJOR if row_major else matrix_pb2.LAYOUT_COLUMN_MAJOR,
            rows=rows,
            cols=cols,
        )
    )


def can_send(view: DeviceView) -> bool:
    """Whether an array in GPU memory can be sent as it is: contiguous, and of one of the four types."""
    return view.order != "" and view.dtype is not None and view.dtype.str in _LITTLE_DTYPES


def device_dense(view: DeviceView) -> Payload:
    """Convert an array in GPU memory for which `can_send` is true. A vector becomes one column."""
    rows, cols = view.shape if len(view.shape) == 2 else (*view.shape, 1)
    assert view.dtype is not None
    spec = _dense_spec(rows, cols, view.dtype, view.order == "C")
    return Payload(spec, view.dtype, (rows, cols), Opener(view.pieces, view.nbytes, view=view))


def pieces_of(arrays: Sequence[Array]) -> Opener:
    """Return an Opener of the concatenated bytes of contiguous arrays."""

    def pieces() -> Iterator[Bytes]:
        for array in arrays:
            memory = array.ravel(order="K").view(np.uint8).data
            for start in range(0, len(memory), CHUNK):
                yield memory[start : start + CHUNK]

    return Opener(pieces, sum(array.nbytes for array in arrays), tuple(arrays))


def _text(dtype: np.dtype[Any]) -> matrix_pb2.MatrixSpec:
    return matrix_pb2.MatrixSpec(matrix_market=matrix_pb2.MatrixMarketSpec(dtype=dtype_code(dtype)))


def _sparse(value: Any) -> Payload:
    """Convert a scipy.sparse matrix. "csr" is sent as it is; other formats become coordinates."""
    by_rows, indices, values = sparse_entries(value)
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
    """Convert the values of a scipy.sparse matrix, in the order of compressed columns, with its pattern."""
    if isinstance(value, Payload):
        return value
    if isinstance(value, (str, os.PathLike)) and _is_npz(os.fspath(value)):
        value = _load_npz(os.fspath(value))
    if not is_sparse(value):
        raise InvalidRequest("values_only=True needs a scipy.sparse matrix: send other matrices in full")
    columns = _by_columns(value)
    data = as_elements(columns.data)
    spec = matrix_pb2.MatrixSpec(
        values=matrix_pb2.SparseValuesSpec(
            dtype=dtype_code(data.dtype),
            entries=len(data),
            pattern_digest=pattern_digest(columns),
        )
    )
    return Payload(spec, data.dtype, value.shape, pieces_of([np.ascontiguousarray(data)]))


def _file(path: str) -> Payload:
    size = os.stat(path).st_size  # raises OSError for an invalid path before any call

    def pieces() -> Iterator[Bytes]:
        with open(path, "rb") as file:
            while piece := file.read(CHUNK):
                yield piece

    dtype = np.dtype("<c16" if _is_complex_file(path) else "<f8")
    return Payload(_text(dtype), dtype, None, Opener(pieces, size))


def _is_complex_file(path: str) -> bool:
    """Whether the banner of a Matrix Market file, plain or gzip, names the field complex."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if compressed else open(path, "rb") as text:
            banner = text.readline(1024).lower().split()
    except (OSError, EOFError):
        return False  # an unusable text; the server reports the error
    return len(banner) > 3 and banner[3] == b"complex"


def is_sparse(value: Any) -> bool:
    """Whether `value` is a scipy.sparse matrix; false if SciPy is not loaded."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def sparse_entries(value: Any) -> tuple[bool, list[Array], Array]:
    """Return the entries of a scipy.sparse matrix, in the order of its data, with stored zeros.

    Returns
    -------
    by_rows : bool
        Whether the form is compressed rows.
    indices : list of ndarray
        [indptr, indices] for compressed rows; otherwise [row, col]. 0-based.
    values : ndarray
        Without spare capacity after the last entry.

    Raises
    ------
    InvalidRequest
        `value` does not have two dimensions.
    """
    if len(value.shape) != 2:
        raise InvalidRequest(
            f"a matrix has two dimensions, this sparse array has {len(value.shape)}: "
            "use A.reshape(rows, columns)"
        )
    if value.format == "dia":
        row, col, data = _diagonals(value)
        return False, [row, col], data
    if value.format in ("csr", "csc", "bsr"):
        value = _without_spare(value)
    if value.format == "csr":
        return True, [value.indptr, value.indices], value.data
    value = value.tocoo()
    return False, [value.row, value.col], value.data


def _by_columns(value: Any) -> Any:
    """Convert a matrix to compressed columns without duplicates; stored zeros stay."""
    compressed, (first, second), data = sparse_entries(value)
    sparse = sys.modules["scipy.sparse"]
    columns = (
        sparse.csr_matrix((data, second, first), value.shape)
        if compressed
        else sparse.coo_matrix((data, (first, second)), value.shape)
    ).tocsc()
    columns.sum_duplicates()
    return columns


def pattern_digest(columns: Any) -> str:
    """Compute SparseInfo.pattern_digest of a square matrix from `_by_columns`."""
    n = columns.shape[0]
    hashes = (_split_mix(i + j * np.uint64(n)) for j, i in _compressed(columns.indptr, columns.indices))
    return _digest(n, hashes)


def entry_digest(by_rows: bool, indices: Sequence[Array], n: int) -> str:
    """Compute SeriesResult.entry_digest of a matrix of order n, from the result of `sparse_entries`."""
    pairs = _compressed(*indices) if by_rows else _coordinates(*indices)

    def hashes() -> Iterator[Array]:
        begin = 0
        for i, j in pairs:
            line = np.arange(begin, begin + len(i), dtype=np.uint64)
            begin += len(i)
            yield _split_mix(_split_mix(i + j * np.uint64(n)) + line)

    return _digest(n, hashes())


def _digest(n: int, hashes: Iterator[Array]) -> str:
    total = int(_split_mix(np.array([n], np.uint64))[0])
    total += sum(int(block.sum(dtype=np.uint64)) for block in hashes)
    return f"{total % 2**64:016x}"


def _compressed(starts: Array, indices: Array) -> Iterator[tuple[Array, Array]]:
    """Generate blocks of the positions in compressed rows (columns): the row (column) and its index."""
    for begin in range(0, len(indices), _HASH_BLOCK):
        end = min(begin + _HASH_BLOCK, len(indices))
        line = np.searchsorted(starts, np.arange(begin, end), side="right") - 1
        yield line.astype(np.uint64), indices[begin:end].astype(np.uint64)


def _coordinates(row: Array, col: Array) -> Iterator[tuple[Array, Array]]:
    for begin in range(0, len(row), _HASH_BLOCK):
        block = slice(begin, begin + _HASH_BLOCK)
        yield row[block].astype(np.uint64), col[block].astype(np.uint64)


def _split_mix(x: Array) -> Array:
    """Compute the output of splitmix64 for each state, modulo 2^64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def _diagonals(value: Any) -> Sequence[Array]:
    """Return the rows, columns and values of a dia matrix. SciPy's own conversion drops stored zeros."""
    rows, cols = value.shape
    data = value.data[:, :cols]
    col = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    row = col - value.offsets.astype(np.int64)[:, np.newaxis]
    inside = (row >= 0) & (row < rows)
    index = np.int32 if max(rows, cols) < 2**31 else np.int64
    return row[inside].astype(index), col[inside].astype(index), data[inside]


def _without_spare(value: Any) -> Any:
    """Return a compressed matrix without spare capacity after the last entry."""
    count = int(value.indptr[-1])
    if count == len(value.data) == len(value.indices):
        return value
    return type(value)((value.data[:count], value.indices[:count], value.indptr), shape=value.shape)


def dense_of_file(path: str) -> Array:
    """Load a matrix from an archive of `scipy.sparse.save_npz` as a dense array. Raises InvalidRequest."""
    if not _is_npz(path):
        raise InvalidRequest(
            f"{path} is not an archive of scipy.sparse.save_npz: read it first, for example by "
            "scipy.io.mmread, and give an array"
        )
    array: Array = _load_npz(path).toarray()
    return array


def _is_npz(path: str) -> bool:
    """Whether the file is a zip archive, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(len(_NPZ_MAGIC)) == _NPZ_MAGIC


def _load_npz(path: str) -> Any:
    """Load a scipy.sparse matrix from an archive and check its indices. Raises InvalidRequest."""
    try:
        from scipy import sparse
    except ImportError:
        raise InvalidRequest(
            f"{path} is an .npz archive, and SciPy is not installed: install SciPy to read it"
        ) from None
    if not zipfile.is_zipfile(path):  # NumPy would report the error again from a destructor
        raise InvalidRequest(f"{path} is not an archive of scipy.sparse.save_npz: it is damaged or truncated")
    try:
        value = sparse.load_npz(path)
        if value.format in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)  # SciPy's conversions do not check indices
    except _NPZ_ERRORS as error:
        raise InvalidRequest(f"{path} is not an archive of scipy.sparse.save_npz: {error}") from error
    return value
