"""A connection to a server."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from crout import _options, _requests
from crout._client_batch import BatchCalls
from crout._client_elimination import EliminationCalls
from crout._client_series import SeriesCalls
from crout._connection import dropped_after_an_error, server_of
from crout._replies import warn_of_factor
from crout._retry import RetryPolicy
from crout._transport import Server
from crout.factor import Factor, checked_factor
from crout.results import Estimate, SlogDet, Solution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crout._options import FactorAndSolveOptions, FactorizeOptions, LuFactorOptions

Array = npt.NDArray[Any]


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


class Client(BatchCalls, SeriesCalls, EliminationCalls):
    """A connection to a server, from `connect`.

    It may be used by several threads at once, and pickled: a process makes one connection of all the
    copies that it gets. Used as a context manager it is closed at the end.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _client_of, (self._server,)

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
            file, plain or gzipped, or of an archive of `scipy.sparse.save_npz`. Integers are converted
            to float64, float16 to float32. A sparse matrix, or a file with coordinates, stays sparse,
            L and U too, where that is expected to take less time: ``factor.record.sparse`` says what
            became of it. Others are filled up.
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
        pivot_threshold : float
            Of "multifrontal": the part of the largest entry of its column in a front that a pivot has
            at least, in (0, 1]; 0.01 unless given. Larger: entries grow less, and L and U fill in more.
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
        with contextlib.nullcontext() if options.get("request_id") else dropped_after_an_error(factor):
            warn_of_factor(record)
        return factor

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
        """The factor of a handle. Raises `HandleExpired` where the server has none.

        By a name, the newest: ``next(client.factors(name))``.
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
        """Bytes and seconds that `lu_factor` of an n x n matrix of that type would take.

        Of a sparse one, where `nnz` says its number of entries: most often a guess, as ``rough`` tells.
        """
        return self._run(_requests.estimate(n, matrix_dtype, nnz, **options))


_unpickled: weakref.WeakValueDictionary[Server, Client] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def _client_of(server: Server) -> Client:
    """The client of this process for what was pickled in another."""
    with _unpickled_lock:
        client = _unpickled.get(server)
        if client is None or client.closed:
            client = _unpickled[server] = Client(server)
        return client
