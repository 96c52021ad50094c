# SPDX-License-Identifier: Apache-2.0
"""Arrays of scipy.sparse matrices in the forms of the contract."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crout.errors import InvalidRequest

Array = npt.NDArray[Any]

_BLOCK = 1 << 20  # positions hashed at once


def is_sparse(value: Any) -> bool:
    """Whether `value` is a scipy.sparse matrix; false if SciPy is not loaded."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def entries(value: Any) -> tuple[bool, list[Array], Array]:
    """Whether the form is compressed rows; then [indptr, indices] or [row, col], and the values.

    Stored zeros are kept. Spare capacity after the last entry is omitted.
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


def by_columns(value: Any) -> Any:
    """The matrix as compressed columns without duplicates; stored zeros are kept."""
    compressed, (first, second), data = entries(value)
    sparse = sys.modules["scipy.sparse"]
    columns = (
        sparse.csr_matrix((data, second, first), value.shape)
        if compressed
        else sparse.coo_matrix((data, (first, second)), value.shape)
    ).tocsc()
    columns.sum_duplicates()
    return columns


def pattern_digest(columns: Any) -> str:
    """SparseInfo.pattern_digest of a square matrix from `by_columns`."""
    n = columns.shape[0]
    hashes = (_split_mix(i + j * np.uint64(n)) for j, i in _compressed(columns.indptr, columns.indices))
    return _digest(n, hashes)


def entry_digest(by_rows: bool, indices: Sequence[Array], n: int) -> str:
    """SeriesResult.entry_digest of the first two values of `entries`, for a square matrix of order n."""
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
    """Blocks of positions of compressed lines: for each position its line, and its index in the line."""
    for begin in range(0, len(indices), _BLOCK):
        end = min(begin + _BLOCK, len(indices))
        line = np.searchsorted(starts, np.arange(begin, end), side="right") - 1
        yield line.astype(np.uint64), indices[begin:end].astype(np.uint64)


def _coordinates(row: Array, col: Array) -> Iterator[tuple[Array, Array]]:
    for begin in range(0, len(row), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        yield row[block].astype(np.uint64), col[block].astype(np.uint64)


def _split_mix(x: Array) -> Array:
    """The output of splitmix64 in each state, modulo 2^64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def _diagonals(value: Any) -> Sequence[Array]:
    """Rows, columns and values of a dia matrix. SciPy's own conversion drops stored zeros."""
    rows, cols = value.shape
    data = value.data[:, :cols]
    col = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    row = col - value.offsets.astype(np.int64)[:, np.newaxis]
    inside = (row >= 0) & (row < rows)
    index = np.int32 if max(rows, cols) < 2**31 else np.int64
    return row[inside].astype(index), col[inside].astype(index), data[inside]


def _without_spare(value: Any) -> Any:
    """A compressed matrix without spare capacity after the last entry."""
    count = int(value.indptr[-1])
    if count == len(value.data) == len(value.indices):
        return value
    return type(value)((value.data[:count], value.indices[:count], value.indptr), shape=value.shape)
