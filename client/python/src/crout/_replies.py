# SPDX-License-Identifier: Apache-2.0
"""Parses and validates replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from crout import _advice, _wire, results
from crout._payload import dtype_code, numpy_dtype
from crout.errors import CroutError, ProtocolError, Singular, warn
from crout.results import FactorRecord, Solution
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

Array = npt.NDArray[Any]
T = TypeVar("T")
M = TypeVar("M", bound=Message)


def parse(kind: type[M], message: bytes) -> M:
    """Parse a message of the contract. Raises ProtocolError."""
    try:
        return kind.FromString(message)
    except DecodeError:
        raise ProtocolError("the server sent a malformed message") from None


def convert(make: Callable[[Any], T], message: Any) -> T:
    """`make(message)`. Numbers that Python cannot represent as dates are a ProtocolError."""
    try:
        return make(message)
    except (OverflowError, ValueError) as error:
        raise ProtocolError(f"the server sent an impossible value: {error}") from None


class UnaryReply(Generic[T]):
    """A reply of one message."""

    repeatable = True

    def __init__(self, kind: type[Message], make: Callable[[Any], T]) -> None:
        self._kind = kind
        self._make = make
        self._results: list[T] = []

    def feed(self, message: bytes) -> None:
        """See `Reply`."""
        self._results.append(convert(self._make, parse(self._kind, message)))

    def finish(self) -> T:
        """See `Reply`."""
        if len(self._results) != 1:
            raise ProtocolError("the server sent no reply")
        return self._results[0]

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""


class FactorReply:
    """Reply of Factorize and Refactorize: progress, then the factor."""

    repeatable = True

    def __init__(
        self,
        kind: type[service.FactorizeResponse] | type[service.RefactorizeResponse],
        n: int | None,
    ) -> None:
        self._kind = kind
        self._n = n
        self._record: FactorRecord | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        """See `Reply`."""
        response = parse(self._kind, message)
        if response.HasField("factor"):
            self._record = checked_record(response.factor, self._n)
        return response.progress if response.HasField("progress") else None

    def finish(self) -> FactorRecord:
        """See `Reply`. Warnings are issued later, by the owner of the factor, because they may be errors."""
        if self._record is None:
            raise ProtocolError("the server sent no factor")
        return self._record

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""
        if isinstance(error, Singular):
            error.factor = self._record


def checked_record(message: factor_pb2.Factor, n: int | None) -> FactorRecord:
    """The record of a factor, checked against the order `n` if that is known. Raises ProtocolError."""
    if n is not None and message.n != n:
        raise ProtocolError(f"the server sent a factor of order {message.n} instead of {n}")
    return convert(results.factor_record, message)


def warn_of_factor(record: FactorRecord) -> None:
    """Warn if a factor needs a check before use."""
    if record.info > 0:
        where = record.singular_reason or "zero_pivot"
        warn(
            f"the matrix is singular, or its factor unusable (info={record.info}, {where}): "
            "solves with it raise Singular"
        )
        return
    if np.isinf(record.pivot_growth):
        warn(f"the factorization overflowed: {_advice.of_overflow(record)}")
    elif "poor_factor" in record.warnings:
        warn(
            f"the factor is poor (quality {record.quality:.3g}, pivot growth "
            f"{record.pivot_growth:.3g}): {_advice.of_poor_factor(record)}"
        )
    if "nearly_singular" in record.warnings:
        rcond = "" if record.rcond is None else f" (rcond={record.rcond:.6g})"
        warn(
            f"the matrix is ill-conditioned{rcond} and may as well be singular: solutions may have no "
            "correct digit"
        )
    if "perturbed_rcond" in record.warnings:
        warn(
            f"rcond={record.rcond:.6g} is that of a matrix nearby, some of whose pivots were made larger: "
            "the matrix's may be far smaller"
        )


def warn_of_solution(solution: Solution) -> None:
    """Warn if a solution needs a check before use."""
    error = "not measured" if solution.backward_error is None else f"{solution.backward_error:.3g}"
    bound = solution.forward_error_bound
    # An infinite bound has this warning even if the backward error is small.
    if "not_accurate" in solution.warnings and (bound is None or np.isfinite(bound)):
        if solution.corrections is not None:
            warn(
                f"the solution is poor after {solution.corrections} corrections (backward error {error}): "
                f"{_advice.of_poor_correction(solution.factor)}"
            )
            return
        warn(
            f"the solution is poor (backward error {error}): solve with refine=, or factor by another "
            "algorithm"
        )
    # The factor's own warnings were issued before.
    if "poor_factor" in solution.warnings and solution.factor is None:
        warn("the factor is poor, and the backward error was not measured: solve with verify=True")
    if "nearly_singular" in solution.warnings and (
        solution.factor is None or "nearly_singular" not in solution.factor.warnings
    ):
        warn("the matrix may as well be singular: the solution may have no correct digit")
    if bound is not None and not bound < 1:
        warn(
            f"the solution may have no correct digit (forward error bound {bound:.3g}, backward error "
            f"{error})"
        )


def warn_of_complement(complement: results.Complement) -> None:
    """Warn if S, or the factor of A11, needs a check before use."""
    warn_of_factor(complement.record)
    if complement.warnings:
        warn(
            f"the Schur complement is poor (backward error {complement.backward_error}, growth "
            f"{complement.growth})"
        )


def warn_of_echelon_form(form: results.EchelonForm) -> None:
    """Warn if the rank and the form may be wrong."""
    if "poor_echelon_form" in form.warnings:
        warn(
            f"the rank and the echelon form may be wrong (growth {form.growth:.3g}): find the rank by "
            "singular values (numpy.linalg.matrix_rank), and solve a system with solve(A, b, refine=5)"
        )


class Target:
    """Destination of a downloaded matrix, filled as the bytes arrive.

    Parameters
    ----------
    rows, cols : int or None
        Expected shape; None if only the server has it.
    dtype : numpy.dtype or None
        Expected type; None if only the server has it.
    into : ndarray or None
        Contiguous memory to use instead of a new array, of the expected shape, type and order.
    or_complex : bool
        Whether the matrix may also be complex for a real `dtype`; it then gets new memory.
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
        """Handle the header of the matrix. Raises ProtocolError if it is not as expected."""
        if self._array is not None:
            raise ProtocolError("the server sent two headers")
        self._announced = spec.dtype
        rows, cols, dtype = self._expected
        if self.is_complex_reply:
            self._into, dtype = None, self._complex_dtype
        expectations = (rows, cols, dtype)
        for expected, announced in zip(expectations, (spec.rows, spec.cols, spec.dtype), strict=True):
            if announced < 0 or expected not in (None, announced):
                raise ProtocolError("the server announced another matrix than was asked for")
        self._array = self._allocate(spec)
        self._memory = self._array.ravel(order="K").view(np.uint8).data

    def _allocate(self, spec: matrix_pb2.DenseSpec) -> Array:
        row_major = spec.layout == matrix_pb2.LAYOUT_ROW_MAJOR
        if self._into is not None:
            flags = self._into.flags
            if not (flags.c_contiguous if row_major else flags.f_contiguous):
                raise ProtocolError("the server announced another layout than was asked for")
            return self._into
        try:
            dtype = numpy_dtype(spec.dtype)
            return np.empty((spec.rows, spec.cols), dtype, "C" if row_major else "F")
        except (MemoryError, ValueError):
            raise ProtocolError(
                f"no memory for the {spec.rows} x {spec.cols} matrix that the server announced"
            ) from None

    def append(self, piece: memoryview) -> None:
        """Store the next bytes. Raises ProtocolError if there are too many."""
        end = self._filled + len(piece)
        if self._array is None or end > len(self._memory):
            raise ProtocolError("the server sent more data than it announced")
        self._memory[self._filled : end] = piece
        self._filled = end

    def finish(self) -> Array:
        """The complete matrix. Raises ProtocolError if bytes are missing."""
        if self._array is None or self._filled != len(self._memory):
            raise ProtocolError("the server sent less data than it announced")
        return self._array


class SolutionReply:
    """Reply of Solve and FactorizeAndSolve: X, its result, and the factor if there is one.

    Parameters
    ----------
    kind : type
        Type of the messages.
    n : int or None
        Order of the matrix; None if only the server has it.
    target : Target
        Destination of X.
    shape : tuple of int or None
        Shape of X for the caller; None for the target's.
    known_version : int or None
        Version of the factor whose type the client has. With this version X must have the expected type.
    """

    _DATA = 3  # field of both messages

    def __init__(
        self,
        kind: type[service.SolveResponse] | type[service.FactorizeAndSolveResponse],
        n: int | None,
        target: Target,
        shape: tuple[int, ...] | None,
        known_version: int | None = None,
    ) -> None:
        self._kind = kind
        self._n = n
        self._target = target
        self._shape = shape
        self._known_version = known_version
        self._factor: FactorRecord | None = None
        self._result: service.SolveResult | None = None

    @property
    def repeatable(self) -> bool:
        """See `Reply`."""
        return self._target.untouched

    def feed(self, message: bytes) -> service.Progress | None:
        """See `Reply`."""
        rest, pieces = _wire.split(message, self._DATA)
        response = parse(self._kind, rest)
        if isinstance(response, service.FactorizeAndSolveResponse) and response.HasField("factor"):
            self._factor = checked_record(response.factor, self._n)
        if response.HasField("header"):
            self._target.begin(response.header.solution)
        for piece in pieces:
            self._target.append(piece)
        if response.HasField("result"):
            self._result = response.result
        return response.progress if response.HasField("progress") else None

    def finish(self) -> Solution:
        """See `Reply`. Issues the warnings."""
        x = self._target.finish()
        if self._result is None:
            raise ProtocolError("the server sent no result")
        if self._target.is_complex_reply and self._result.factor_version == self._known_version:
            raise ProtocolError("the server sent a complex solution of a real system")
        if self._shape is not None:
            x = x.reshape(self._shape)
        solution = results.solution(x, self._result, self._factor)
        if self._factor is not None:
            warn_of_factor(self._factor)
        warn_of_solution(solution)
        return solution

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""
        if isinstance(error, Singular):
            error.factor = self._factor


def warn_of_step(step: results.SeriesStep) -> None:
    """Warn if a step of a series has no solution, or one that needs a check before use."""
    if step.x is None:
        warn("the matrix of a step is singular: it has no solution, and the series goes on without it")
    elif "nearly_singular" in step.warnings:
        warn(
            f"the matrix of a step is nearly singular (its condition is at least "
            f"{step.amplification:.3g}): the solution may have no correct digit"
        )
    elif not step.accurate:
        warn(
            f"the solution of a step has a backward error of {step.backward_error:.3g} instead of "
            f"{step.accuracy:.3g}"
        )


class StepReply:
    """Reply of one round of SolveSeries: the new factor, if one was made, X, and the result.

    Parameters
    ----------
    n : int or None
        Order of the matrix; None if only the server has it.
    target : Target
        Destination of X.
    shape : tuple of int
        Shape of X for the caller.
    factor : FactorRecord or None
        Record of the current factor.
    on_factor : callable
        Receives the record of a new factor as soon as it arrives, because the factor must be released even
        if the rest of the reply fails.
    on_result : callable
        Receives the result of the step.
    """

    repeatable = False
    _DATA = 3

    def __init__(
        self,
        n: int | None,
        target: Target,
        shape: tuple[int, ...],
        factor: FactorRecord | None,
        on_factor: Callable[[FactorRecord], None],
        on_result: Callable[[service.SeriesResult], None],
    ) -> None:
        self._n = n
        self._on_factor = on_factor
        self._on_result = on_result
        self._target = target
        self._shape = shape
        self._factor = factor
        self._result: service.SeriesResult | None = None

    @property
    def done(self) -> bool:
        """Whether the round's last message has arrived."""
        return self._result is not None

    def feed(self, message: bytes) -> service.Progress | None:
        """See `Reply`."""
        rest, pieces = _wire.split(message, self._DATA)
        response = parse(service.SolveSeriesResponse, rest)
        if response.HasField("factor") and response.factor.info == 0:
            self._factor = checked_record(response.factor, self._n)
            self._on_factor(self._factor)
        if response.HasField("header"):
            self._target.begin(response.header.solution)
        for piece in pieces:
            self._target.append(piece)
        if response.HasField("result"):
            self._result = response.result
            self._on_result(response.result)
        return response.progress if response.HasField("progress") else None

    def finish(self) -> results.SeriesStep:
        """See `Reply`. Warnings are issued later, by the owner of the step, because they may be errors."""
        if self._result is None:
            raise ProtocolError("the server sent no result")
        x = self._target.finish().reshape(self._shape) if self._result.solved else None
        return results.series_step(x, self._result, self._factor)

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""


class ComplementReply:
    """Reply of ComputeSchurComplement: the factor of A11, S, and its result."""

    repeatable = True

    def __init__(self, leading_order: int | None, order: int | None, dtype: np.dtype[Any]) -> None:
        self._leading_order = leading_order
        rest = None if order is None or leading_order is None else order - leading_order
        self._target = Target(rest, rest, dtype)
        self._factor: FactorRecord | None = None
        self._result: service.ComplementResult | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        """See `Reply`."""
        rest, pieces = _wire.split(message, 3)
        response = parse(service.ComputeSchurComplementResponse, rest)
        if response.HasField("factor"):
            self._factor = checked_record(response.factor, self._leading_order)
        if response.HasField("header"):
            self._target.begin(response.header.complement)
        for piece in pieces:
            self._target.append(piece)
        if response.HasField("result"):
            self._result = response.result
        return response.progress if response.HasField("progress") else None

    def finish(self) -> results.Complement:
        """See `Reply`. Warnings are issued later, by the owner of the factor, because they may be errors."""
        s = self._target.finish()
        if self._factor is None or self._result is None:
            raise ProtocolError("the server sent no result")
        return results.complement(s, self._result, self._factor)

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""
        if isinstance(error, Singular):
            error.factor = self._factor


class EchelonReply:
    """Reply of ReduceToEchelonForm: the form, and its result."""

    repeatable = True

    def __init__(self, shape: tuple[int, int] | None, dtype: np.dtype[Any]) -> None:
        rows, cols = shape or (None, None)
        self._target = Target(rows, cols, dtype)
        self._result: service.EchelonFormResult | None = None

    def feed(self, message: bytes) -> service.Progress | None:
        """See `Reply`."""
        rest, pieces = _wire.split(message, 3)
        response = parse(service.ReduceToEchelonFormResponse, rest)
        if response.HasField("header"):
            self._target.begin(response.header.form)
        for piece in pieces:
            self._target.append(piece)
        if response.HasField("result"):
            self._result = response.result
        return response.progress if response.HasField("progress") else None

    def finish(self) -> results.EchelonForm:
        """See `Reply`."""
        r = self._target.finish()
        if self._result is None:
            raise ProtocolError("the server sent no result")
        pivots = self._result.pivot_columns
        if self._result.rank != len(pivots) or len(pivots) > min(r.shape):
            raise ProtocolError("the server sent a rank that is not that of its pivots")
        return results.echelon_form(r, self._result)

    def explain(self, error: CroutError) -> None:
        """See `Reply`."""
