# SPDX-License-Identifier: Apache-2.0
"""The client: a connection to a server, with a method for each call."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import threading
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from crout import _batch, _options, _requests
from crout._call import RetryPolicy
from crout._connection import Connection, server_of
from crout._diagnostics import (
    warn_of_batch,
    warn_of_batch_solution,
    warn_of_complement,
    warn_of_echelon_form,
    warn_of_factor,
    warn_of_step,
)
from crout._options import (
    BatchBothOptions,
    BatchOptions,
    FactorAndSolveOptions,
    FactorizeOptions,
    Lease,
    LuFactorOptions,
    RrefOptions,
    SchurOptions,
    SeriesOptions,
)
from crout._transport import Rounds, Server
from crout.batch import BatchFactor
from crout.errors import CroutError
from crout.factor import Factor, Held, checked_factor, handle_of, release_on_error
from crout.results import (
    BatchSolution,
    Complement,
    EchelonForm,
    Estimate,
    FactorRecord,
    SeriesStep,
    SlogDet,
    Solution,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Array = npt.NDArray[Any]
T = TypeVar("T")


def connect(
    address: str | None = None,
    tenant: str | None = None,
    timeout: float | None = None,
    *,
    retry: RetryPolicy | None = None,
    tls: bool | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    server_name: str | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
) -> Client:
    """Make a client of a Crout server. The first call opens the connection.

    Arguments that are not given come from the environment, as for croutctl (``CROUT_TENANT``,
    ``CROUT_TLS``, ``CROUT_CA``, ``CROUT_CERT``, ``CROUT_KEY``, ``CROUT_TOKEN_FILE``). If `address` is the
    name of a server, settings that are still missing come from the file of servers.

    Parameters
    ----------
    address : str, optional
        "host:port" (IPv6 hosts in brackets), "unix:PATH", or the name of a server in the file
        ``$CROUT_SERVERS``, by default ``~/.config/crout/servers.toml``. Default: ``$CROUT_SERVER``, or
        "127.0.0.1:50051".
    tenant : str, optional
        Tenant that owns the factors; 1 to 64 characters of [A-Za-z0-9_.-]. Default: the server's.
    timeout : float, optional
        Seconds for each call, retries included; None for no limit.
    retry : RetryPolicy, optional
        Policy of retries.
    tls : bool, optional
        Use TLS, and verify the server's certificate and the host name in it.
    ca : path, optional
        PEM file of trusted certificate authorities. Default: the authorities of gRPC.
    cert, key : path, optional
        PEM files of a client certificate and its key, for servers that require a certificate. Only the
        owner may have permission to read the key.
    server_name : str, optional
        Name in the server's certificate. Default: the host in `address`.
    token : str, optional
        Bearer token, for servers that require authentication. It is sent only over TLS, a Unix socket or
        loopback. Pickles of the client contain it.
    token_file : path, optional
        File that contains only a token. Only its owner may have permission to read it. Pickles of the
        client contain the path. Give at most one of `token` and `token_file`.

    Returns
    -------
    Client

    Raises
    ------
    InvalidRequest
        A subclass of ValueError. An invalid address, tenant or timeout; a file that is not PEM; a key or
        token file that others can read; a token that would be sent unencrypted.
    UnreadableFile
        A subclass of OSError. A file cannot be read.
    """
    return Client(
        server_of(timeout, retry, address, tenant, tls, ca, cert, key, server_name, token, token_file)
    )


class Client(Connection):
    """A client of a server, from `connect`.

    Several threads may use it at once. It can be pickled; a process makes one connection for all copies
    that it unpickles. As a context manager, the client is closed at the end of the block.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _client_of, (self._server,)

    def __repr__(self) -> str:
        return f"<crout.Client of {self._server.address}>"

    @overload
    def lu_factor(self, A: Sequence[Array], **options: Unpack[BatchOptions]) -> BatchFactor: ...
    @overload
    def lu_factor(self, A: Any, **options: Unpack[LuFactorOptions]) -> Factor: ...

    @_options.takes(
        _options.cache_options,
        _options.request_id_option,
        _options.factorize_options,
        _options.call_options,
    )
    def lu_factor(self, A: Any, **options: Any) -> Factor | BatchFactor:
        """Factor a square matrix, P A = L U, or a batch of matrices; the factors stay on the server.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n), or a batch
            A NumPy array (sent without a copy in C and Fortran order), an object with DLPack or
            ``__array__`` (PyTorch, CuPy, ...), a scipy.sparse matrix, or the path of a Matrix Market file,
            plain or gzipped, or of an archive of `scipy.sparse.save_npz`. Integers are converted to
            float64, float16 to float32. A sparse matrix or a coordinate file is factored as sparse if the
            server predicts that this is faster, otherwise as dense; ``factor.record.sparse`` describes a
            sparse factor.

            A batch is a list or tuple of matrices with two dimensions, or an array of shape (count, m, n).
            Nested numbers, ``[[4.0, 1.0], [1.0, 3.0]]``, are one matrix. Members may have any sizes,
            including rectangular and empty ones. They are converted to the one type that holds them all;
            sparse members, of at most 2^24 elements, are sent dense. The factors of a matrix have the same
            bits in every batch. The options of a batch are `name`, `lease`, `request_id`, `device`,
            `keep_matrix`, `timeout` and `progress`.
        name : str
            Name in lists of factors; at most 128 bytes of UTF-8.
        lease : str, float or timedelta, optional
            Time that the server keeps an unused factor: "90s", "10m", "1h", or seconds. Default: the
            server's default, often an hour.
        request_id : str
            Makes the call safe to repeat after a lost connection: calls with the same id return the same
            factor. The server then finishes the work even if the client disconnects. If a warning is
            raised as an error, the factor stays on the server, because other calls may share it.
        algorithm : str
            A name in `ServerInfo.devices`; "auto" for the fastest method that pivots.
        device : str
            "host", "cuda:0", ...; default: the device expected to finish first.
        dtype : dtype
            Type of L and U, in single or double precision; default: A's type. ``refine=`` refines solves
            with float32 factors to A's accuracy.
        precision : str, optional
            "single" or "tf32": compute L and U of a float64 or complex128 matrix in lower precision and
            correct every solve to A's accuracy. This takes half the bytes and, on a GPU, less time.
            "auto": use a lower precision if the server predicts a gain. Excludes `dtype`.
        equilibrate : bool or "auto"
            Scale rows and columns before factoring; solves apply the scales.
        pivot_threshold : float
            For "multifrontal": smallest ratio of a pivot to the largest entry of its column in the front,
            in (0, 1]; default 0.01. Larger values reduce growth and increase fill-in.
        keep_matrix : bool
            Keep A on the server, for verification, refinement and error bounds.
        rcond : bool
            Also estimate the reciprocal condition number.
        determinant : bool
            Also compute the determinant.
        parameters : mapping, optional
            Parameters of the method: pivot_rule ("partial", "interval", "threshold"), interval (a pair of
            floats), threshold, tolerance, absolute_tolerance, section_size, block_size, sweep_limit, variant
            ("fast", "published"). factorization_service.proto documents them (MethodParameters).
        timeout : float, optional
            Seconds for the whole call, retries included; default: the client's. ``math.inf`` removes the
            client's limit.
        progress : callable or bool
            Called with a `Progress` repeatedly, from any thread. True shows a tqdm bar.

        Returns
        -------
        Factor, or BatchFactor for a batch
            A singular matrix is not an error, as in SciPy: the factor has ``info > 0``, and a
            `LinAlgWarning` is issued. A `LinAlgWarning` is also issued for poor growth, quality or
            condition.

        Raises
        ------
        InvalidRequest
            A is not square or not finite, or an option is invalid.
        NotSupported
            The server lacks the method, or supports it only for other types.
        Overloaded
            The server had no capacity in all attempts that the `RetryPolicy` allows.
        Unavailable, DeadlineExceeded, NotConverged, ProtocolError
        """
        if not _batch.is_batch(A):
            return self._factor_matrix(A, **options)
        record = self._run(_batch.factorize(A, **options))
        factor = BatchFactor(self, record, options.get("lease"))
        # A factor with a request_id stays available for other calls with the id.
        with contextlib.nullcontext() if options.get("request_id") else release_on_error(factor):
            warn_of_batch(record)
        return factor

    def _factor_matrix(self, A: Any, **options: Any) -> Factor:
        record = self._run(_requests.factorize(A, **options))
        factor = Factor(self, record, options.get("lease"))
        with contextlib.nullcontext() if options.get("request_id") else release_on_error(factor):
            warn_of_factor(record)
        return factor

    @overload
    def solve(
        self,
        A: Sequence[Array],
        b: Iterable[Any],
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array]: ...
    @overload
    def solve(
        self,
        A: Sequence[Array],
        b: Iterable[Any],
        *,
        full_output: Literal[True],
        **options: Unpack[BatchBothOptions],
    ) -> BatchSolution: ...
    @overload
    def solve(
        self,
        A: Any,
        b: Any,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[FactorAndSolveOptions],
    ) -> Array: ...
    @overload
    def solve(
        self,
        A: Any,
        b: Any,
        *,
        full_output: Literal[True],
        **options: Unpack[FactorAndSolveOptions],
    ) -> Solution: ...
    @overload
    def solve(
        self, A: Any, b: Any, *, full_output: bool, **options: Unpack[FactorAndSolveOptions]
    ) -> Array | Solution: ...

    @_options.takes(
        _options.solve_options,
        _requests.overwrite_option,
        _batch.members_option,
        _options.factorize_options,
        _options.call_options,
    )
    def solve(
        self, A: Any, b: Any, *, full_output: bool = False, **options: Any
    ) -> Array | Solution | list[Array] | BatchSolution:
        """Factor A and solve A x = b in one call; no factor stays on the server.

        Parameters
        ----------
        A, b
            See `lu_factor` and `Factor.solve`; for a batch `BatchFactor.solve`.
        full_output : bool
            Return a `Solution`, with errors, timings and the record of the factor, instead of x alone.
        members : sequence of int, optional
            Only for a batch: the members to solve with, as in `BatchFactor.solve`.
        **options
            Options of `lu_factor`, except those of the cache, and of `Factor.solve`. Those of a batch are
            `device`, `keep_matrix`, `trans`, `verify`, `timeout` and `progress`.

        Returns
        -------
        ndarray, shape of b
            With `full_output` a `Solution`, whose ``x`` is this array. For a batch the results of
            `BatchFactor.solve`, bit for bit.

        Raises
        ------
        Singular
            A is singular; ``error.factor`` has the pivot. A singular member of a batch causes a
            `LinAlgWarning` instead.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        if _batch.is_batch(A):
            record, solutions = self._run(_batch.factorize_and_solve(A, b, **options))
            warn_of_batch(record)
            warn_of_batch_solution(solutions)
            return solutions if full_output else solutions.x
        solution = self._run(_requests.factorize_and_solve(A, b, **options))
        return solution if full_output else solution.x

    @_options.takes(_options.solve_options, _requests.overwrite_option, _options.call_options)
    def lu_solve(self, f: Factor | str, b: Any, trans: _options.Trans = 0, **options: Any) -> Array:
        """Solve with a factor or a handle, like `scipy.linalg.lu_solve`; see `Factor.solve`."""
        factor = self.factor(f) if isinstance(f, str) else checked_factor(f, Factor)
        return factor._solve(b, trans=trans, **options).x

    @overload
    def schur_complement(
        self, A: Any, leading_order: int, **options: Unpack[SchurOptions]
    ) -> tuple[Complement, Factor]: ...
    @overload
    def schur_complement(
        self, A: Any, *, keep: Iterable[int], **options: Unpack[FactorizeOptions]
    ) -> Complement: ...

    @_options.takes(_options.cache_options, _options.factorize_options, _options.call_options)
    def schur_complement(
        self, A: Any, leading_order: int | None = None, *, keep: Iterable[int] | None = None, **options: Any
    ) -> tuple[Complement, Factor] | Complement:
        """Compute the Schur complement S = A22 - A21 A11^-1 A12.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n)
            [A11 A12; A21 A22]; with `keep`, after a symmetric permutation.
        leading_order : int
            Order of A11, 0 to n.
        keep : sequence of int
            Instead of `leading_order`, for a sparse matrix: the unknowns of A22, 0-based and distinct. A is
            not stored densely, and the factor of A11 is not kept.
        **options
            Options of `lu_factor`, for A11; no name and lease with `keep`.

        Returns
        -------
        complement : Complement
            S with its accuracy. Rows and columns are in the order of A, or of `keep`.
        factor : Factor
            Factor of A11, which stays on the server. With `keep` only `complement` is returned.

        Raises
        ------
        Singular
            A11 is singular.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        complement = self._run(_requests.schur_complement(A, leading_order, keep, **options))
        if keep is not None:
            warn_of_complement(complement)
            return complement
        factor = Factor(self, complement.record, options.get("lease"))
        with release_on_error(factor):
            warn_of_complement(complement)
        return complement, factor

    @_options.takes(_options.echelon_options, _options.call_options)
    def rref(self, A: Any, **options: Unpack[RrefOptions]) -> EchelonForm:
        """Compute the reduced row echelon form of a matrix of any shape, by Gauss-Jordan elimination.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (m, n)
            A matrix, or [A B] with right-hand sides.
        **options
            augmented : number of trailing columns that are right-hand sides; these have no pivots.
            tolerance : absolute; pivots must be larger. Default: max(m, k) eps ||A||_inf, over the k
            columns that are not augmented.
            device, timeout, progress : as in `lu_factor`.

        Returns
        -------
        EchelonForm
            R, rank and pivot columns. A `LinAlgWarning` is issued if they may be wrong because entries grew
            too much.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        form = self._run(_requests.rref(A, **options))
        warn_of_echelon_form(form)
        return form

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
        """Solve a series of systems in which each matrix is close to the previous one.

        Each step iterates with the current factor from the last solution, or makes a new factor, whichever
        is predicted to cost less over time.

        Parameters
        ----------
        matrices : iterable of array_like, sparse matrix, path or None, shape (n, n)
            The matrix of each step; may be generated while the series runs. None: the matrix of the
            previous step or, in the first step, of `start`. `Entries` or `LowRank`: that matrix with a
            change, if it is dense. `Values`: new values for the last sparse matrix or coordinate file.
        rhs : array_like, shape (n,) or (n, nrhs), or iterator of array_like
            One right-hand side for all steps. An iterator, such as ``iter([b1, b2])``, gives one for each
            step.
        x0 : array_like of x's shape, or iterator of array_like or None, optional
            Initial guess of each step; None: the previous x. An iterator is advanced when its step is sent,
            so that a generator may use the previous solutions. The guess does not affect the accuracy;
            zeros are the same as no guess.
        start : Factor, optional
            Factor to start with. A step that makes a new factor replaces it. It is not released at the end.
        **options
            strategy : {"auto", "reuse", "update", "refactor"}
                "auto": the smallest expected cost. "reuse": the current factor while X reaches the
                accuracy. "update": like "reuse", with the factor updated for each `LowRank` change since it
                was made. "refactor": a new factor for each new matrix.
            accuracy : float
                The backward error to reach; 0 for sqrt(n) times the unit roundoff.
            trans : {0, 1, 2, "N", "T", "C"}
                See `Factor.solve`.
            timeout : float
                Seconds for each step.

            All other options are those of each factorization, as in `lu_factor`.

        Yields
        ------
        SeriesStep
            For a singular matrix ``x`` is None, and the series continues. When the series ends or is
            closed, its factor is released, unless it is `start`. In asyncio, leaving the loop early does
            not close the series at once: use `contextlib.aclosing`.

        Raises
        ------
        HandleExpired
            `start`, or the series' factor, is no longer on the server.
        InvalidRequest
            The number of right-hand sides or guesses differs from the number of matrices (a surplus is
            detected after the last solution); `rhs` or `x0` is a list of arrays; or a guess does not have
            x's shape.
        """
        return _closed_at_exit(self._steps(matrices, rhs, x0, start, options))

    def _steps(
        self, matrices: Iterable[Any], rhs: Any, x0: Any, start: Factor | None, options: Mapping[str, Any]
    ) -> Generator[SeriesStep, None, None]:
        record = None if start is None else checked_factor(start, Factor).record
        series = _requests.Series(record, options)
        rounds = Rounds(self._transport, "SolveSeries")
        try:
            for A, b, guess in _requests.systems(matrices, rhs, x0):
                step = rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            if rounds.close() and start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # the factor then lives until its lease ends
                    self.release(series.factor.handle)

    @_options.takes(_options.factorize_options, _options.call_options)
    def slogdet(self, A: Any, **options: Unpack[FactorizeOptions]) -> SlogDet:
        """Sign and logarithm of the determinant of A, like `numpy.linalg.slogdet`. No factor is kept."""
        options["determinant"] = True
        factor = self._factor_matrix(A, **options)
        try:
            return factor.slogdet()
        finally:
            factor.release()

    @_options.takes(_options.factorize_options, _options.call_options)
    def det(self, A: Any, **options: Unpack[FactorizeOptions]) -> complex:
        """Compute the determinant of A, a float if A is real. It overflows easily: see `slogdet`."""
        sign, logarithm = self.slogdet(A, **options)
        return sign * float(np.exp(logarithm))

    def describe(self, f: Held | str) -> FactorRecord:
        """Fetch the current record of a factor or handle."""
        return self._run(_requests.describe(handle_of(f, Factor, Held)))

    def renew(self, f: Held | str, lease: Lease | None = None) -> datetime.datetime:
        """Set the length of a lease, counted from now. Returns its end on the server's clock.

        The default of `lease` is the server's.
        """
        return self._run(_requests.renew(handle_of(f, Factor, Held), lease))

    def release(self, f: Held | str) -> None:
        """Drop a factor. Raises `HandleExpired` if the server does not have it."""
        self._run(_requests.release(handle_of(f, Factor, Held)))

    def factors(self, name: str = "") -> Iterator[Factor]:
        """Iterate over the tenant's factors, newest first; with `name`, only over factors of that name."""
        token = ""
        while True:
            page = self._run(_requests.list_factors(name, token))
            for record in page.records:
                yield Factor(self, record)
            token = page.next_page_token
            if not token:
                return

    def factor(self, handle: str) -> Factor:
        """Return the factor of a handle. Raises `HandleExpired` if the server does not have it.

        For the newest factor of a name: ``next(client.factors(name))``.
        """
        return Factor(self, self.describe(_requests.known_by(handle)))

    @_options.takes(_options.factorize_options)
    def estimate(
        self,
        n: int,
        matrix_dtype: npt.DTypeLike = float,
        *,
        nnz: int | None = None,
        **options: Unpack[FactorizeOptions],
    ) -> Estimate:
        """Estimate the bytes and seconds of `lu_factor` for an n x n matrix of this type.

        `nnz` is the number of entries of a sparse matrix; None for a dense matrix. The estimate for a
        sparse matrix is often rough; ``rough`` is then true.
        """
        return self._run(_requests.estimate(n, matrix_dtype, nnz, **options))


_unpickled: weakref.WeakValueDictionary[Server, Client] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def _client_of(server: Server) -> Client:
    """Return this process's client for an unpickled client of `server`."""
    with _unpickled_lock:
        client = _unpickled.get(server)
        if client is None or client.closed:
            client = _unpickled[server] = Client(server)
        return client


_unfinished: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()

# A child process does not close iterators of its parent.
os.register_at_fork(after_in_child=_unfinished.clear)


def _closed_at_exit(iterator: Generator[T, None, None]) -> Generator[T, None, None]:
    """Register the iterator, so that it is closed at exit if it still exists.

    Its destructor would run too late: while modules are torn down, gRPC's threads do not run.
    """
    _unfinished.add(iterator)
    return iterator


@atexit.register
def _close_all() -> None:
    for iterator in list(_unfinished):
        with contextlib.suppress(ValueError):  # another thread is running it
            iterator.close()
