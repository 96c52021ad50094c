# SPDX-License-Identifier: Apache-2.0
"""Downloaded sparse factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _wire
from crout._factor_record import SlogDet, known_determinant
from crout._lu import determinant
from crout._replies import checked_record, parse
from crout.errors import CroutError, InvalidRequest, ProtocolError
from crout.results import FactorRecord
from crout.v1 import factorization_service_pb2 as service
from crout.v1 import matrix_pb2

Array = npt.NDArray[Any]

_DATA = 2
_TYPES = {
    matrix_pb2.DTYPE_FLOAT32: np.float32,
    matrix_pb2.DTYPE_FLOAT64: np.float64,
    matrix_pb2.DTYPE_COMPLEX64: np.complex64,
    matrix_pb2.DTYPE_COMPLEX128: np.complex128,
}


@dataclass(frozen=True, eq=False)
class SparseFactors:
    """L and U of a sparse factor.

    With R and C the diagonal matrices of the scales, L U = ``(R @ A @ C)[perm_r][:, perm_c]``, except for
    perturbed pivots.

    Attributes
    ----------
    L, U : scipy.sparse.csr_matrix, shape (n, n)
        L has ones on its diagonal. Zeros within dense blocks are stored.
    perm_r, perm_c : ndarray of int, shape (n,)
        The row and the column of A for each row and column of L U. 0-based.
    row_scales, col_scales : ndarray, shape (n,)
        The diagonals of R and C; ones if A was not scaled.
    record : FactorRecord
        Record of the downloaded version.
    """

    L: Any
    U: Any
    perm_r: Array
    perm_c: Array
    row_scales: Array
    col_scales: Array
    record: FactorRecord

    def slogdet(self) -> SlogDet:
        """The determinant of A.

        Raises
        ------
        InvalidRequest
            Pivots were perturbed (``record.sparse.perturbed_pivots``); the determinant would belong to
            another matrix.
        """
        known = known_determinant(self.record)
        if known is not None:
            return known
        if self.record.sparse is not None and self.record.sparse.perturbed_pivots > 0:
            scaled = self.record.row_scaled or self.record.col_scaled
            raise InvalidRequest(
                f"{self.record.sparse.perturbed_pivots} pivots of this factor were made larger, and so its "
                "determinant is that of another matrix: factor A by a dense method"
                + ("" if scaled else ", or with equilibrate=True")
            )
        sign = _sign(self.perm_r) * _sign(self.perm_c)
        return determinant(self.U.diagonal(), sign, self.row_scales, self.col_scales)


def _sign(permutation: Array) -> int:
    """The sign of the permutation, 1 or -1, from its numbers of elements and cycles."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(permutation)
    edges = csr_array((np.ones(n, np.int8), (np.arange(n), permutation)), (n, n))
    cycles = connected_components(edges, directed=False, return_labels=False)
    return -1 if (n - int(cycles)) % 2 else 1


class SparseFactorsReply:
    """Reply of GetFactors with `take_sparse`."""

    repeatable = True

    def __init__(self, n: int) -> None:
        self._n = n
        self._header: service.GetFactorsHeader | None = None
        self._data = bytearray()
        self._at = 0

    def feed(self, message: bytes) -> None:
        """See `Reply`."""
        rest, pieces = _wire.split(message, _DATA)
        response = parse(service.GetFactorsResponse, rest)
        if response.HasField("header"):
            self._header = response.header
        for piece in pieces:
            self._data += piece

    def finish(self) -> SparseFactors:
        """See `Reply`."""
        header, n = self._header, self._n
        if header is None or not header.HasField("sparse"):
            raise ProtocolError("the server sent no header of a sparse factor")
        lower = self._rows(header.sparse.lower, unit_diagonal=True)
        upper = self._rows(header.sparse.upper, unit_diagonal=False)
        rows, columns = self._permutation(), self._permutation()
        scales = [self._scales() if header.sparse.scaled else np.ones(n) for _ in range(2)]
        if self._at != len(self._data):
            raise ProtocolError("the server sent more data than it announced")
        return SparseFactors(
            L=lower,
            U=upper,
            perm_r=rows,
            perm_c=columns,
            row_scales=scales[0],
            col_scales=scales[1],
            record=checked_record(header.factor, n),
        )

    def _take(self, dtype: Any, count: int) -> Array:
        size = count * np.dtype(dtype).itemsize
        if count < 0 or self._at + size > len(self._data):
            raise ProtocolError("the server sent less data than it announced")
        array: Array = np.frombuffer(self._data, np.uint8, size, self._at).copy().view(dtype)
        self._at += size
        return array

    def _rows(self, spec: matrix_pb2.SparseSpec, unit_diagonal: bool) -> Any:
        import scipy.sparse

        n, index = self._n, {4: np.int32, 8: np.int64}.get(spec.index_bytes)
        square = spec.rows == n and spec.cols == n
        compressed = spec.format == matrix_pb2.SPARSE_FORMAT_COMPRESSED_ROWS
        if not square or not compressed or index is None or spec.dtype not in _TYPES:
            raise ProtocolError("the server sent a factor of another kind")
        starts, columns = self._take(index, n + 1), self._take(index, spec.entries)
        values = self._take(_TYPES[spec.dtype], spec.entries)
        if starts[0] != 0 or starts[-1] != spec.entries or (np.diff(starts) < 0).any():
            raise ProtocolError("the server sent impossible rows")
        if ((columns < 0) | (columns >= n)).any():
            raise ProtocolError("the server sent entries beyond the matrix")
        if unit_diagonal:  # last in its row; a sum would drop stored zeros
            columns = np.insert(columns, starts[1:], np.arange(n, dtype=index))
            values = np.insert(values, starts[1:], 1)
            starts = starts + np.arange(n + 1, dtype=index)
        return scipy.sparse.csr_matrix((values, columns, starts), (n, n))

    def _permutation(self) -> Array:
        order = self._take(np.int32, self._n).astype(np.intp)
        if not np.array_equal(np.sort(order), np.arange(self._n)):
            raise ProtocolError("the server sent no permutation")
        return order

    def _scales(self) -> Array:
        scales = self._take(np.float64, self._n)
        if not (np.isfinite(scales) & (scales > 0)).all():
            raise ProtocolError("the server sent impossible scales")
        return scales

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""
