"""What a client does with matrices that come one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from crout import _options, _requests
from crout._connection import Connection
from crout._exit import closed_at_exit
from crout._replies import warn_of_step
from crout._series import systems
from crout._transport import Rounds
from crout.errors import CroutError
from crout.factor import Factor, checked_factor
from crout.results import SeriesStep

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crout._options import SeriesOptions


class SeriesCalls(Connection):
    """The call of `crout.Client` that takes a series of matrices."""

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
        """Solve with one matrix after another, each of them near the one before.

        Each step is solved with the factor that is there, starting from the last solution, or with
        a new factor, whichever is expected to cost less in the long run.

        Parameters
        ----------
        matrices : iterable of array_like, sparse matrix, path or None, shape (n, n)
            They may be made while the series runs. None: that of the step before, or of `start`;
            an `Entries` or a `LowRank`: that one, changed, where it is dense; a `Values`: the last
            sparse one, or file with coordinates, with other values.
        rhs : array_like, shape (n,) or (n, nrhs), or iterator of such
            The same for all; from an iterator, such as ``iter([b1, b2])``, one for each.
        x0 : array_like of x's shape, or iterator of such and of None, optional
            Where the iterations of a step start; None: at the x of the step before. An iterator is
            asked when its step is sent, so that a generator may make it of the solutions before.
            Any leads to the same accuracy; zeros are as if there were none.
        start : Factor, optional
            What to begin with; it takes the series' new factors, and stays when the series ends.
        **options
            strategy : {"auto", "reuse", "update", "refactor"}
                "reuse" goes on with the factor that is there as long as it gets X to the accuracy;
                "update" does, and brings it up to each `LowRank` change since it was made.
            accuracy : float
                The backward error that X is to have; 0 for sqrt(n) times the unit roundoff.
            trans : {0, 1, 2, "N", "T", "C"}
                As in `lu_solve`.
            timeout : float
                Seconds, for each step.

            The others are of each factorization, as in `lu_factor`.

        Yields
        ------
        SeriesStep
            ``x``, ``backward_error``, ``strategy``, ``factor``, ... Of a singular matrix ``x`` is None,
            and the series goes on. When the series ends, or is closed, its factor is released,
            unless that was `start`. In asyncio leaving the loop early does not close it at once: use
            `contextlib.aclosing`.

        Raises
        ------
        HandleExpired
            `start`, or the series' factor, was dropped.
        InvalidRequest
            There are fewer right-hand sides or starts than matrices, or more, which shows after the
            last solution; or one of them is a list of arrays; or a start is not like x.
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
                with contextlib.suppress(CroutError):  # Its lease ends it then.
                    self.release(series.factor.handle)
