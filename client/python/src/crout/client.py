"""A connection to a server."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from crout import _batch, _options, _requests
from crout._address import check_address, check_tenant
from crout._batch import BatchSolution
from crout._call import Call
from crout._renewal import Renewals
from crout._replies import warn_of_complement, warn_of_factor, warn_of_step
from crout._retry import RetryPolicy
from crout._series import systems
from crout._servers import Said
from crout._tls import Tls, make_tls
from crout._token import Token, make_token
from crout._transport import Rounds, Server, Transport
from crout.batch import BatchFactor, warn_of_batch
from crout.errors import CroutError, InvalidRequest
from crout.factor import Factor, Held, checked_factor, handle_of
from crout.results import (
    Complement,
    EchelonForm,
    Estimate,
    FactorRecord,
    SeriesStep,
    ServerInfo,
    SlogDet,
    Solution,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

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

Array = npt.NDArray[Any]
T = TypeVar("T")

_LONGEST_FAREWELL = 5.0  # seconds that closing waits for a renewal under way


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
    """Connect to a Crout server; the connection is made by the first call.

    Parameters
    ----------
    address : str, optional
        "host:port", with an IPv6 host in brackets, "unix:PATH", or the name of a server in the file
        ``$CROUT_SERVERS``, else ``~/.config/crout/servers.toml``, which may say all of the below but
        `timeout`, `retry` and `token`. ``$CROUT_SERVER`` unless given, else "127.0.0.1:50051".
        What is not given comes from the environment, as for croutctl (``CROUT_TENANT``, ``CROUT_TLS``,
        ``CROUT_CA``, ``CROUT_CERT``, ``CROUT_KEY``, ``CROUT_TOKEN_FILE``), and then from that file.
    tenant : str, optional
        Whose factors these are; 1 to 64 of [A-Za-z0-9_.-]. The server's default unless given.
    timeout : float, optional
        Seconds for each call, repetitions included; None for no limit.
    retry : RetryPolicy, optional
        How refused calls are tried again.
    tls : bool, optional
        The server speaks TLS; its certificate, and the address's host in it, are checked.
    ca : path, optional
        PEM: who signs servers' certificates. The authorities that gRPC brings unless given.
    cert, key : path, optional
        PEM: a certificate to show the server, where it wants one, and its key, which only its owner
        can read.
    server_name : str, optional
        The name that the server's certificate has to have; the address's host unless given.
    token : str, optional
        A bearer token, by which a server that asks knows who calls: with TLS, on a Unix socket or on
        loopback. It is in pickles of the client.
    token_file : path, optional
        The same in a file of its own, which only its owner can read; pickles have its path. At most one
        of the two.

    Returns
    -------
    Client

    Raises
    ------
    InvalidRequest
        A ValueError, too. For an address, a tenant or a timeout that no server can be reached with, and
        for files that are no PEM, a key or a token's file that others can read, and a token that could
        be read on its way.
    UnreadableFile
        An OSError, too.
    """
    return Client(
        server_of(timeout, retry, address, tenant, tls, ca, cert, key, server_name, token, token_file)
    )


def _path_text(value: str | os.PathLike[str] | None) -> str | None:
    """As a text."""
    return None if value is None else os.fspath(value)


def server_of(
    timeout: float | None,
    retry: RetryPolicy | None,
    address: str | None,
    tenant: str | None,
    tls: bool | None,
    ca: str | os.PathLike[str] | None,
    cert: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    server_name: str | None,
    token: str | None,
    token_file: str | os.PathLike[str] | None,
) -> Server:
    """What `connect` was given, with what the environment and the file of servers say, checked."""
    ca, cert, key, token_file = map(_path_text, (ca, cert, key, token_file))
    said = Said(address, tenant, tls, ca, cert, key, server_name, token, token_file).whole()
    where, by_tls = said.address or "", bool(said.tls)
    shown = make_token(said.token, said.token_file, where, by_tls)
    made = make_tls(by_tls, said.ca, said.cert, said.key, said.server_name)
    return make_server(where, said.tenant, timeout, retry, made, shown)


def make_server(
    address: str,
    tenant: str | None,
    timeout: float | None,
    retry: RetryPolicy | None,
    tls: Tls | None = None,
    token: Token | None = None,
) -> Server:
    """What `connect` was given, checked."""
    check_address(address)
    if tenant is not None:
        check_tenant(tenant)
    if timeout == math.inf:
        timeout = None
    if timeout is not None and not timeout > 0:
        raise InvalidRequest(f"the timeout is {timeout} s: give a positive one, or None for none")
    return Server(address, tenant, timeout, retry or RetryPolicy(), tls, token)


class Client:
    """A connection to a server, from `connect`.

    It may be used by several threads at once, and pickled: a process makes one connection of all the
    copies that it gets. Used as a context manager it is closed at the end.
    """

    def __init__(self, server: Server) -> None:
        self.closed = False
        self._server = server
        self._transport = Transport(server)
        self._renewals = Renewals(lambda handle, lease: self.renew(handle, lease))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; calls under way raise `Cancelled`, and later ones, too.

        Factors stay on the server until their leases end.
        """
        self.closed = True
        self._renewals.close()
        self._transport.close()  # Ends the renewal under way, whose server may not answer.
        self._renewals.join(_LONGEST_FAREWELL)

    def __repr__(self) -> str:
        return f"<crout.Client of {self._server.address}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _client_of, (self._server,)

    def _run(self, call: Call[T]) -> T:
        return self._transport.run(call)

    @_options.takes(
        _options.cache_options,
        _options.request_id_option,
        _options.factorize_options,
        _options.call_options,
    )
    def lu_factor(self, A: Any, **options: Unpack[LuFactorOptions]) -> Factor:
        """Factor a square matrix, P A = L U; the factors stay on the server.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n)
            A NumPy array (C- and Fortran-ordered ones go without a copy), anything with DLPack or
            ``__array__`` (PyTorch, CuPy, ...), a scipy.sparse matrix, or the path of a Matrix Market
            file, plain or gzipped. Integers are converted to float64, float16 to float32. A sparse
            matrix, or a file with coordinates, stays sparse, L and U too, where that is expected to
            take less time: ``factor.record.sparse`` says what became of it. Others are filled up.
        name : str
            To find it by; at most 128 bytes of UTF-8.
        lease : str, float or timedelta, optional
            How long the factor lives unless it is used: "90s", "10m", "1h", or seconds. The server's
            default, often an hour, unless given.
        request_id : str
            Makes the call safe to repeat after a lost connection: whoever asks with the same id gets
            the same factor. The server then goes on with it though the caller is gone. A warning that
            is an error leaves such a factor on the server, as others may share it.
        algorithm : str
            As `ServerInfo.devices` names them; "auto" for the fastest that pivots.
        device : str
            "host", "cuda:0", ...; where it is done first unless given.
        dtype : dtype
            Of L and U, in either precision; A's unless given. Solves with float32 factors are refined
            to A's accuracy by ``refine=``.
        precision : str, optional
            "single" or "tf32": L and U of a float64 or complex128 matrix in less than that, half the
            bytes and on a GPU less time, and every solve corrected to A's accuracy. "auto": where that
            is expected to gain time. Instead of `dtype`.
        equilibrate : bool or "auto"
            Scale rows and columns before factoring, transparently to solves.
        keep_matrix : bool
            Keep A too, as verification, refinement and error bounds need.
        rcond : bool
            Estimate the reciprocal condition number along with it.
        determinant : bool
            Compute the determinant.
        parameters : mapping, optional
            Of the method: pivot_rule ("partial", "interval", "threshold"), interval, threshold,
            tolerance, absolute_tolerance, section_size, block_size, sweep_limit, variant ("fast",
            "published").
        timeout : float, optional
            Seconds for the whole call, repetitions included; the client's unless given. ``math.inf``
            for no limit where the client has one.
        progress : callable or bool
            Called with a `Progress` now and then, from any thread; True: a bar of tqdm.

        Returns
        -------
        Factor
            Of a singular matrix too, as in SciPy: ``info > 0``, and a `LinAlgWarning`, which there
            also is where growth, quality or condition are poor.

        Raises
        ------
        InvalidRequest
            A is not square or not finite, or an option makes no sense.
        NotSupported
            The server has no such method, or not for A's type.
        Overloaded
            After the server asked for patience more often than the `RetryPolicy` has it.
        Unavailable, DeadlineExceeded, NotConverged, ProtocolError
        """
        record = self._run(_requests.factorize(A, **options))
        factor = Factor(self, record, options.get("lease"))
        # One with a request_id is there for whoever asks with it.
        with contextlib.nullcontext() if options.get("request_id") else _dropped_after_an_error(factor):
            warn_of_factor(record)
        return factor

    @_options.takes(
        _options.cache_options,
        _options.request_id_option,
        _batch.batch_options,
        _options.call_options,
    )
    def lu_factor_batch(self, matrices: Iterable[Any], **options: Unpack[BatchOptions]) -> BatchFactor:
        """Factor many matrices of different sizes at once; the factors stay on the server.

        What becomes of a matrix does not depend on the others: each has the bits that it has alone.

        Parameters
        ----------
        matrices : sequence of array_like, shape (m_i, n_i), or array, shape (count, m, n)
            Of any sizes, rectangular and empty ones too, in the one type that holds them all.
        name, lease, request_id
            As in `lu_factor`.
        device : str
            "host", ...; where it is done first unless given.
        keep_matrix : bool
            Keep the matrices too, as backward errors need.
        timeout, progress
            As in `lu_factor`.

        Returns
        -------
        BatchFactor
            With singular members too: their ``info`` is not 0, and there is a `LinAlgWarning`, which
            there also is where factors are poor or hold NaN.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        record = self._run(_batch.factorize(matrices, **options))
        factor = BatchFactor(self, record, options.get("lease"))
        # One with a request_id is there for whoever asks with it.
        with contextlib.nullcontext() if options.get("request_id") else _dropped_after_an_error(factor):
            warn_of_batch(record)
        return factor

    @overload
    def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array]: ...
    @overload
    def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: Literal[True],
        **options: Unpack[BatchBothOptions],
    ) -> BatchSolution: ...

    @_options.takes(_batch.placement, _batch.batch_solve_options, _options.call_options)
    def solve_batch(
        self,
        matrices: Iterable[Any],
        b: Iterable[Any],
        members: Iterable[int] | None = None,
        *,
        full_output: bool = False,
        **options: Unpack[BatchBothOptions],
    ) -> list[Array] | BatchSolution:
        """Factor many matrices of different sizes and solve with them, in one call that keeps nothing.

        Parameters
        ----------
        matrices : sequence of array_like
            As in `lu_factor_batch`.
        b, members, full_output, trans, verify
            As in `BatchFactor.solve`.
        device, timeout, progress
            As in `lu_factor_batch`.

        Returns
        -------
        list of ndarray
            As `BatchFactor.solve`, with the same bits; a `LinAlgWarning` tells of singular members.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        record, solution = self._run(_batch.factorize_and_solve(matrices, b, members, **options))
        warn_of_batch(record)
        return solution if full_output else solution.x

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
        _options.factorize_options,
        _options.call_options,
    )
    def solve(
        self,
        A: Any,
        b: Any,
        *,
        full_output: bool = False,
        **options: Unpack[FactorAndSolveOptions],
    ) -> Array | Solution:
        """Factor A and solve A x = b in one call; no factor stays behind.

        Parameters
        ----------
        A, b
            As in `lu_factor` and `Factor.solve`.
        full_output : bool
            Return a `Solution`, with errors, timings and the factor's numbers, instead of x alone.
        **options
            Of `lu_factor`, without those of its cache, and of `Factor.solve`.

        Returns
        -------
        ndarray, shape of b
            Or the `Solution` that has it as ``x``.

        Raises
        ------
        Singular
            A is; ``error.factor`` says where.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        solution = self._run(_requests.factorize_and_solve(A, b, **options))
        return solution if full_output else solution.x

    @_options.takes(_options.solve_options, _requests.overwrite_option, _options.call_options)
    def lu_solve(self, f: Factor | str, b: Any, trans: _options.Trans = 0, **options: Any) -> Array:
        """Solve with a factor, or a handle, as `scipy.linalg.lu_solve`; see `Factor.solve`."""
        factor = self.factor(f) if isinstance(f, str) else checked_factor(f, Factor)
        return factor._solve(b, trans=trans, **options).x

    @_options.takes(_options.cache_options, _options.factorize_options, _options.call_options)
    def schur_complement(
        self, A: Any, leading_order: int, **options: Unpack[SchurOptions]
    ) -> tuple[Complement, Factor]:
        """Eliminate the leading block: S = A22 - A21 A11^-1 A12.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n)
            [A11 A12; A21 A22].
        leading_order : int
            Order of A11, 0 to n.
        **options
            Of `lu_factor`, for A11.

        Returns
        -------
        complement : Complement
            S, of shape (n - leading_order, n - leading_order), and how far it can be trusted.
        factor : Factor
            Of A11, which stays on the server.

        Raises
        ------
        Singular
            A11 is.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        complement = self._run(_requests.schur_complement(A, leading_order, **options))
        factor = Factor(self, complement.record, options.get("lease"))
        with _dropped_after_an_error(factor):
            warn_of_complement(complement)
        return complement, factor

    @_options.takes(_options.echelon_options, _options.call_options)
    def rref(self, A: Any, **options: Unpack[RrefOptions]) -> EchelonForm:
        """Reduced row echelon form of a matrix of any shape, by Gauss-Jordan elimination.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (m, n)
            A matrix, or [A B] with right-hand sides.
        **options
            augmented : the last so many columns are right-hand sides: they hold no pivots.
            tolerance : absolute; what is no larger is no pivot. max(m, k) eps ||A||_inf, of the k
            columns that are not augmented, unless given.
            device, timeout, progress : as of `lu_factor`.

        Returns
        -------
        EchelonForm
            R, rank and pivot columns.

        Raises
        ------
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._run(_requests.rref(A, **options))

    @_options.takes(_options.factorize_options, _options.call_options)
    def schur_complement_of(self, A: Any, keep: Any, **options: Unpack[FactorizeOptions]) -> Complement:
        """Eliminate all but chosen unknowns of a sparse matrix, which stays sparse.

        Parameters
        ----------
        A : sparse matrix or path, shape (n, n)
        keep : sequence of int
            The unknowns that stay, from 0, different ones.
        **options
            Of `lu_factor`, for the block of all others, A11; its factor does not stay.

        Returns
        -------
        Complement
            S, with rows and columns in the order of `keep`, and how far it can be trusted.

        Raises
        ------
        Singular
            A11 is.
        InvalidRequest, NotSupported, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        complement = self._run(_requests.schur_complement_of(A, keep, **options))
        warn_of_complement(complement)
        return complement

    @_options.takes(_options.factorize_options, _options.call_options)
    def slogdet(self, A: Any, **options: Unpack[FactorizeOptions]) -> SlogDet:
        """Sign and logarithm of the determinant of A, as `numpy.linalg.slogdet`; no factor stays."""
        options["determinant"] = True
        factor = self.lu_factor(A, **options)
        try:
            return factor.slogdet()
        finally:
            factor.release()

    @_options.takes(_options.factorize_options, _options.call_options)
    def det(self, A: Any, **options: Unpack[FactorizeOptions]) -> complex:
        """The determinant of A, a float where A is real, which overflows early: see `slogdet`."""
        sign, logarithm = self.slogdet(A, **options)
        return sign * float(np.exp(logarithm))

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
        record = None if start is None else checked_factor(start, Factor).record
        series = _requests.Series(record, options)
        rounds = Rounds(self._transport, "SolveSeries")
        try:
            for A, b, guess in systems(matrices, rhs, x0):
                step = rounds.exchange(series.step(A, b, guess))
                warn_of_step(step)
                yield step
        finally:
            rounds.close()
            if start is None and series.factor is not None:
                with contextlib.suppress(CroutError):  # Its lease ends it then.
                    self.release(series.factor.handle)

    def factors(self, name: str = "") -> Iterator[Factor]:
        """The tenant's factors, newest first; of this name alone, if one is given."""
        token = ""
        while True:
            page = self._run(_requests.list_factors(name, token))
            for record in page.records:
                yield Factor(self, record)
            token = page.next_page_token
            if not token:
                return

    def factor(self, handle: str) -> Factor:
        """The factor of a handle. Raises `HandleExpired` where the server has none."""
        return Factor(self, self.describe(handle))

    def describe(self, f: Held | str) -> FactorRecord:
        """What the server knows now of a factor, or a handle."""
        return self._run(_requests.describe(_handle(f)))

    def renew(self, f: Held | str, lease: Lease | None = None) -> datetime.datetime:
        """Give a lease another length, counted from now; when it ends, on the server's clock."""
        return self._run(_requests.renew(_handle(f), lease))

    def release(self, f: Held | str) -> None:
        """Drop a factor. Raises `HandleExpired` where the server has none."""
        self._run(_requests.release(_handle(f)))

    @_options.takes(_options.factorize_options)
    def estimate(
        self, n: int, matrix_dtype: npt.DTypeLike = float, **options: Unpack[FactorizeOptions]
    ) -> Estimate:
        """Bytes and seconds that `lu_factor` of an n x n matrix of that type would take."""
        return self._run(_requests.estimate(n, matrix_dtype, **options))

    def server_info(self) -> ServerInfo:
        """The server's version, devices and limits."""
        return self._run(_requests.server_info())


@contextlib.contextmanager
def _dropped_after_an_error(factor: Held) -> Iterator[None]:
    """For warnings that are errors, as filters may want it: nobody would have the handle."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(CroutError):  # Its lease ends it then; the warning is the news.
            factor.release()
        raise


def _handle(f: Held | str) -> str:
    return f.handle if isinstance(f, Held) else handle_of(f, Factor)


_unpickled: weakref.WeakValueDictionary[Server, Client] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def _client_of(server: Server) -> Client:
    """The client of this process for what was pickled in another."""
    with _unpickled_lock:
        client = _unpickled.get(server)
        if client is None or client.closed:
            client = _unpickled[server] = Client(server)
        return client
