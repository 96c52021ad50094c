# SPDX-License-Identifier: Apache-2.0
"""Builds calls that send one matrix, from the caller's arguments. Does not use gRPC.

The functions of this module raise InvalidRequest and TypeError for invalid arguments.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from crout import _payload
from crout._call import Call, Reply, RetryClass
from crout._device import view_of
from crout._device_memory import DeviceReply
from crout._options import (
    cache_options,
    call_options,
    distribute,
    echelon_options,
    factorize_options,
    integer,
    request_id_option,
    solve_options,
)
from crout._replies import (
    ComplementReply,
    DeviceTarget,
    EchelonReply,
    FactorReply,
    SolutionReply,
    Target,
)
from crout.errors import InvalidRequest
from crout.records import FactorRecord
from crout.results import Complement, EchelonForm, Solution
from crout.v1 import factorization_service_pb2 as service
from crout.v1 import matrix_pb2

Array = npt.NDArray[Any]
T = TypeVar("T")

DATA, RHS_DATA, _X0_DATA = 2, 3, 4  # numbers of the requests' `bytes` fields
_HANDLE = re.compile("[a-z2-7]{26}")


def order_of(payload: _payload.Payload) -> int | None:
    return None if payload.shape is None else payload.shape[0]


def factorize(A: Any, **options: Any) -> Call[FactorRecord]:
    """Build Factorize."""

    def read() -> tuple[_payload.Payload, Callable[[], Reply[FactorRecord]]]:
        payload = _payload.square(A)
        return payload, lambda: FactorReply(service.FactorizeResponse, order_of(payload))

    return factorize_payload(read, factorize_options, options, _payload.path_of(A))


def factorize_payload(
    read: Callable[[], tuple[_payload.Payload, Callable[[], Reply[T]]]],
    source: Callable[..., service.FactorizeOptions],
    options: Mapping[str, Any],
    file: str = "",
) -> Call[T]:
    """Build Factorize for a matrix or a batch.

    `source` converts the options of the factorization. `read` returns the matrix and the constructor of
    the reply. It is called after the names of the options have been checked.
    """
    call, how, cache, identity = distribute(options, call_options, source, cache_options, request_id_option)
    payload, reply = read()
    request_id = request_id_option(**identity)
    header = service.FactorizeHeader(matrix=payload.spec, options=source(**how), cache=cache_options(**cache))
    header.cache.request_id = request_id
    return Call(
        "Factorize",
        service.FactorizeRequest(header=header).SerializeToString(),
        reply,
        RetryClass.IDEMPOTENT if request_id else RetryClass.REFUSED_ONLY,
        ((DATA, payload.open),),
        waits=bool(request_id),
        file=file,
        **call_options(**call),
    )


def values_option(*, values_only: bool = False) -> bool:
    """Return whether to send only the values of a sparse matrix, for the previous positions."""
    return values_only


def replace_option(*, replace_if_singular: bool = False) -> bool:
    """Return whether a singular factor may replace the old factor."""
    return replace_if_singular


def refactorize(record: FactorRecord, A: Any, **options: Any) -> Call[FactorRecord]:
    """Build Refactorize. Not retried after a lost connection, because it may have taken effect."""
    call, how, replace, values = distribute(
        options, call_options, factorize_options, replace_option, values_option
    )
    payload = _payload.square_values(A) if values_option(**values) else _payload.square(A)
    if payload.shape is not None and payload.shape[0] != record.n:
        raise InvalidRequest(
            f"the matrix has order {payload.shape[0]}, the factor {record.n}: use lu_factor for a new order"
        )
    header = service.RefactorizeHeader(
        handle=record.handle,
        matrix=payload.spec,
        options=factorize_options(**how),
        replace_if_singular=replace_option(**replace),
    )
    return Call(
        "Refactorize",
        service.RefactorizeRequest(header=header).SerializeToString(),
        lambda: FactorReply(service.RefactorizeResponse, record.n),
        RetryClass.REFUSED_ONLY,
        ((DATA, payload.open),),
        file=_payload.path_of(A),
        handle=header.handle,
        **call_options(**call),
    )


def overwrite_option(*, overwrite_b: bool = False) -> bool:
    """Return whether X may use B's memory."""
    return overwrite_b


class Rhs:
    """Payload of B, and destination of X.

    Parameters
    ----------
    b : array_like, shape (n,) or (n, nrhs), sparse matrix, or path
    n : int or None
        Order of A; None if unknown.
    dtype : numpy.dtype
        Type of A.
    overwrite : bool
        Whether X may use B's memory.

    Attributes
    ----------
    payload : Payload
    shape : tuple of int or None
        Shape of B and X; None for a file.
    device_reply : DeviceReply or None
        The array in GPU memory for X, if B is in GPU memory.
    """

    def __init__(self, b: Any, n: int | None, dtype: np.dtype[Any], overwrite: bool) -> None:
        self._array: Array | None = None
        self.shape: tuple[int, ...] | None = None
        self.device_reply: DeviceReply | None = None
        if isinstance(b, (str, os.PathLike)):
            self.payload = _payload.matrix(b)
            self._rows, self._cols, self._dtype = n, None, self.payload.dtype
            return
        if _payload.is_sparse(b):
            b = b.toarray()
        view = view_of(b)
        # X has the result type of A and B, as in SciPy.
        if view is not None and _payload.can_send(view) and np.result_type(view.dtype, dtype) == view.dtype:
            self._check(view.shape, n)
            self.shape, self.payload = view.shape, _payload.device_dense(view)
        else:
            array = _payload.as_array(b)
            self._check(array.shape, n)
            self._convert(array, dtype, overwrite and view is None)
        assert self.payload.shape is not None
        self._rows, self._cols = self.payload.shape
        self._dtype = self.payload.dtype
        if view is not None:
            order = "C" if self.payload.spec.dense.layout == matrix_pb2.LAYOUT_ROW_MAJOR else "F"
            self.device_reply = DeviceReply(self.payload.shape, self._dtype, order, view.ordinal)

    @staticmethod
    def _check(shape: tuple[int, ...], n: int | None) -> None:
        """Check the shape of B."""
        if len(shape) not in (1, 2):
            raise InvalidRequest(f"b has {len(shape)} dimensions: give one or two")
        if n is not None and shape[0] != n:
            hint = ": did you mean b.T?" if shape[1:] == (n,) else ""
            raise InvalidRequest(f"b has {shape[0]} rows, and the matrix has order {n}{hint}")

    def _convert(self, array: Array, dtype: np.dtype[Any], overwrite: bool) -> None:
        """Convert B in host memory."""
        elements = _payload.as_elements(array)
        elements = elements.astype(np.result_type(elements.dtype, dtype), copy=False)
        self.shape = elements.shape
        columns = elements if elements.ndim == 2 else elements[:, None]
        self.payload = _payload.dense(columns)
        flags = columns.flags
        if overwrite and flags.writeable and (flags.c_contiguous or flags.f_contiguous):
            self._array = columns

    @property
    def nbytes(self) -> int:
        """Number of bytes of X on the host, unless it is complex for a real B; 0 for a file."""
        return 0 if self.shape is None or self.device_reply is not None else self.payload.open.size

    def start(self, x0: Any) -> _payload.Payload:
        """Convert an initial guess to the type of X. It must have the shape of X."""
        array = _payload.as_array(x0)
        if array.shape != self.shape:
            raise InvalidRequest(
                f"x0 has the shape {array.shape}: give the shape of the solution, {self.shape}"
            )
        elements = _payload.as_elements(array)
        if np.iscomplexobj(elements) and not np.issubdtype(self._dtype, np.complexfloating):
            raise InvalidRequest("x0 is complex, and the solution is real: give a real x0, or a complex b")
        elements = elements.astype(self._dtype, copy=False)
        return _payload.dense(elements if elements.ndim == 2 else elements[:, None])

    def target(self, *, or_complex: bool = False) -> Target:
        if self.device_reply is not None:
            return DeviceTarget(self.device_reply, or_complex=or_complex)
        return Target(self._rows, self._cols, self._dtype, self._array, or_complex=or_complex)


def solve(record: FactorRecord, b: Any, quiet: bool = False, **options: Any) -> Call[Solution]:
    """Build Solve. `quiet`: the caller issues the warnings."""
    call, how, overwrite = distribute(options, call_options, solve_options, overwrite_option)
    rhs = Rhs(b, record.n, record.matrix_dtype, overwrite_option(**overwrite))
    header = service.SolveHeader(handle=record.handle, rhs=rhs.payload.spec, options=solve_options(**how))
    return Call(
        "Solve",
        service.SolveRequest(header=header).SerializeToString(),
        # X may be complex, because another client may have replaced a real factor by a complex one.
        lambda: SolutionReply(
            service.SolveResponse,
            record.n,
            rhs.target(or_complex=True),
            rhs.shape,
            known_version=record.version,
            quiet=quiet,
        ),
        payloads=((DATA, rhs.payload.open),),
        reply_bytes=rhs.nbytes,
        device_reply=rhs.device_reply,
        handle=header.handle,
        **call_options(**call),
    )


def factorize_and_solve(A: Any, b: Any, quiet: bool = False, **options: Any) -> Call[Solution]:
    """Build FactorizeAndSolve. It caches no factor, so a second attempt is safe.

    `quiet`: the caller issues the warnings.
    """
    call, how, solving, overwrite = distribute(
        options, call_options, factorize_options, solve_options, overwrite_option
    )
    payload = _payload.square(A)
    n = order_of(payload)
    rhs = Rhs(b, n, payload.dtype, overwrite_option(**overwrite))
    header = service.FactorizeAndSolveHeader(
        matrix=payload.spec,
        options=factorize_options(**how),
        rhs=rhs.payload.spec,
        solve=solve_options(**solving),
    )
    return Call(
        "FactorizeAndSolve",
        service.FactorizeAndSolveRequest(header=header).SerializeToString(),
        lambda: SolutionReply(service.FactorizeAndSolveResponse, n, rhs.target(), rhs.shape, quiet=quiet),
        payloads=((DATA, payload.open), (RHS_DATA, rhs.payload.open)),
        reply_bytes=rhs.nbytes,
        device_reply=rhs.device_reply,
        file=_payload.path_of(A),
        **call_options(**call),
    )


def schur_complement(A: Any, leading_order: int | None, keep: Any, **options: Any) -> Call[Complement]:
    """Build ComputeSchurComplement, with the order of A11 or with the unknowns of A22."""
    call, how, cache = distribute(options, call_options, factorize_options, cache_options)
    payload = _payload.square(A)
    order = order_of(payload)
    header = service.ComputeSchurComplementHeader(matrix=payload.spec, options=factorize_options(**how))
    eliminated: int | None  # order of A11
    if keep is None:
        header.leading_order = eliminated = _leading(leading_order, order)
        header.cache.CopyFrom(cache_options(**cache))
    elif leading_order is not None:
        raise TypeError("both leading_order and keep are set: omit one of them")
    elif cache:
        raise InvalidRequest("with keep= no factor is kept: omit name and lease")
    else:
        header.keep.extend(_kept(keep, payload))
        eliminated = None if order is None else order - len(header.keep)
    return Call(
        "ComputeSchurComplement",
        service.ComputeSchurComplementRequest(header=header).SerializeToString(),
        lambda: ComplementReply(eliminated, order, payload.dtype),
        RetryClass.REFUSED_ONLY,
        ((DATA, payload.open),),
        reply_bytes=0 if order is None or eliminated is None else _bytes_of(order - eliminated, payload),
        file=_payload.path_of(A),
        **call_options(**call),
    )


def _bytes_of(order: int, payload: _payload.Payload) -> int:
    """Return the bytes of a square matrix of the payload's type."""
    return order * order * payload.dtype.itemsize


def _leading(leading_order: int | None, order: int | None) -> int:
    """Check the order of the leading block."""
    if leading_order is None:
        raise TypeError("neither leading_order nor keep is set: give one of them")
    leading = integer("leading_order", leading_order)
    if leading < 0 or (order is not None and leading > order):
        raise InvalidRequest(f"leading_order is {leading}: give 0 to {'n' if order is None else order}")
    return leading


def _kept(keep: Any, payload: _payload.Payload) -> list[int]:
    """Check the unknowns of A22."""
    if payload.spec.HasField("dense"):
        raise InvalidRequest(
            "keep= needs a sparse matrix: give scipy.sparse.csr_array(A). For a dense matrix, place the "
            "unknowns to eliminate first, and give their number by leading_order="
        )
    unknowns = [integer("keep", index, bits=32) for index in keep]
    if not unknowns:  # on the wire an empty list equals an unset field
        raise InvalidRequest("keep is empty: give at least one unknown")
    return unknowns


def rref(A: Any, **options: Any) -> Call[EchelonForm]:
    """Build ReduceToEchelonForm."""
    call, how = distribute(options, call_options, echelon_options)
    payload = _payload.matrix(A)
    header = echelon_options(**how)
    header.matrix.CopyFrom(payload.spec)
    return Call(
        "ReduceToEchelonForm",
        service.ReduceToEchelonFormRequest(header=header).SerializeToString(),
        lambda: EchelonReply(payload.shape, payload.dtype),
        payloads=((DATA, payload.open),),
        reply_bytes=0 if payload.shape is None else math.prod(payload.shape) * payload.dtype.itemsize,
        file=_payload.path_of(A),
        **call_options(**call),
    )
