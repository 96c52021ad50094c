# SPDX-License-Identifier: Apache-2.0
"""Options of calls: their types, and their conversion to protocol messages."""

from __future__ import annotations

import datetime
import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict, TypeVar

import numpy.typing as npt
from google.protobuf.duration_pb2 import Duration

from crout import _payload
from crout._progress import ProgressCallback
from crout.errors import InvalidRequest
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

Algorithm = Literal[
    "auto",
    "getrf",
    "crout_lu",
    "gem",
    "cm",
    "cmpp",
    "pcm",
    "pcmpp",
    "icm",
    "icmpp",
    "block_lu",
    "gauss_jordan",
    "irr_lu",
    "multifrontal",
    "klu",
    "cudss",
    "scalapack",
    "mumps",
    "cusolvermp",
]
Solver = Literal[
    "auto",
    "ss",
    "is",
    "trsm",
    "getrs",
    "crout_solve",
    "multifrontal",
    "klu",
    "cudss",
    "scalapack",
    "mumps",
    "cusolvermp",
]
Precision = Literal["auto", "single", "tf32"]
Strategy = Literal["auto", "reuse", "refactor", "update"]
OnLost = Literal["raise", "refactor"]
Lease = str | float | datetime.timedelta
Trans = Literal[0, 1, 2, "N", "T", "C", "H"]
_OPERATIONS = {
    0: service.OPERATION_NONE,
    "N": service.OPERATION_NONE,
    1: service.OPERATION_TRANSPOSE,
    "T": service.OPERATION_TRANSPOSE,
    2: service.OPERATION_CONJUGATE_TRANSPOSE,
    "C": service.OPERATION_CONJUGATE_TRANSPOSE,
    "H": service.OPERATION_CONJUGATE_TRANSPOSE,
}

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_F = TypeVar("_F", bound=Callable[..., Any])


class CallOptions(TypedDict, total=False):
    """Options of every call that sends or returns a matrix."""

    timeout: float | None
    progress: ProgressCallback | bool


class FactorizeOptions(CallOptions, total=False):
    """Options of a factorization."""

    algorithm: Algorithm
    device: str
    dtype: npt.DTypeLike | None
    precision: Precision | None
    equilibrate: bool | Literal["auto"]
    pivot_threshold: float
    keep_matrix: bool
    rcond: bool
    determinant: bool
    parameters: Mapping[str, Any]


class CacheOptions(TypedDict, total=False):
    """Lease, name, pin and durability of a factor."""

    name: str
    lease: Lease | None
    pin: bool
    durable: bool


class LifetimeOptions(TypedDict, total=False):
    """Options about lost and unreferenced factors."""

    on_lost: OnLost
    release_unreferenced: bool


class LuFactorOptions(FactorizeOptions, CacheOptions, LifetimeOptions, total=False):
    """Options of lu_factor."""

    request_id: str


class SchurOptions(FactorizeOptions, CacheOptions, total=False):
    """Options of schur_complement."""


class RrefOptions(CallOptions, total=False):
    """Options of rref."""

    augmented: int
    tolerance: float | None
    device: str


class RefactorOptions(FactorizeOptions, total=False):
    """Options of refactor."""

    replace_if_singular: bool
    values_only: bool


class SeriesOptions(FactorizeOptions, CacheOptions, total=False):
    """Options of series."""

    strategy: Strategy
    accuracy: float
    trans: Trans


class OperatorOptions(CallOptions, total=False):
    """Options of a solve, without its operation and memory."""

    refine: int
    componentwise: bool
    error_bound: bool
    componentwise_error: bool
    verify: bool
    solver: Solver
    tolerance: float


class SolveOptions(OperatorOptions, total=False):
    """Options of a solve, without its operation."""

    overwrite_b: bool


class FactorAndSolveOptions(FactorizeOptions, SolveOptions, total=False):
    """Options of solve, which factors and solves."""

    trans: Trans


class BatchRefactorOptions(CallOptions, total=False):
    """Options of a batch's refactor."""

    device: str
    keep_matrix: bool


class BatchOptions(BatchRefactorOptions, CacheOptions, LifetimeOptions, total=False):
    """Options of lu_factor for a batch."""

    request_id: str


class BatchSolveOptions(CallOptions, total=False):
    """Options of solving with a batch."""

    trans: Trans
    verify: bool


class BatchFactorAndSolveOptions(BatchRefactorOptions, BatchSolveOptions, total=False):
    """Options of solve for a batch, which factors and solves."""

    members: Iterable[int] | None


def takes(*sources: Callable[..., Any], without: tuple[str, ...] = ()) -> Callable[[_F], _F]:
    """Decorate a function that takes ``**options``: show the keywords of `sources` in its signature.

    Keywords in `without` are not shown. The keywords are declared once, in the functions that convert them
    to messages. Type checkers use the TypedDict.
    """

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        known = {parameter.name for parameter in shown} | set(without)
        for source in sources:
            for parameter in inspect.signature(source).parameters.values():
                if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in known:
                    shown.append(parameter)
                    known.add(parameter.name)
        function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return decorate


def distribute(options: Mapping[str, Any], *sources: Callable[..., Any]) -> list[dict[str, Any]]:
    """Split the options among `sources`. Raises TypeError for an option that none of them takes."""
    known = [_keywords(source) for source in sources]
    for option in options:
        if not any(option in names for names in known):
            there = ", ".join(name for names in known for name in names)
            raise TypeError(f"unexpected keyword argument {option!r}: the options are {there}")
    return [{name: options[name] for name in names if name in options} for names in known]


@functools.cache
def _keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def call_options(
    *, timeout: float | None = None, progress: ProgressCallback | bool = False
) -> dict[str, Any]:
    """Check the options of a call. A `timeout` of None is the client's timeout; inf is no limit."""
    if timeout is not None and not real("timeout", timeout) > 0:
        raise InvalidRequest(
            f"the timeout is {timeout} s: give a positive number of seconds, or None for the client's timeout"
        )
    if not (isinstance(progress, bool) or progress is None or callable(progress)):
        raise _mistyped("progress", progress, "a callable, or True for a bar")
    return {"timeout": timeout, "progress": progress or False}


def text(option: str, value: object) -> str:
    """Return a string that can be sent. Raises TypeError, and InvalidRequest if it is not UTF-8."""
    if not isinstance(value, str):
        raise _mistyped(option, value, "a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"the {option} {value!r} cannot be encoded as UTF-8: remove its surrogate characters"
        ) from None
    return value


def integer(option: str, value: Any, bits: int = 64) -> int:
    """Convert a number for an intN field. Raises TypeError, and InvalidRequest if it is out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise _mistyped(option, value, "an int") from None
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise InvalidRequest(f"the {option} is {number}: give an integer of at most {bits} bits")
    return number


def real(option: str, value: Any) -> float:
    """Convert a number for a double field. Raises TypeError."""
    if isinstance(value, (str, bytes)):
        raise _mistyped(option, value, "a number")
    try:
        return float(value)
    except TypeError:
        raise _mistyped(option, value, "a number") from None


def _mistyped(option: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"the {option} is {value!r}: give {wanted}")


def factorize_options(
    *,
    algorithm: Algorithm = "auto",
    device: str = "",
    dtype: npt.DTypeLike | None = None,
    precision: Precision | None = None,
    equilibrate: bool | Literal["auto"] = "auto",
    pivot_threshold: float = 0.0,
    keep_matrix: bool = True,
    rcond: bool = False,
    determinant: bool = False,
    parameters: Mapping[str, Any] | None = None,
) -> service.FactorizeOptions:
    """Convert the options of a factorization."""
    return service.FactorizeOptions(
        algorithm=_value(factor_pb2.Algorithm, "ALGORITHM_", algorithm, "algorithm"),
        device=text("device", device),
        factor_dtype=(matrix_pb2.DTYPE_UNSPECIFIED if dtype is None else _payload.dtype_code(dtype)),
        precision=(
            factor_pb2.FACTOR_PRECISION_UNSPECIFIED
            if precision is None
            else _value(factor_pb2.FactorPrecision, "FACTOR_PRECISION_", precision, "precision")
        ),
        equilibrate=_equilibrate(equilibrate),
        pivot_threshold=real("pivot_threshold", pivot_threshold),
        keep_matrix=keep_matrix,
        condition=rcond,
        determinant=determinant,
        parameters=None if parameters is None else _parameters(parameters),
    )


def _parameters(given: Mapping[str, Any]) -> service.MethodParameters:
    """Convert the parameters of a method, named as in `_method_parameters`."""
    if not isinstance(given, Mapping):
        raise _mistyped("parameters", given, 'a mapping, such as {"tolerance": 1e-6}')
    known = _keywords(_method_parameters)
    for name in given:
        if name not in known:
            raise TypeError(f"unknown parameter {name!r}: the parameters are {', '.join(known)}")
    return _method_parameters(**given)


def _equilibrate(value: bool | Literal["auto"]) -> service.Equilibrate:
    if value == "auto":
        return service.EQUILIBRATE_AUTO
    if isinstance(value, str):
        raise InvalidRequest(f"equilibrate is {value!r}: use True, False or 'auto'")
    return service.EQUILIBRATE_ON if value else service.EQUILIBRATE_OFF


def _method_parameters(
    *,
    pivot_rule: str | None = None,
    interval: tuple[float, float] = (0.0, 0.0),
    threshold: float = 0.0,
    tolerance: float = 0.0,
    section_size: int = 0,
    block_size: int = 0,
    sweep_limit: int = 0,
    absolute_tolerance: float = 0.0,
    variant: str | None = None,
) -> service.MethodParameters:
    """Convert the parameters of a method. 0 and None select the method's default."""
    rule = service.PIVOT_RULE_UNSPECIFIED
    if pivot_rule is not None:
        rule = _value(service.PivotRule, "PIVOT_RULE_", pivot_rule, "pivot_rule")
    form = factor_pb2.METHOD_VARIANT_UNSPECIFIED
    if variant is not None:
        form = _value(factor_pb2.MethodVariant, "METHOD_VARIANT_", variant, "variant")
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise _mistyped("interval", interval, "a pair of numbers, (low, high)") from None
    return service.MethodParameters(
        pivot_rule=rule,
        interval_low=real("interval", low),
        interval_high=real("interval", high),
        threshold=real("threshold", threshold),
        tolerance=real("tolerance", tolerance),
        section_size=integer("section_size", section_size),
        block_size=integer("block_size", block_size, bits=32),
        sweep_limit=integer("sweep_limit", sweep_limit),
        absolute_tolerance=real("absolute_tolerance", absolute_tolerance),
        variant=form,
    )


def cache_options(
    *, name: str = "", lease: Lease | None = None, pin: bool = False, durable: bool = False
) -> service.CacheOptions:
    """Convert the name and lease of a factor, and whether to pin it and to write it to disk."""
    return service.CacheOptions(
        name=text("name", name), lease=None if lease is None else duration(lease), pin=pin, durable=durable
    )


def lifetime_options(*, on_lost: OnLost = "raise", release_unreferenced: bool = False) -> tuple[bool, bool]:
    """Return whether to make a lost factor again, and whether to release an unreferenced one."""
    if on_lost not in ("raise", "refactor"):
        raise InvalidRequest(f'on_lost is {on_lost!r}: give "raise" or "refactor"')
    return on_lost == "refactor", release_unreferenced


def echelon_options(
    *, augmented: int = 0, tolerance: float | None = None, device: str = ""
) -> service.ReduceToEchelonFormHeader:
    """Return the header of ReduceToEchelonForm, without its matrix."""
    return service.ReduceToEchelonFormHeader(
        augmented_columns=integer("augmented", augmented),
        tolerance=None if tolerance is None else real("tolerance", tolerance),
        device=text("device", device),
    )


def request_id_option(*, request_id: str = "") -> str:
    """Return the id by which a repeated call finds the factor of the first call."""
    return text("request_id", request_id)


def series_options(
    *, strategy: Strategy = "auto", accuracy: float = 0.0, trans: Trans = 0
) -> service.SolveSeriesHeader:
    """Return the header of SolveSeries with its options. `accuracy` is the requested backward error."""
    return service.SolveSeriesHeader(
        strategy=_value(service.SeriesStrategy, "SERIES_STRATEGY_", strategy, "strategy"),
        accuracy=real("accuracy", accuracy),
        operation=operation(trans),
    )


def operation(trans: Trans) -> service.Operation:
    """Convert `trans` to an Operation."""
    if not isinstance(trans, (int, str)):
        raise _mistyped("trans", trans, "0, 1, 2, 'N', 'T', 'C' or 'H'")
    if trans not in _OPERATIONS:
        raise InvalidRequest(
            f"trans is {trans!r}: use 0 for A, 1 for its transpose, 2 for its conjugate transpose"
        )
    return _OPERATIONS[trans]


def solve_options(
    *,
    trans: Trans = 0,
    refine: int = 0,
    componentwise: bool = False,
    error_bound: bool = False,
    componentwise_error: bool = False,
    verify: bool = True,
    solver: Solver = "auto",
    tolerance: float = 0.0,
) -> service.SolveOptions:
    """Convert the options of a solve."""
    return service.SolveOptions(
        operation=operation(trans),
        solver=_value(factor_pb2.Solver, "SOLVER_", solver, "solver"),
        verify=verify,
        error_bound=error_bound,
        max_refinement_steps=integer("refine", refine, bits=32),
        solver_tolerance=real("tolerance", tolerance),
        componentwise_error=componentwise_error,
        refine_componentwise=componentwise,
    )


def lease_seconds(lease: Lease) -> float:
    """Convert a lease to seconds: from a number, a timedelta, or a str such as "90s", "1h30m", "2d"."""
    if isinstance(lease, datetime.timedelta):
        return lease.total_seconds()
    if not isinstance(lease, str):
        return real("lease", lease)
    text = lease.replace(" ", "")
    parts = re.findall(r"(\d+\.?\d*)([a-z]+)", text)
    if "".join(map("".join, parts)) != text or not parts or any(unit not in _SECONDS for _, unit in parts):
        raise InvalidRequest(f'the lease is {lease!r}: give seconds, or "90s", "10m", "1h30m", "2d"')
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def duration(lease: Lease) -> Duration:
    """Convert a lease to a Duration."""
    seconds = lease_seconds(lease)
    if not 0 < seconds <= 315_576_000_000:  # range of a Duration; also rejects nan
        raise InvalidRequest(f"the lease is {lease!r}: give a positive length of at most 10,000 years")
    nanos = max(round(seconds * 1e9), 1)
    return Duration(seconds=nanos // 10**9, nanos=nanos % 10**9)


def _value(enum: Any, prefix: str, word: str, option: str) -> Any:
    known = _words(enum, prefix)
    if not isinstance(word, str):
        raise _mistyped(option, word, f"one of {', '.join(known)}")
    if word not in known:
        raise InvalidRequest(f"unknown {option} {word!r}: use one of {', '.join(known)}")
    return known[word]


@functools.cache
def _words(enum: Any, prefix: str) -> dict[str, Any]:
    """Return the values of an enum by their names in options, without the unspecified value."""
    return {name.removeprefix(prefix).lower(): value for name, value in enum.items() if value != 0}
