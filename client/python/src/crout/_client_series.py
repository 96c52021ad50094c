# SPDX-License-Identifier: Apache-2.0
"""The series call of a client."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from crout import _options, _requests
from crout._connection import Connection
from crout._diagnostics import warn_of_step
from crout._exit import closed_at_exit
from crout._series_inputs import systems
from crout._transport import Rounds
from crout.errors import CroutError
from crout.factor import Factor, checked_factor
from crout.results import SeriesStep

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crout._options import SeriesOptions


class SeriesCalls(Connection):
    """The call of `crout.Client` for a series of matrices."""

    @_options.takes(
        _options.series_options, _options.factorize_options, _options.cache_options, _options.call_options
    )
    def series(
        self,
        matrices: Iterable[Any],
        rhs: Any,
        *,
        x0: Any = None,
        start: Factor | None = None,
        **options: Unpack[SeriesOptions],
    ) -> Iterator[SeriesStep]:
        """Solve with one matrix after another, each of them close to the previous one.

        Each step uses the current factor, starting from the last solution, or makes a new factor,
        whichever is predicted to cost less over time.

        Parameters
        ----------
        matrices : iterable of array_like, sparse matrix, path or None, shape (n, n)
            May be generated while the series runs. None: the matrix of the previous step, or of `start`.
            An `Entries` or a `LowRank`: that matrix with a change, if it is dense. A `Values`: new values
            for the last sparse matrix or coordinate file.
        rhs : array_like, shape (n,) or (n, nrhs), or iterator of such
            The same for all steps; from an iterator, such as ``iter([b1, b2])``, one for each.
        x0 : array_like of x's shape, or iterator of such and of None, optional
            Initial guess of a step; None: the previous x. An iterator is advanced when its step is sent,
            so that a generator may use the previous solutions. The guess does not affect the accuracy;
            zeros are the same as no guess.
        start : Factor, optional
            Factor to start with. New factors of the series replace it, and it stays at the end.
        **options
            strategy : {"auto", "reuse", "update", "refactor"}
                "reuse" uses the current factor while X reaches the accuracy. "update" also applies each
                `LowRank` change since it was made.
            accuracy : float
                The backward error to reach; 0 for sqrt(n) times the unit roundoff.
            trans : {0, 1, 2, "N", "T", "C"}
                As in `lu_solve`.
            timeout : float
                Seconds, for each step.

            All others are options of each factorization, as in `lu_factor`.

        Yields
        ------
        SeriesStep
            ``x``, ``backward_error``, ``strategy``, ``factor``, ... For a singular matrix ``x`` is None,
            and the series continues. When the series ends or is closed, its factor is released, unless it
            is `start`. In asyncio, leaving the loop early does not close the series at once: use
            `contextlib.aclosing`.

        Raises
        ------
        HandleExpired
            `start`, or the series' factor, is no longer on the server.
        InvalidRequest
            There are not as many right-hand sides or guesses as matrices (a surplus is detected
            after the last solution); one of them is a list of arrays; or a guess does not have
            x's shape.
        """
        return closed_at_exit(self._steps(matrices, rhs, x0, start, options))

    def _steps(
        self, matrices: Iterable[Any], rhs: Any, x0: Any, start: Factor | None, options: Mapping[str, Any]
    ) -> Generator[SeriesStep, None, None]:
        record = None if start is None else checked_factor(start, Factor).record
        series = _requests.Series(record, options)
        rounds = Rounds(self._transport, "SolveSeries")
        try:
            for A, b, guess in systems(matrices, rhs, x0):
                step = rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            if rounds.close() and start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # if this fails, the lease ends it
                    self.release(series.factor.handle)
