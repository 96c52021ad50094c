# SPDX-License-Identifier: Apache-2.0
"""Calls that refer to a factor by its handle, lists of factors, estimates and server information."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from crout import _messages, _wire
from crout._call import Call, Reply, RetryClass
from crout._linalg import PackedFactors, SparseFactors, sparse_factors
from crout._messages import convert, parse
from crout._options import Lease, distribute, duration, factorize_options, integer, text
from crout._payload import DTYPES, dtype_code, numpy_dtype
from crout._replies import FACTORS_DATA, Target, checked_record
from crout.errors import HandleExpired, InvalidRequest, ProtocolError, Singular
from crout.records import FactorPage, FactorRecord, ServerInfo
from crout.results import Estimate
from crout.v1 import factorization_service_pb2 as service
from crout.v1 import matrix_pb2

Array = npt.NDArray[Any]
T = TypeVar("T")

_HANDLE = re.compile("[a-z2-7]{26}")


def checked_handle(handle: str) -> str:
    """Return `handle`. Raises HandleExpired if it does not have the form of a handle."""
    if handle and _HANDLE.fullmatch(text("handle", handle)) is None:
        raise HandleExpired(
            f"{handle!r} is not a handle, which has 26 characters of a-z and 2-7. For the factors with this "
            f"name, newest first, use list({handle!r})"
        )
    return handle


def describe(handle: str) -> Call[FactorRecord]:
    """Build DescribeFactor."""
    return _unary(
        "DescribeFactor",
        service.DescribeFactorRequest(handle=text("handle", handle)),
        service.DescribeFactorResponse,
        lambda response: _messages.factor_record(response.factor),
    )


def get_iterations(handle: str, page_token: str) -> Call[service.IterationPage]:
    """Build DescribeFactor with one page of counts."""
    request = service.DescribeFactorRequest(
        handle=handle, iterations=service.IterationPageRequest(page_token=page_token)
    )
    return _unary(
        "DescribeFactor", request, service.DescribeFactorResponse, lambda response: response.iterations
    )


def renew(handle: str, lease: Lease | None) -> Call[datetime.datetime]:
    """Build RenewLease."""
    request = service.RenewLeaseRequest(
        handle=text("handle", handle), lease=None if lease is None else duration(lease)
    )
    return _unary("RenewLease", request, service.RenewLeaseResponse, _messages.lease_end)


def pin(handle: str, pinned: bool) -> Call[datetime.datetime]:
    """Build RenewLease that pins or unpins, and leaves the length of the lease unchanged."""
    request = service.RenewLeaseRequest(handle=text("handle", handle), pin=pinned)
    return _unary("RenewLease", request, service.RenewLeaseResponse, _messages.lease_end)


def release(handle: str) -> Call[None]:
    """Build ReleaseFactor. Not retried after a lost connection: the second reply would be NOT_FOUND."""
    return _unary(
        "ReleaseFactor",
        service.ReleaseFactorRequest(handle=text("handle", handle)),
        service.ReleaseFactorResponse,
        lambda response: None,
        RetryClass.REFUSED_ONLY,
    )


def list_factors(name: str, page_token: str) -> Call[FactorPage]:
    """Build ListFactors for one page."""
    request = service.ListFactorsRequest(name=text("name", name), page_token=page_token)
    return _unary("ListFactors", request, service.ListFactorsResponse, _messages.factor_page)


def get_factors(record: FactorRecord) -> Call[PackedFactors]:
    """Build GetFactors for a dense factor."""
    if record.sparse is not None:
        raise InvalidRequest("the factor is sparse: use to_sparse_lu()")
    request = service.GetFactorsRequest(handle=record.handle, include_ipiv=True)
    return Call(
        "GetFactors", request.SerializeToString(), lambda: FactorsReply(record.n), handle=request.handle
    )


def get_sparse_factors(record: FactorRecord) -> Call[SparseFactors]:
    """Build GetFactors for a sparse factor. Raises Singular if there is none."""
    if record.singular_reason not in (None, "zero_pivot"):
        raise Singular(f"the matrix is structurally singular ({record.singular_reason}) and has no factors")
    if record.sparse is None:
        raise InvalidRequest("the factor is dense: use to_lu()")
    request = service.GetFactorsRequest(handle=record.handle, take_sparse=True)
    return Call(
        "GetFactors", request.SerializeToString(), lambda: SparseFactorsReply(record.n), handle=request.handle
    )


def estimate_again(handle: str, **options: Any) -> Call[Estimate]:
    """Build EstimateFactorize for a matrix with the pattern of a sparse factor's matrix."""
    [how] = distribute(options, factorize_options)
    request = service.EstimateFactorizeRequest(
        handle=text("handle", handle), options=factorize_options(**how)
    )
    return _unary("EstimateFactorize", request, service.EstimateFactorizeResponse, _messages.estimate)


def estimate(n: int, matrix_dtype: npt.DTypeLike, nnz: int | None, **options: Any) -> Call[Estimate]:
    """Build EstimateFactorize."""
    [how] = distribute(options, factorize_options)
    request = service.EstimateFactorizeRequest(
        n=integer("n", n),
        nnz=None if nnz is None else integer("nnz", nnz),
        matrix_dtype=dtype_code(matrix_dtype),
        options=factorize_options(**how),
    )
    return _unary("EstimateFactorize", request, service.EstimateFactorizeResponse, _messages.estimate)


def server_info() -> Call[ServerInfo]:
    """Build GetServerInfo."""
    request = service.GetServerInfoRequest()
    return _unary("GetServerInfo", request, service.GetServerInfoResponse, _messages.server_info)


def _unary(
    method: str, request: Any, response: Any, make: Any, retry: RetryClass = RetryClass.IDEMPOTENT
) -> Call[Any]:
    return Call(
        method,
        request.SerializeToString(),
        lambda: UnaryReply(response, make),
        retry,
        unary=True,
        handle=getattr(request, "handle", ""),
    )


class UnaryReply(Reply[T]):
    """A reply of one message."""

    def __init__(self, kind: type[Message], make: Callable[[Any], T]) -> None:
        self._kind = kind
        self._make = make
        self._results: list[T] = []

    def feed(self, message: bytes) -> None:
        self._results.append(convert(self._make, parse(self._kind, message)))

    def finish(self) -> T:
        if len(self._results) != 1:
            raise ProtocolError("the server sent no reply")
        return self._results[0]


class FactorsReply(Reply[PackedFactors]):
    """Reply of GetFactors."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._target = Target(n, n, None)
        self._header: service.GetFactorsHeader | None = None

    def feed(self, message: bytes) -> None:
        rest, pieces = _wire.split(message, FACTORS_DATA)
        response = parse(service.GetFactorsResponse, rest)
        if response.HasField("header"):
            self._header = response.header
            self._target.begin(response.header.lu)
        for piece in pieces:
            self._target.append(piece)

    def finish(self) -> PackedFactors:
        lu = self._target.finish()
        if self._header is None:
            raise ProtocolError("the server sent no header")
        header, n = self._header, self._n
        permutation = convert(np.array, header.permutation).astype(np.intp)
        piv = convert(np.array, header.ipiv).astype(np.intp) - 1
        if piv.shape != (n,) or not ((piv >= 0) & (piv < n)).all():
            raise ProtocolError("the server sent interchanges of rows that do not exist")
        return PackedFactors(
            lu=lu,
            permutation=_checked_permutation(permutation, n),
            piv=piv,
            row_scales=_checked_scales(header.row_scales or np.ones(n), n),
            col_scales=_checked_scales(header.col_scales or np.ones(n), n),
            record=checked_record(header.factor, n),
        )


def _checked_permutation(order: Array, n: int) -> Array:
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise ProtocolError("the server sent an array that is not a permutation")
    return order


def _checked_scales(sent: Any, n: int) -> Array:
    scales = np.array(sent)
    if scales.shape != (n,) or not (np.isfinite(scales) & (scales > 0)).all():
        raise ProtocolError("the server sent scales that are not finite and positive")
    return scales


class SparseFactorsReply(Reply[SparseFactors]):
    """Reply of GetFactors with `take_sparse`."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._header: service.GetFactorsHeader | None = None
        self._data = bytearray()
        self._at = 0

    def feed(self, message: bytes) -> None:
        rest, pieces = _wire.split(message, FACTORS_DATA)
        response = parse(service.GetFactorsResponse, rest)
        if response.HasField("header"):
            self._header = response.header
        for piece in pieces:
            self._data += piece

    def finish(self) -> SparseFactors:
        header, n = self._header, self._n
        if header is None or not header.HasField("sparse"):
            raise ProtocolError("the server sent no header of a sparse factor")
        lower = self._rows(header.sparse.lower, unit_diagonal=True)
        upper = self._rows(header.sparse.upper, unit_diagonal=False)
        rows, columns = (_checked_permutation(self._take(np.int32, n).astype(np.intp), n) for _ in range(2))
        scales = None
        if header.sparse.scaled:
            row_scales = _checked_scales(self._take(np.float64, n), n)
            scales = row_scales, _checked_scales(self._take(np.float64, n), n)
        if self._at != len(self._data):
            raise ProtocolError("the server sent more data than it announced")
        return sparse_factors(lower, upper, rows, columns, scales, checked_record(header.factor, n))

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
        if not square or not compressed or index is None or spec.dtype not in DTYPES.values():
            raise ProtocolError("the server sent a sparse factor with an unexpected shape or format")
        starts, columns = self._take(index, n + 1), self._take(index, spec.entries)
        values = self._take(numpy_dtype(spec.dtype), spec.entries)
        if starts[0] != 0 or starts[-1] != spec.entries or (np.diff(starts) < 0).any():
            raise ProtocolError("the server sent row starts that do not ascend to the number of entries")
        if ((columns < 0) | (columns >= n)).any():
            raise ProtocolError("the server sent column indices beyond the order of the matrix")
        if unit_diagonal:  # inserted at the end of each row; adding the identity would drop stored zeros
            columns = np.insert(columns, starts[1:], np.arange(n, dtype=index))
            values = np.insert(values, starts[1:], 1)
            starts = starts + np.arange(n + 1, dtype=index)
        return scipy.sparse.csr_matrix((values, columns, starts), (n, n))
