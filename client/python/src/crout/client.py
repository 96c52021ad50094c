# SPDX-License-Identifier: Apache-2.0
"""The client: a connection to a server, with a method for each call."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from crout import _batch, _handles, _options, _requests
from crout._connection import Connection, server_of, takes_all
from crout._diagnostics import warn_of_step
from crout._options import (
    BatchFactorAndSolveOptions,
    BatchOptions,
    FactorAndSolveOptions,
    FactorizeOptions,
    LuFactorOptions,
    RrefOptions,
    SchurOptions,
    SeriesOptions,
)
from crout._shared import det
from crout._transport import Rounds, closed_at_exit
from crout.batch import BatchFactor
from crout.errors import CroutError
from crout.factor import Factor
from crout.records import SlogDet
from crout.results import BatchSolution, Complement, EchelonForm, SeriesStep, Solution
from crout.series import Series, systems

if TYPE_CHECKING:
    from typing_extensions import Unpack

Array = npt.NDArray[Any]
Arrays = list[Array]
Matrices = Sequence[Array]


@takes_all(server_of)
def connect(*args: Any, **settings: Any) -> Client:
    """Make a client of a Crout server. The first call opens the connection.

    Arguments that are not set come from the environment (``CROUT_TENANT``, ``CROUT_TLS``, ``CROUT_CA``,
    ``CROUT_CERT``, ``CROUT_KEY``, ``CROUT_TOKEN_FILE``), and then, if `address` is the name of a server,
    from the file of servers.

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
    priority : {"interactive", "normal", "batch"}
        Priority of the calls among those of the tenant: the server starts interactive ones first. Make one
        client for each priority.
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
        (A ValueError) An argument or file is invalid, others can read the key or token file, or the token
        would be sent unencrypted.
    UnreadableFile
        (An OSError) A file cannot be read.
    """
    return Client(server_of(*args, **settings))


class Client(Connection):
    """A client of a server, from `connect`.

    Several threads may use it at once. It can be pickled; a process makes one connection for all copies
    that it unpickles. As a context manager, the client is closed at the end of the block.
    """

    _factor_type = Factor
    _batch_type = BatchFactor

    def __repr__(self) -> str:
        return f"<crout.Client of {self._server.address}>"

    @overload
    def lu_factor(self, A: Matrices, **options: Unpack[BatchOptions]) -> BatchFactor: ...
    @overload
    def lu_factor(self, A: Any, **options: Unpack[LuFactorOptions]) -> Factor: ...

    @_options.takes(
        _options.cache_options,
        _options.request_id_option,
        _options.lifetime_options,
        _options.factorize_options,
        _options.call_options,
    )
    def lu_factor(self, A: Any, **options: Any) -> Factor | BatchFactor:
        """Factor a square matrix, P A = L U, or a batch of matrices; the factors stay on the server.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n), or a batch
            A NumPy array (sent without a copy in C and Fortran order), an object with DLPack or
            ``__array__`` (PyTorch, CuPy, ...), a scipy.sparse matrix, or the path of a Matrix Market file
            (plain or gzipped) or of an archive of `scipy.sparse.save_npz`. Integers are converted to
            float64, float16 to float32. The server factors a sparse matrix or coordinate file as sparse if
            it predicts that this is faster; ``factor.record.sparse`` then describes the factor.

            A batch is a list or tuple of matrices or paths of such archives, or an array of shape
            (count, m, n). Nested numbers, ``[[4.0, 1.0], [1.0, 3.0]]``, are one matrix. Members may have any
            shapes, even rectangular or empty, and are converted to a common type. Sparse members, of at most
            2^24 elements, are sent as dense. A member's factors have the same bits in every batch. A batch
            has the options `name`, `lease`, `pin`, `durable`, `request_id`, `on_lost`,
            `release_unreferenced`, `device`, `keep_matrix`, `timeout` and `progress`.
        name : str
            Name in lists of factors; at most 128 bytes of UTF-8.
        lease : str, float or timedelta, optional
            Time that the server keeps an unused factor: "90s", "10m", "1h", or seconds. Default: the
            server's default, often an hour.
        request_id : str
            Makes the call safe to repeat after a lost connection: calls with the same id return the same
            factor. The server finishes the work even if the client disconnects, and keeps the factor even
            if a warning is raised as an error.
        pin : bool
            Pin the factor: the server neither evicts it nor moves it to host memory until it is unpinned or
            released, or its lease ends.
        durable : bool
            Write the factor to the server's disk before the call returns. It then survives a restart of the
            server and is not evicted, until it is released or its lease ends. `InvalidRequest` if the
            server has no store.
        on_lost : {"raise", "refactor"}
            "refactor": keep a copy of A, and factor it again when a use finds that the server has lost the
            factor: after a restart, an eviction, the end of the lease or the loss of a device. The factor
            then has a new handle. A file is not copied, and must not change. "raise": `HandleExpired`.
        release_unreferenced : bool
            Release the factor when the program no longer refers to this object. Only for a factor without
            `name`, `pin`, `durable` and `request_id`. Reading `handle` or `record`, and pickling, ends this,
            because others may then use the factor. Not for asyncio.
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
            "auto": use a lower precision if the server predicts a gain. Cannot be combined with `dtype`.
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
            Called with a `Progress` repeatedly, from any thread. True shows a bar: of tqdm if it is
            installed, otherwise a plain one on the terminal of standard error.

        Returns
        -------
        Factor, or BatchFactor for a batch
            A `LinAlgWarning` is issued for poor growth, quality or condition, and for a singular matrix,
            which is not an error, as in SciPy: the factor has ``info > 0``.

        Raises
        ------
        InvalidRequest
            A is not square or not finite, or an option is invalid.
        NotSupported
            The server lacks the method, or supports it only for other types.
        Overloaded
            The server refused all attempts that the `RetryPolicy` allows, for lack of capacity.
        Unavailable, DeadlineExceeded, NotConverged, ProtocolError
        """
        factor: Factor | BatchFactor = self._run(self._lu_factor(A, options))
        return factor

    @overload
    def solve(
        self,
        A: Matrices,
        b: Iterable[Any],
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchFactorAndSolveOptions],
    ) -> Arrays: ...
    @overload
    def solve(
        self,
        A: Matrices,
        b: Iterable[Any],
        *,
        full_output: Literal[True],
        **options: Unpack[BatchFactorAndSolveOptions],
    ) -> BatchSolution: ...
    @overload
    def solve(
        self, A: Any, b: Any, *, full_output: Literal[False] = False, **options: Unpack[FactorAndSolveOptions]
    ) -> Array: ...
    @overload
    def solve(
        self, A: Any, b: Any, *, full_output: Literal[True], **options: Unpack[FactorAndSolveOptions]
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
    ) -> Array | Solution | Arrays | BatchSolution:
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
            Options of `lu_factor`, except `name`, `lease` and `request_id`, and of `Factor.solve`. A batch
            has the options `device`, `keep_matrix`, `trans`, `verify`, `timeout` and `progress`.

        Returns
        -------
        ndarray, shape of b
            With `full_output` a `Solution`, whose ``x`` is this array. For a batch, the same results as
            from `BatchFactor.solve`, bit for bit; one array if A and b are arrays.

        Raises
        ------
        Singular
            A is singular; ``error.factor`` has the pivot. A singular member of a batch causes a
            `LinAlgWarning` instead.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        result: Array | Solution | Arrays | BatchSolution
        result = self._run(self._factor_and_solve(A, b, full_output, options))
        return result

    @_options.takes(_options.solve_options, _requests.overwrite_option, _options.call_options)
    def lu_solve(self, f: Factor | str, b: Any, trans: _options.Trans = 0, **options: Any) -> Array:
        """Solve with a factor or a handle, like `scipy.linalg.lu_solve`; see `Factor.solve`."""
        return self._run(self._lu_solve(f, b, trans, options))

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
            Options of `lu_factor` for A11; with `keep`, without `name` and `lease`.

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
        result: tuple[Complement, Factor] | Complement
        result = self._run(self._schur_complement(A, leading_order, keep, options))
        return result

    @_options.takes(_options.echelon_options, _options.call_options)
    def rref(self, A: Any, **options: Unpack[RrefOptions]) -> EchelonForm:
        """Compute the reduced row echelon form of a matrix of any shape, by Gauss-Jordan elimination.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (m, n)
            A matrix, or [A B] with right-hand sides.
        **options
            augmented : number of trailing columns that are right-hand sides; these have no pivots.
            tolerance : absolute threshold that pivots must exceed. Default: max(m, k) eps ||A||_inf, where
            the k columns that are not augmented count.
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
        return self._run(self._rref(A, options))

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

        Each step iterates with the current factor, starting at the last solution, or makes a new factor,
        whichever is predicted to cost less over time.

        Parameters
        ----------
        matrices : iterable of array_like, sparse matrix, path or None, shape (n, n)
            The matrix of each step; may be generated while the series runs. None: the matrix of the
            previous step or, in the first step, of `start`. `Entries` or `LowRank`: a change of this
            matrix, if it is dense. `Values`: new values for the last sparse matrix or coordinate file.
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
                "auto": minimize the expected cost. "reuse": keep the factor while X reaches the accuracy.
                "update": like "reuse", and update the factor for each `LowRank` change. "refactor": make a
                factor for each new matrix.
            accuracy : float
                The backward error to reach; 0 for sqrt(n) times the unit roundoff.
            trans : {0, 1, 2, "N", "T", "C", "H"}
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
        return closed_at_exit(self._steps(matrices, rhs, x0, start, options))

    def _steps(
        self, matrices: Iterable[Any], rhs: Any, x0: Any, start: Factor | None, options: Mapping[str, Any]
    ) -> Generator[SeriesStep, None, None]:
        series = Series(None if start is None else self._checked(start).record, options)
        rounds = Rounds(self._transport, "SolveSeries")
        try:
            for A, b, guess in systems(matrices, rhs, x0):
                step = rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            if rounds.close() and start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # the factor then lives until its lease ends
                    self.release(series.factor.handle)

    @_options.takes(_options.factorize_options, _options.call_options)
    def slogdet(self, A: Any, **options: Unpack[FactorizeOptions]) -> SlogDet:
        """Compute the determinant of A, like `numpy.linalg.slogdet`. No factor is kept."""
        return self._run(self._slogdet(A, options))

    @_options.takes(_options.factorize_options, _options.call_options)
    def det(self, A: Any, **options: Unpack[FactorizeOptions]) -> complex:
        """Compute the determinant of A, a float if A is real. It overflows easily: see `slogdet`."""
        return self._run(det(self._slogdet(A, options)))

    def factor(self, handle: str) -> Factor:
        """Return the factor with a handle. Raises `HandleExpired` if the server does not have it.

        ``next(client.list(name))`` is the newest factor with a name.
        """
        factor: Factor = self._run(self._attach(handle))
        return factor

    def list(self, name: str = "") -> Iterator[Factor]:
        """Iterate over the tenant's factors, newest first; with `name`, only over factors with this name."""
        token = ""
        while True:
            page = self._run(_handles.list_factors(name, token))
            for record in page.records:
                yield Factor(self, record)
            token = page.next_page_token
            if not token:
                return
