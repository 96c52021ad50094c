# SPDX-License-Identifier: Apache-2.0
"""Results of calls: solutions, series, complements, echelon forms, estimates and progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from crout.records import FactorRecord, Summarized

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Iterations(Summarized):
    """Record of an iterative method, section by section.

    Attributes
    ----------
    version : int
        Version of the factor.
    sweeps : ndarray of int, shape (sections, sections)
        Sweeps of each section; 0 if the section was eliminated column by column instead.
    pivots : ndarray of int, shape (sections,)
        Row interchanges under each diagonal section.
    bad_elements : ndarray of int, shape (sections,), or None
        Bad elements handled under each diagonal section, including those that were the largest candidate
        themselves. None if the device does not count them.
    """

    _shown = "version sweeps pivots bad_elements"

    version: int
    sweeps: Array
    pivots: Array
    bad_elements: Array | None


@dataclass(frozen=True, repr=False)
class Solution(Summarized):
    """Solution X of op(A) X = B, with its accuracy.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs)
        The solution, with the shape of B. A `DeviceArray` if B is in memory of a GPU.
    backward_error : float or None
        max over the columns of |b - op(A) x| / (|op(A)| |x| + |b|), in the infinity-norm. None if X was not
        verified.
    componentwise_error, forward_error_bound : float or None
        Componentwise backward error, and estimated bound on the relative forward error; on request.
    refinement_steps : int
        Refinement steps whose corrections are in X.
    solver, fallback : str
        Solver that computed X, and the reason why it replaced another solver; "none" if it did not.
    factor_version : int
        Version of the factor that was used.
    device : str
        Device that solved.
    promoted : bool
        Whether the factor was first copied back from host memory.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    factor : FactorRecord or None
        Set if the call also factored.
    corrections : int or None
        Applications of the factor to correct X. Set for a low-precision factor, and for a sparse factor
        with perturbed pivots or with a large ``pivot_growth`` or ``quality``.
    warnings : tuple of str
        "not_accurate": the backward error is too large, or X is not finite. "poor_factor": the factor is
        poor, and the backward error was not computed. "nearly_singular": X may have no correct digit.
    """

    _shown = "x backward_error forward_error_bound solver refinement_steps corrections device warnings"

    x: Array
    backward_error: float | None
    componentwise_error: float | None
    forward_error_bound: float | None
    refinement_steps: int
    solver: str
    fallback: str
    factor_version: int
    device: str
    promoted: bool
    timings: Mapping[str, float]
    factor: FactorRecord | None = None
    corrections: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class SeriesStep(Summarized):
    """One step of a series: the solution X, its accuracy and its cost.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, nrhs), or None
        The solution, with the shape of B; None if the matrix is singular.
    accurate : bool
        Whether the backward error is at most `accuracy`.
    backward_error : float or None
        Backward error as in `Solution`; None without x.
    accuracy : float
        The requested backward error.
    strategy : str
        Strategy that solved the step: "reuse", "update" or "refactor".
    old_iterations, new_iterations : int
        Applications of the previous factor, and of a factor that this step made.
    age : int
        Steps since the current factor was made; 0 if this step made it.
    update_rank : int
        Rank of the changes that the strategy "update" applied; otherwise 0.
    amplification : float
        Lower bound of the matrix's condition number, in the infinity-norm.
    warnings : tuple of str
        Reasons to check the result: "not_accurate", "nearly_singular".
    solver : str
        Solver that computed X.
    factor : FactorRecord or None
        Record of the current factor. Other calls may use its handle until the series ends.
    device : str
        Device that solved.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    _shown = "x accurate backward_error strategy old_iterations new_iterations age solver device warnings"

    x: Array | None
    accurate: bool
    backward_error: float | None
    accuracy: float
    strategy: str
    old_iterations: int
    new_iterations: int
    age: int
    update_rank: int
    amplification: float
    warnings: tuple[str, ...]
    solver: str
    factor: FactorRecord | None
    device: str
    timings: Mapping[str, float]


@dataclass(frozen=True, repr=False)
class Complement(Summarized):
    """The Schur complement of a leading block.

    Attributes
    ----------
    S : ndarray, shape (n - k, n - k)
        A22 - A21 A11^-1 A12, where A11 is k x k.
    backward_error, growth : float or None
        Backward error of the block elimination, and growth of its entries; None if S is empty.
    warnings : tuple of str
        Reasons to check S: "poor_complement". `record` has the warnings about the factor.
    device : str
        Device that computed S.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    record : FactorRecord
        Record of the factor of A11; its handle is "" if the factor was not kept.
    """

    _shown = "S backward_error growth device warnings"

    S: Array
    backward_error: float | None
    growth: float | None
    warnings: tuple[str, ...]
    device: str
    timings: Mapping[str, float]
    record: FactorRecord


@dataclass(frozen=True, repr=False)
class EchelonForm(Summarized):
    """The reduced row echelon form of a matrix.

    Attributes
    ----------
    R : ndarray, shape (m, n)
        The first nonzero of row i < rank is a 1 in column pivots[i]; all other rows are zero there. Rows
        from `rank` on are zero, except in augmented columns.
    rank : int
        Number of rows with a pivot.
    pivots : ndarray of int64, shape (rank,)
        Columns of the pivots, ascending and 0-based.
    tolerance : float
        Absolute threshold for pivots. The default threshold is multiplied by a factor in columns with large
        coefficients; this attribute does not include the factor.
    least_pivot : float or None
        Magnitude of the smallest pivot; None for rank 0.
    largest_rejected : float or None
        Magnitude of the largest candidate in a column without a pivot; None if every column with candidates
        has a pivot. The rank is reliable if this is far below `least_pivot` and there are no warnings.
    growth : float
        Growth of entries in the elimination, at least 1. Rounding errors may have grown by this factor.
    warnings : tuple of str
        "poor_echelon_form": the growth is so large that the rank and R may be wrong.
    device : str
        Device that computed the form.
    timings : Mapping of str to float
        Seconds in each phase, on the server's clock.
    """

    _shown = "R rank tolerance growth device warnings"

    R: Array
    rank: int
    pivots: Array
    tolerance: float
    least_pivot: float | None
    largest_rejected: float | None
    growth: float
    warnings: tuple[str, ...]
    device: str
    timings: Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class BatchSolution(Summarized):
    """Solutions with members of a batch, and their accuracy.

    Attributes
    ----------
    x : list of ndarray, or ndarray
        With the shapes of the right-hand sides; NaN for a singular member. One array if the right-hand
        sides are one array.
    backward_error : ndarray
        Backward error of each solution; NaN if it was not verified or is not finite.
    info : ndarray of int
        The info of each member.
    factor_version : int
        Version of the batch that was used.
    timings : Mapping of str to float
        Seconds in each phase.
    inaccurate : int
        Number of solutions that are not finite or have a large backward error.
    warnings : tuple of str
        Reasons to check the solutions, defined in `Solution`.
    """

    _shown = "x backward_error inaccurate factor_version warnings"

    x: list[Array] | Array
    backward_error: Array
    info: Array
    factor_version: int
    timings: dict[str, float]
    inaccurate: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """Predicted cost of a factorization.

    Attributes
    ----------
    algorithm, device : str
        Method that would run, and its device.
    peak_bytes, cached_bytes : int
        Bytes reserved during the factorization; bytes charged to the cache afterwards.
    predicted_seconds, predicted_queue_seconds : float
        Seconds of the factorization alone; seconds of the jobs ahead of it.
    fits : bool
        Whether `peak_bytes` could be reserved if everything idle were evicted.
    precision : str or None
        "single" or "tf32" if a precision was requested and this lower precision would be used.
    rough : bool
        Whether the estimate is rough, because only the number of entries of a sparse matrix is given.
        Fill-in, bytes and seconds may then be ten times larger or smaller.
    """

    algorithm: str
    device: str
    peak_bytes: int
    cached_bytes: int
    predicted_seconds: float
    predicted_queue_seconds: float
    fits: bool
    precision: str | None = None
    rough: bool = False


@dataclass(frozen=True)
class Progress:
    """Progress of a call.

    Attributes
    ----------
    bytes_sent : int
        Payload bytes passed to gRPC.
    bytes_total : int
        All payload bytes; -1 if unknown.
    phase : str
        "receive", "analyze", "queue", "factor" or "solve"; "" before the server's first report.
    jobs_ahead : int
        Jobs ahead in the queue.
    predicted_seconds : float
        Seconds that the server predicts for the phase; 0 if it has no prediction.
    columns_done, columns : int
        Finished and total columns of L and U; 0 if the method does not report progress.
    steps_done, steps : int
        Finished and total steps of a long analysis of a sparse matrix; 0 in other phases.
    """

    bytes_sent: int
    bytes_total: int = -1
    phase: str = ""
    jobs_ahead: int = 0
    predicted_seconds: float = 0.0
    columns_done: int = 0
    columns: int = 0
    steps_done: int = 0
    steps: int = 0
