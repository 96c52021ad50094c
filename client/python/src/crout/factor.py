# SPDX-License-Identifier: Apache-2.0
"""Factors on the server, identified by handles."""

from __future__ import annotations

import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from crout import _handles, _options, _requests
from crout._connection import Connection
from crout._lifetime import Cached
from crout._linalg import PackedFactors, SparseFactors
from crout._options import FactorizeOptions, Lease, OperatorOptions, RefactorOptions, SolveOptions, Trans
from crout._shared import FactorView, det
from crout.errors import CroutError, HandleExpired
from crout.records import FactorRecord, SlogDet
from crout.results import Estimate, Iterations, Solution

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


Array = npt.NDArray[Any]


class Held(Cached[Any]):
    """A factor or batch on the server. A ``with`` block renews its lease and then releases it."""

    _client: Connection
    _renewed: float | None = None  # the lease in seconds, in a ``with`` block

    def __enter__(self) -> Self:
        """Renew the lease in the background until the block ends."""
        if self._lease is None:
            lease = self._client.server_info().default_lease
        else:
            lease = _options.lease_seconds(self._lease)
        self._client._renewals.hold(self._handle, lease)
        self._renewed = lease
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the factor. It is not an error if the server no longer has it."""
        self._renewed = None
        try:
            self.release()
        except HandleExpired:
            pass
        except CroutError:
            if error is None:  # must not hide the error of the block
                raise

    def _hold_again(self, lost: str) -> None:
        if self._renewed is not None:
            self._client._renewals.drop(lost)
            self._client._renewals.hold(self._handle, self._renewed)

    def describe(self) -> FactorRecord:
        """Fetch the current record from the server: tier, lease, version."""
        return self._client._run(self._with_handle(_handles.describe))

    def pin(self) -> None:
        """Pin the factor: the server neither evicts it nor moves it to host memory. Restarts the lease.

        Pins count in ``server_info().max_pinned_bytes``, beyond which `Overloaded` is raised. A pin ends with
        `unpin`, with the factor's release, and when the lease ends.
        """
        return self._client._run(self._set_pin(True))

    def unpin(self) -> None:
        """Permit eviction again."""
        return self._client._run(self._set_pin(False))

    def renew(self, lease: Lease | None = None) -> datetime.datetime:
        """Set the lease's length, counted from now. Returns its end on the server's clock.

        The default of `lease` is the server's. In a ``with`` block, later renewals use the new length.
        """
        end = self._client._run(self._with_handle(lambda handle: _handles.renew(handle, lease)))
        self._lease = lease
        self._remember(lease=lease)
        if self._client._renewals.holds(self._handle):
            self.__enter__()
        return end

    def release(self) -> None:
        """Release the factor on the server. Running calls finish; later calls raise `HandleExpired`."""
        self._client._renewals.drop(self._handle)
        self._client._run(_handles.release(self._handle))


class Factor(FactorView, Held):
    """An LU factorization on the server, from `Client.lu_factor`.

    Several threads may use it at once. It can be pickled; the copy refers to the same factor on the server.
    A ``with`` block renews the lease in the background and releases the factor at its end. Otherwise the
    factor lives until its lease ends. In either case memory pressure may evict it, unless it is pinned
    (`pin`), and a restart of the server ends it, unless it is durable; ``on_lost="refactor"`` of
    `Client.lu_factor` makes it again.

    All methods raise subclasses of `CroutError`; `HandleExpired` if the server no longer has the factor.
    """

    _client: Connection

    @overload
    def solve(
        self,
        b: Any,
        trans: Trans = 0,
        *,
        full_output: Literal[False] = False,
        **options: Unpack[SolveOptions],
    ) -> Array: ...
    @overload
    def solve(
        self, b: Any, trans: Trans = 0, *, full_output: Literal[True], **options: Unpack[SolveOptions]
    ) -> Solution: ...
    @overload
    def solve(
        self, b: Any, trans: Trans = 0, *, full_output: bool, **options: Unpack[SolveOptions]
    ) -> Array | Solution: ...

    @_options.takes(_options.solve_options, _requests.overwrite_option, _options.call_options)
    def solve(
        self, b: Any, trans: Trans = 0, *, full_output: bool = False, **options: Unpack[SolveOptions]
    ) -> Array | Solution:
        """Solve A x = b, or a system with the transpose of A.

        Parameters
        ----------
        b : array_like, shape (n,) or (n, nrhs), or path of a Matrix Market file
            Accepts the types of `Client.lu_factor`; a sparse b is expanded to dense.
        trans : {0, 1, 2} or {"N", "T", "C", "H"}
            0: A x = b. 1: A^T x = b. 2, "C" and "H": A^H x = b.
        full_output : bool
            Return a `Solution`, with the errors and timings, instead of x alone.
        refine : int
            Largest number of refinement steps, with residuals in float64; 0 to 100. Ignored if
            solves are corrected (`Solution.corrections`).
        componentwise : bool
            Refine until the componentwise backward error is small, instead of the normwise one.
        error_bound : bool
            Estimate a bound on the forward error, at the cost of a few solves. A `LinAlgWarning` is issued
            if the bound is 1 or more.
        componentwise_error : bool
            Compute the componentwise backward error.
        verify : bool
            Compute the backward error. A `LinAlgWarning` is issued if it is too large.
        solver : str
            A name in `ServerInfo.devices`; "auto" for the fastest.
        tolerance : float
            Tolerance of the iterative solver, "is".
        overwrite_b : bool
            Allow x to use b's memory, if b is contiguous and has x's type. After an error the contents of b
            are undefined.
        timeout : float, optional
            Seconds for the whole call, retries included; default: the client's. ``math.inf`` removes the
            client's limit.
        progress : callable or bool
            Called with a `Progress` repeatedly, from any thread. True shows a bar: of tqdm if it is
            installed, otherwise a plain one on the terminal of standard error.

        Returns
        -------
        ndarray, shape of b
            Has NumPy's result type of A's and b's types. With `full_output` a `Solution`, whose ``x`` is
            this array.

        Raises
        ------
        Singular
            The factor has ``info > 0``.
        InvalidRequest
            b has the wrong number of rows; refinement or bounds without ``keep_matrix``; an unknown
            solver.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        result: Array | Solution = self._client._run(self._solve(b, trans, full_output, options))
        return result

    @_options.takes(
        _options.factorize_options, _requests.replace_option, _requests.values_option, _options.call_options
    )
    def refactor(self, A: Any, **options: Unpack[RefactorOptions]) -> Self:
        """Replace the factor by the factor of a new matrix of the same order.

        The replacement is atomic: a concurrent solve of any client uses the old or the new factor. An
        iterative method starts from the old factor.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n)
            The new matrix, as in `Client.lu_factor`.
        replace_if_singular : bool
            Also accept a singular factor, which cannot solve systems.
        values_only : bool
            Send only the values of a scipy.sparse matrix, and reuse the existing analysis. The matrix must
            have the type of the previous matrix and entries at the same positions, stored zeros included.
            The factor must be sparse and have its matrix (``keep_matrix``). If the analysis used matching
            and the new values differ widely in magnitude, send the whole matrix instead.
        **options
            Options of a factorization, as in `Client.lu_factor`.

        Returns
        -------
        Factor
            This object, with the next version.

        Raises
        ------
        Singular
            The new matrix is singular; the old factor stays.
        InvalidRequest, HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        factor: Self = self._client._run(self._refactor(A, options))
        return factor

    @property
    def rcond(self) -> float:
        """Reciprocal condition estimate of A as it was sent, in the 1-norm.

        The server's estimate if ``rcond=True`` was given; otherwise the client estimates it once, with
        about four solves. 0 for a singular matrix. If another client replaces the factor meanwhile, the
        result and this object's record describe the new version.
        """
        return self._client._run(self._estimate_rcond())

    def to_lu(self) -> tuple[Array, Array, Array]:
        """Download a dense factor as `scipy.linalg.lu` returns it: P, L and U with A = P L U.

        Returns
        -------
        P, L, U : ndarray, shape (n, n)
            Arrays of the factor's type. L has the unit diagonal, even if the server's U has it. For an
            equilibrated A they are the factors of A itself.

        Raises
        ------
        InvalidRequest
            The factor is sparse: see `to_sparse_lu`.
        Singular
            A has an empty row or column and was not factored; or ``info > 0`` and U has the unit diagonal
            (``record.unit_diagonal``), so that this form cannot be computed.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(self._surviving(lambda f: _handles.get_factors(f).then(PackedFactors.plu)))

    def to_lu_piv(self) -> tuple[Array, Array]:
        """Download a dense factor as `scipy.linalg.lu_factor` returns it, for `scipy.linalg.lu_solve`.

        Returns
        -------
        lu : ndarray, shape (n, n)
            U on and above the diagonal, L strictly below (unit diagonal not stored).
        piv : ndarray of int, shape (n,)
            Row i was interchanged with row piv[i], 0-based.

        Raises
        ------
        InvalidRequest, Singular, HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
            As `to_lu`.
        """
        return self._client._run(
            self._surviving(lambda f: _handles.get_factors(f).then(PackedFactors.lu_piv))
        )

    @_options.takes(_options.factorize_options)
    def estimate(self, **options: Unpack[FactorizeOptions]) -> Estimate:
        """Estimate the bytes and seconds of `refactor` for a matrix with the same pattern.

        Only for sparse factors. Takes the options of a factorization, as in `Client.lu_factor`. The fill-in
        is exact, unlike in `Client.estimate`.

        Raises
        ------
        InvalidRequest
            The factor is dense.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(self._with_handle(lambda handle: _handles.estimate_again(handle, **options)))

    def to_sparse_lu(self) -> SparseFactors:
        """Download a sparse factor as `scipy.sparse.linalg.splu` returns it: L, U, perm_r and perm_c.

        Raises
        ------
        InvalidRequest
            The factor is dense: see `to_lu`.
        Singular
            There is no factor, because the matrix is structurally singular (``record.singular_reason``).
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(self._surviving(_handles.get_sparse_factors))

    def slogdet(self) -> SlogDet:
        """Return the determinant of A, like `numpy.linalg.slogdet`.

        The server computes it if ``determinant=True`` was given; otherwise the client downloads the factor.

        Raises
        ------
        InvalidRequest
            The factor has the determinant of another matrix, because pivots were perturbed
            (``record.sparse.perturbed_pivots``; use a dense method) or because it has a lower precision
            (``precision=``).
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(self._slogdet())

    def det(self) -> complex:
        """Return the determinant of A, a float if A is real. It overflows easily: see `slogdet`."""
        return self._client._run(det(self._slogdet()))

    def iterations(self) -> Iterations:
        """Fetch the record of an iterative method, section by section."""
        return self._client._run(self._iterations())

    @_options.takes(_options.solve_options, _options.call_options, without=("trans",))
    def as_linear_operator(self, **options: Unpack[OperatorOptions]) -> Any:
        """Return the inverse of A as a `scipy.sparse.linalg.LinearOperator`.

        For use as a preconditioner: ``gmres(A1, b, M=f.as_linear_operator())``. Accepts vectors and blocks
        of any type. With a real A, the real and imaginary parts of a complex vector are solved separately.

        Parameters
        ----------
        **options
            Options of the solves, as in `solve`, except ``trans`` and ``overwrite_b``: SciPy requests the
            conjugate transpose through ``rmatvec`` and owns its vectors. ``verify=False`` saves time.

        Raises
        ------
        ImportError
            SciPy is not installed.
        """
        return inverse_operator(self, **options)


def inverse_operator(factor: Any, **options: Any) -> Any:
    """Return the inverse of the matrix of a `Factor`, or of a similar object, as a `LinearOperator`."""
    from scipy.sparse.linalg import LinearOperator

    for option in ("trans", "overwrite_b"):  # SciPy selects the transpose and owns its vectors.
        if option in options:
            raise TypeError(f"{option} is not an option of a linear operator: omit it")

    def apply(b: Array, trans: Literal[0, 2]) -> Array:
        """Solve. The real and imaginary parts of a complex b become columns of one call."""
        if not np.iscomplexobj(b) or factor.dtype.kind == "c":
            x: Array = factor.solve(b, trans=trans, **options)
            return x
        columns = b.reshape(b.shape[0], -1)
        parts = factor.solve(np.hstack([columns.real, columns.imag]), trans=trans, **options)
        real, imaginary = np.hsplit(parts, 2)
        both: Array = (real + 1j * imaginary).reshape(b.shape)
        return both

    n = factor.n
    return LinearOperator(
        (n, n),
        matvec=lambda b: apply(b, 0),
        rmatvec=lambda b: apply(b, 2),
        matmat=lambda b: apply(b, 0),
        rmatmat=lambda b: apply(b, 2),
        # Without dtype, SciPy would determine it by a solve.
        dtype=factor._record.matrix_dtype,
    )
