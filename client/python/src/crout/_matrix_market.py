"""Matrix Market text of a sparse matrix, which is how the server takes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

# Some 600 KB of text: below the size of a message, whatever the numbers.
_ENTRIES = 1 << 14


def coordinate_text(
    shape: tuple[int, int], row: npt.NDArray[Any], col: npt.NDArray[Any], data: npt.NDArray[Any]
) -> Iterator[bytes]:
    """The text, in pieces; each number is the shortest that reads back as the same bits.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    row, col : ndarray of int, shape (nnz,)
        Positions, 0-based; the server sums those that repeat.
    data : ndarray of float or complex, shape (nnz,)
        The entries there.
    """
    is_complex = data.dtype.kind == "c"
    field = "complex" if is_complex else "real"
    yield f"%%MatrixMarket matrix coordinate {field} general\n{shape[0]} {shape[1]} {len(data)}\n".encode()
    line = ("%d %d %r %r\n" if is_complex else "%d %d %r\n").__mod__
    for start in range(0, len(data), _ENTRIES):
        part = slice(start, start + _ENTRIES)
        columns = [(row[part] + 1).tolist(), (col[part] + 1).tolist()]
        if is_complex:
            columns += [data[part].real.tolist(), data[part].imag.tolist()]
        else:
            columns.append(data[part].tolist())
        yield "".join(map(line, zip(*columns, strict=True))).encode()
