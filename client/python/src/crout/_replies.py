# SPDX-License-Identifier: Apache-2.0
"""Handlers that parse and validate replies."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from crout import _messages, _wire
from crout._call import Reply
from crout._device import DeviceArray, on_host
from crout._device_memory import DeviceReply
from crout._diagnostics import warn_of_factor, warn_of_solution
from crout._messages import convert, parse, progress_of
from crout._payload import Bytes, dtype_code, numpy_dtype
from crout.errors import ProtocolError
from crout.records import FactorRecord
from crout.results import Complement, EchelonForm, Solution
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]
T = TypeVar("T")

FACTORS_DATA = 2  # `bytes` field of GetFactorsResponse


class FactorReply(Reply[FactorRecord]):
    """Reply of Factorize and Refactorize: progress, then the factor."""

    def __init__(
        self,
        kind: type[service.FactorizeResponse] | type[service.RefactorizeResponse],
        n: int | None,
    ) -> None:
        self._kind = kind
        self._n = n

    def feed(self, message: bytes) -> service.Progress | None:
        response = parse(self._kind, message)
        if response.HasField("factor"):
            self._factor = checked_record(response.factor, self._n)
        return progress_of(response)

    def finish(self) -> FactorRecord:
        """Return the record. The caller issues its warnings, and releases the factor if they are errors."""
        if self._factor is None:
            raise ProtocolError("the server sent no factor")
        return self._factor


def checked_record(message: factor_pb2.Factor, n: int | None) -> FactorRecord:
    """Convert a Factor message. Raises ProtocolError if `n` is given and is not the order."""
    if n is not None and message.n != n:
        raise ProtocolError(f"the server sent a factor of order {message.n} instead of {n}")
    return convert(_messages.factor_record, message)


class Target:
    """Destination of a downloaded matrix, filled as the bytes arrive.

    Parameters
    ----------
    rows, cols : int or None
        Expected shape; None if the client cannot compute it.
    dtype : numpy.dtype or None
        Expected type; None if the client cannot compute it.
    into : ndarray or None
        Contiguous array to fill, of the expected shape, type and order. None: a new array.
    or_complex : bool
        Whether the matrix may also be complex for a real `dtype`. A new array is then made for it.
    """

    def __init__(
        self,
        rows: int | None,
        cols: int | None,
        dtype: np.dtype[Any] | None,
        into: Array | None = None,
        *,
        or_complex: bool = False,
    ) -> None:
        self._expected = (rows, cols, None if dtype is None else dtype_code(dtype))
        self._complex_dtype = None
        if or_complex and dtype is not None and dtype.kind == "f":
            self._complex_dtype = dtype_code(np.result_type(dtype, np.complex64))
        self._into = into
        self._announced: int | None = None
        self._array: Array | None = None
        self._memory = memoryview(b"")
        self._filled = 0

    @property
    def untouched(self) -> bool:
        """Whether nothing has been written to the caller's memory."""
        return self._into is None or self._filled == 0

    @property
    def is_complex_reply(self) -> bool:
        """Whether the matrix is complex although a real one was requested."""
        return self._complex_dtype is not None and self._announced == self._complex_dtype

    def begin(self, spec: matrix_pb2.DenseSpec) -> None:
        """Handle the header of the matrix. Raises ProtocolError if it differs from the expected one."""
        if self._array is not None:
            raise ProtocolError("the server sent two headers")
        self._announced = spec.dtype
        rows, cols, dtype = self._expected
        if self.is_complex_reply:
            self._into, dtype = None, self._complex_dtype
        expectations = (rows, cols, dtype)
        for expected, announced in zip(expectations, (spec.rows, spec.cols, spec.dtype), strict=True):
            if announced < 0 or expected not in (None, announced):
                raise ProtocolError("the server sent a matrix with a different shape or type than requested")
        self._array = self._allocate(spec)
        self._memory = self._array.ravel(order="K").view(np.uint8).data

    def _allocate(self, spec: matrix_pb2.DenseSpec) -> Array:
        row_major = spec.layout == matrix_pb2.LAYOUT_ROW_MAJOR
        if self._into is not None:
            flags = self._into.flags
            if not (flags.c_contiguous if row_major else flags.f_contiguous):
                raise ProtocolError("the server sent a matrix with a different layout than requested")
            return self._into
        try:
            dtype = numpy_dtype(spec.dtype)
            return np.empty((spec.rows, spec.cols), dtype, "C" if row_major else "F")
        except (MemoryError, ValueError):
            raise ProtocolError(
                f"the server announced a {spec.rows} x {spec.cols} matrix, which does not fit in memory"
            ) from None

    def append(self, piece: Bytes) -> None:
        """Store the next bytes. Raises ProtocolError if there are too many."""
        end = self._filled + len(piece)
        if self._array is None or end > len(self._memory):
            raise ProtocolError("the server sent more data than it announced")
        self._memory[self._filled : end] = piece
        self._filled = end

    def finish(self) -> Array:
        """Return the matrix. Raises ProtocolError if bytes are missing."""
        if self._array is None or self._filled != len(self._memory):
            raise ProtocolError("the server sent less data than it announced")
        return self._array


class DeviceTarget(Target):
    """Destination of a matrix that becomes an array in GPU memory. Messages arrive on the host."""

    def __init__(self, reply: DeviceReply, *, or_complex: bool) -> None:
        rows, cols = reply.shape
        super().__init__(rows, cols, reply.dtype, or_complex=or_complex)
        self._ordinal = reply.ordinal
        self._shared: DeviceArray | None = None

    def adopt(self, array: DeviceArray) -> None:
        """Take an array that has the whole matrix."""
        self._shared = array
        self._filled = len(self._memory)

    def finish(self) -> Any:
        host = super().finish()
        return on_host(host, self._ordinal) if self._shared is None else self._shared


class ByteTarget(Target):
    """Destination of `size` bytes that have no header."""

    def __init__(self, size: int) -> None:
        super().__init__(None, None, None)
        self._array = np.empty(size, np.uint8)
        self._memory = self._array.data


class MatrixReply(Reply[T]):
    """A reply with a matrix: the factor, if one was made, then the matrix, then the result.

    Parameters
    ----------
    kind : type
        Type of the messages.
    matrix : str
        Field of the header that describes the matrix.
    target : Target
        Destination of the matrix.
    n : int or None
        Order of the factor; None if the client cannot compute it.
    """

    _DATA = 3  # number of the field `data`

    def __init__(self, kind: type[Any], matrix: str, target: Target, n: int | None = None) -> None:
        self._kind = kind
        self._matrix = matrix
        self._target = target
        self._n = n
        self._result: Any = None
        self._has_factor = "factor" in kind.DESCRIPTOR.fields_by_name

    def feed(self, message: bytes) -> service.Progress | None:
        rest, pieces = _wire.split(message, self._DATA)
        response = parse(self._kind, rest)
        if self._has_factor and response.HasField("factor"):
            self._take_factor(response.factor)
        if response.HasField("header"):
            self._target.begin(getattr(response.header, self._matrix))
        for piece in pieces:
            self._target.append(piece)
        if response.HasField("shared_bytes"):
            self._read_shared(response.shared_bytes)
        if response.HasField("result"):
            self._take_result(response.result)
        return progress_of(response)

    def _read_shared(self, size: int) -> None:
        """Take the matrix from shared memory."""
        if self.shared_array is not None and isinstance(self._target, DeviceTarget):
            if size != self.shared_array.nbytes:
                raise ProtocolError("the server wrote more or less data than it announced")
            self._target.adopt(self.shared_array)
            return
        if self.shared_memory is None or size > len(self.shared_memory):
            raise ProtocolError("the server sent more data than the shared memory has")
        self._target.append(self.shared_memory[:size])

    def _take_factor(self, message: factor_pb2.Factor) -> None:
        self._factor = checked_record(message, self._n)

    def _take_result(self, message: Any) -> None:
        self._result = message

    def _complete(self) -> Array:
        """Return the matrix. Raises ProtocolError if the matrix or the result is missing."""
        matrix = self._target.finish()
        if self._result is None:
            raise ProtocolError("the server sent no result")
        return matrix


class SolutionReply(MatrixReply[Solution]):
    """Reply of Solve and FactorizeAndSolve: X, its result, and the factor if there is one.

    Parameters
    ----------
    kind : type
        Type of the messages.
    n : int or None
        Order of the matrix; None if the client cannot compute it.
    target : Target
        Destination of X.
    shape : tuple of int or None
        Shape of X for the caller; None for the shape of the target.
    known_version : int or None
        Version of the factor from which the expected type of X was computed. A solution with this version
        must have that type.
    quiet : bool
        Whether the caller issues the warnings.
    """

    def __init__(
        self,
        kind: type[service.SolveResponse] | type[service.FactorizeAndSolveResponse],
        n: int | None,
        target: Target,
        shape: tuple[int, ...] | None,
        known_version: int | None = None,
        quiet: bool = False,
    ) -> None:
        super().__init__(kind, "solution", target, n)
        self._quiet = quiet
        self._shape = shape
        self._known_version = known_version

    @property
    def repeatable(self) -> bool:
        return self._target.untouched

    def finish(self) -> Solution:
        """Return the solution. Issues its warnings, unless the caller does."""
        x = self._complete()
        if self._target.is_complex_reply and self._result.factor_version == self._known_version:
            raise ProtocolError("the server sent a complex solution of a real system")
        if self._shape is not None:
            x = x.reshape(self._shape)
        solution = _messages.solution(x, self._result, self._factor)
        if not self._quiet:
            if self._factor is not None:
                warn_of_factor(self._factor)
            warn_of_solution(solution)
        return solution


class ComplementReply(MatrixReply[Complement]):
    """Reply of ComputeSchurComplement: the factor of A11, S, and its result."""

    def __init__(self, leading_order: int | None, order: int | None, dtype: np.dtype[Any]) -> None:
        rest = None if order is None or leading_order is None else order - leading_order
        target = Target(rest, rest, dtype)
        super().__init__(service.ComputeSchurComplementResponse, "complement", target, leading_order)

    def finish(self) -> Complement:
        """Return the complement. The caller issues its warnings, as in `FactorReply`."""
        s = self._complete()
        if self._factor is None:
            raise ProtocolError("the server sent no factor")
        return _messages.complement(s, self._result, self._factor)


class EchelonReply(MatrixReply[EchelonForm]):
    """Reply of ReduceToEchelonForm: the form and its result."""

    def __init__(self, shape: tuple[int, int] | None, dtype: np.dtype[Any]) -> None:
        rows, cols = shape or (None, None)
        super().__init__(service.ReduceToEchelonFormResponse, "form", Target(rows, cols, dtype))

    def finish(self) -> EchelonForm:
        r = self._complete()
        pivots = self._result.pivot_columns
        if self._result.rank != len(pivots) or len(pivots) > min(r.shape):
            raise ProtocolError("the server sent a rank that differs from the number of pivots")
        return _messages.echelon_form(r, self._result)
