# SPDX-License-Identifier: Apache-2.0
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
from crout._call import RetryPolicy
from crout._client_batch import BatchCalls
from crout._client_elimination import EliminationCalls
from crout._client_series import SeriesCalls
from crout._connection import release_on_error, server_of
from crout._diagnostics import warn_of_factor
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
    """Connect to a Crout server. The first call opens the connection.

    Parameters
    ----------
    address : str, optional
        "host:port" (IPv6 hosts in brackets), "unix:PATH", or the name of a server in the file
        ``$CROUT_SERVERS``, by default ``~/.config/crout/servers.toml``. Default: ``$CROUT_SERVER``, or
        "127.0.0.1:50051". Arguments that are not given come from the environment, as for croutctl
        (``CROUT_TENANT``, ``CROUT_TLS``, ``CROUT_CA``, ``CROUT_CERT``, ``CROUT_KEY``,
        ``CROUT_TOKEN_FILE``), and then from that file, which may set all of the below but `timeout`,
        `retry` and `token`.
    tenant : str, optional
        Tenant that owns the factors; 1 to 64 of [A-Za-z0-9_.-]. Default: the server's.
    timeout : float, optional
        Seconds for each call, retries included; None for no limit.
    retry : RetryPolicy, optional
        Policy of retries.
    tls : bool, optional
        Use TLS, and verify the server's certificate and the host name in it.
    ca : path, optional
        PEM file of the authorities that sign servers' certificates. Default: those of gRPC.
    cert, key : path, optional
        PEM files of a client certificate, for servers that require one, and its key. Only the owner may be
        able to read the key.
    server_name : str, optional
        Name in the server's certificate. Default: the address's host.
    token : str, optional
        Bearer token, for servers that require authentication. It is sent only over TLS, a Unix socket or
        loopback. Pickles of the client contain it.
    token_file : path, optional
        File that holds only a token and that only its owner can read. Pickles contain the path. Give at
        most one of `token` and `token_file`.

    Returns
    -------
    Client

    Raises
    ------
    InvalidRequest
        Also a ValueError. An invalid address, tenant or timeout; a file that is not PEM; a key or token
        file that others can read; a token that would be sent unencrypted.
    UnreadableFile
        Also an OSError.
    """
    return Client(
        server_of(timeout, retry, address, tenant, tls, ca, cert, key, server_name, token, token_file)
    )


class Client(BatchCalls, SeriesCalls, EliminationCalls):
    """A connection to a server, from `connect`.

    Several threads may use it at once. It can be pickled; a process makes one connection for all copies
    that it receives. As a context manager it is closed at the end of the block.
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
            A NumPy array (sent without a copy in C and Fortran order), an object with DLPack or
            ``__array__`` (PyTorch, CuPy, ...), a scipy.sparse matrix, or the path of a Matrix Market file,
            plain or gzipped, or of an archive of `scipy.sparse.save_npz`. Integers are converted to
            float64, float16 to float32. A sparse matrix or a coordinate file is factored as sparse if the
            server predicts that this is faster, otherwise as dense; ``factor.record.sparse`` describes a
            sparse factor.
        name : str
            Name for listing; at most 128 bytes of UTF-8.
        lease : str, float or timedelta, optional
            Time that an unused factor is kept: "90s", "10m", "1h", or seconds. Default: the
            server's, often an hour.
        request_id : str
            Makes the call safe to repeat after a lost connection: calls with the same id return the same
            factor. The server then finishes the work even if the caller disconnects. If a warning is
            raised as an error, such a factor stays on the server, because others may share it.
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
            "auto": where the server predicts a gain. Excludes `dtype`.
        equilibrate : bool or "auto"
            Scale rows and columns before factoring; solves apply the scales.
        pivot_threshold : float
            For "multifrontal": smallest ratio of a pivot to the largest entry of its column in the front,
            in (0, 1]; default 0.01. Larger values reduce growth and increase fill-in.
        keep_matrix : bool
            Keep A, for verification, refinement and error bounds.
        rcond : bool
            Also estimate the reciprocal condition number.
        determinant : bool
            Also compute the determinant.
        parameters : mapping, optional
            Parameters of the method: pivot_rule ("partial", "interval", "threshold"), interval, threshold,
            tolerance, absolute_tolerance, section_size, block_size, sweep_limit, variant ("fast",
            "published").
        timeout : float, optional
            Seconds for the whole call, retries included; default: the client's. ``math.inf`` removes the
            client's limit.
        progress : callable or bool
            Called with a `Progress` repeatedly, from any thread. True shows a tqdm bar.

        Returns
        -------
        Factor
            Also for a singular matrix, as in SciPy: ``info > 0`` and a `LinAlgWarning`. There is also a
            `LinAlgWarning` for poor growth, quality or condition.

        Raises
        ------
        InvalidRequest
            A is not square or not finite, or an option is invalid.
        NotSupported
            The server lacks the method, or supports it for other types only.
        Overloaded
            The server asked to retry later more often than the `RetryPolicy` allows.
        Unavailable, DeadlineExceeded, NotConverged, ProtocolError
        """
        record = self._run(_requests.factorize(A, **options))
        factor = Factor(self, record, options.get("lease"))
        # A factor with a request_id stays available for other calls with the id.
        with contextlib.nullcontext() if options.get("request_id") else release_on_error(factor):
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
        """Factor A and solve A x = b in one call; no factor stays on the server.

        Parameters
        ----------
        A, b
            As in `lu_factor` and `Factor.solve`.
        full_output : bool
            Return a `Solution`, with errors, timings and the factor's numbers, instead of x alone.
        **options
            Options of `lu_factor`, except those of the cache, and of `Factor.solve`.

        Returns
        -------
        ndarray, shape of b
            With `full_output` a `Solution`, whose ``x`` is this array.

        Raises
        ------
        Singular
            A is singular; ``error.factor`` has the pivot.
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
        """Sign and logarithm of the determinant of A, as `numpy.linalg.slogdet`; no factor is kept."""
        options["determinant"] = True
        factor = self.lu_factor(A, **options)
        try:
            return factor.slogdet()
        finally:
            factor.release()

    @_options.takes(_options.factorize_options, _options.call_options)
    def det(self, A: Any, **options: Unpack[FactorizeOptions]) -> complex:
        """The determinant of A, a float if A is real. It overflows easily: see `slogdet`."""
        sign, logarithm = self.slogdet(A, **options)
        return sign * float(np.exp(logarithm))

    def factors(self, name: str = "") -> Iterator[Factor]:
        """The tenant's factors, newest first; with `name`, only factors of that name."""
        token = ""
        while True:
            page = self._run(_requests.list_factors(name, token))
            for record in page.records:
                yield Factor(self, record)
            token = page.next_page_token
            if not token:
                return

    def factor(self, handle: str) -> Factor:
        """The factor of a handle. Raises `HandleExpired` if the server has none.

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
        """Bytes and seconds that `lu_factor` of an n x n matrix of this type would take.

        With `nnz`, the number of entries, for a sparse matrix. Such an estimate is often rough; ``rough``
        is then true.
        """
        return self._run(_requests.estimate(n, matrix_dtype, nnz, **options))


_unpickled: weakref.WeakValueDictionary[Server, Client] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def _client_of(server: Server) -> Client:
    """The client of this process for a client pickled in another process."""
    with _unpickled_lock:
        client = _unpickled.get(server)
        if client is None or client.closed:
            client = _unpickled[server] = Client(server)
        return client
