# SPDX-License-Identifier: Apache-2.0
"""Factors on the server, identified by handles."""

from __future__ import annotations

import abc
import contextlib
import datetime
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from crout import _linalg, _messages, _options, _requests
from crout._connection import Connection
from crout._diagnostics import warn_of_factor
from crout._linalg import SparseFactors, known_determinant
from crout._options import FactorizeOptions, Lease, OperatorOptions, RefactorOptions, SolveOptions
from crout.errors import CroutError, HandleExpired
from crout.results import Estimate, FactorRecord, Iterations, SlogDet, Solution, Summarized

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


Array = npt.NDArray[Any]


class FactorView(Summarized):
    """Attributes of a factor that need no call; base class of synchronous and asynchronous factors.

    Attributes
    ----------
    record : FactorRecord
        Description from the call that made this version.
    """

    def __init__(self, record: FactorRecord, lease: Lease | None) -> None:
        self.record = record
        self._lease = lease

    @property
    def handle(self) -> str:
        """The factor's identifier on the server; any client of the tenant can use it."""
        return self.record.handle

    @property
    def name(self) -> str:
        """The name given by the caller; may be empty."""
        return self.record.name

    @property
    def version(self) -> int:
        """1 for a new factor; each refactor adds 1."""
        return self.record.version

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return self.record.n

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix, (n, n)."""
        return (self.n, self.n)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of L and U."""
        return self.record.dtype

    @property
    def info(self) -> int:
        """LAPACK's info: 0, or the 1-based index of the first pivot that is exactly zero."""
        return self.record.info

    @property
    def quality(self) -> float | None:
        """Estimate of ||P A - L U|| / (n ||A|| eps): good near 1 or below, poor above 30."""
        return self.record.quality

    def _keep_rcond(self, record: FactorRecord) -> float:
        """Store a record with rcond, unless this object already has a later version. Returns rcond."""
        if record.version >= self.version:
            self.record = record
        assert record.rcond is not None
        return record.rcond

    def _summary(self) -> dict[str, Any]:
        return self.record._summary()


_View = TypeVar("_View", bound=FactorView)


def checked_factor(f: object, kind: type[_View]) -> _View:
    """Return `f` if it has the type `kind`. Otherwise raise TypeError with the remedy."""
    if isinstance(f, kind):
        return f
    hint = ""
    if isinstance(f, tuple):
        hint = ": solve with the pair (lu, piv) of scipy.linalg.lu_factor by scipy.linalg.lu_solve"
    elif isinstance(f, FactorView):
        hint = ", which belongs to a client of the other kind"
    raise TypeError(
        f"a {kind.__name__}, from lu_factor of a matrix, or a handle is needed, not {type(f).__name__}{hint}"
    )


def handle_of(f: object, kind: type[FactorView], held: type[Any]) -> str:
    """Return the handle of an object of type `held`. A str is returned unchanged.

    The error for any other object asks for the type `kind`, a subclass of `held`.
    """
    if isinstance(f, str):
        return f
    handle: str = f.handle if isinstance(f, held) else checked_factor(f, kind).handle
    return handle


class Held(abc.ABC):
    """An object on the server with a handle. A ``with`` block renews its lease and then releases it."""

    _client: Connection
    _lease: Lease | None

    @property
    @abc.abstractmethod
    def handle(self) -> str:
        """The object's identifier on the server; any client of the tenant can use it."""

    def __enter__(self) -> Self:
        """Renew the lease in the background until the block ends."""
        if self._lease is None:
            lease = self._client.server_info().default_lease
        else:
            lease = _options.lease_seconds(self._lease)
        self._client._renewals.hold(self.handle, lease)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the object. It is not an error if the server no longer has it."""
        try:
            self.release()
        except HandleExpired:
            pass
        except CroutError:
            if error is None:  # must not hide the error of the block
                raise

    def describe(self) -> FactorRecord:
        """Fetch the current record from the server: tier, lease, version."""
        return self._client._run(_requests.describe(self.handle))

    def renew(self, lease: Lease | None = None) -> datetime.datetime:
        """Set the lease's length, counted from now. Returns its end on the server's clock.

        The default of `lease` is the server's. In a ``with`` block, later renewals use the new length.
        """
        end = self._client._run(_requests.renew(self.handle, lease))
        self._lease = lease
        if self._client._renewals.holds(self.handle):
            self.__enter__()
        return end

    def release(self) -> None:
        """Drop the factor on the server. Calls that use it finish; later calls raise `HandleExpired`."""
        self._client._renewals.drop(self.handle)
        self._client._run(_requests.release(self.handle))


@contextlib.contextmanager
def release_on_error(factor: Held) -> Iterator[None]:
    """Drop a factor if a warning is raised as an error, because the caller then gets no handle."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(CroutError):  # reports the warning; the factor lives until its lease ends
            factor.release()
        raise


class Factor(FactorView, Held):
    """An LU factorization on the server, from `Client.lu_factor`.

    Several threads may use it at once. It can be pickled; the copy refers to the same factor on the server.
    A ``with`` block renews the lease in the background and releases the factor at its end. Otherwise the
    factor lives until its lease ends.

    All methods raise subclasses of `CroutError`; `HandleExpired` if the server no longer has the factor.
    """

    def __init__(self, client: Connection, record: FactorRecord, lease: Lease | None = None) -> None:
        super().__init__(record, lease)
        self._client = client

    @overload
    def solve(
        self, b: Any, *, full_output: Literal[False] = False, **options: Unpack[SolveOptions]
    ) -> Array: ...
    @overload
    def solve(self, b: Any, *, full_output: Literal[True], **options: Unpack[SolveOptions]) -> Solution: ...
    @overload
    def solve(self, b: Any, *, full_output: bool, **options: Unpack[SolveOptions]) -> Array | Solution: ...

    @_options.takes(_options.solve_options, _requests.overwrite_option, _options.call_options)
    def solve(
        self, b: Any, *, full_output: bool = False, **options: Unpack[SolveOptions]
    ) -> Array | Solution:
        """Solve A x = b, or a system with the transpose of A.

        Parameters
        ----------
        b : array_like, shape (n,) or (n, nrhs), or path of a Matrix Market file
            Accepts the types of `Client.lu_factor`; a sparse b is expanded to dense.
        full_output : bool
            Return a `Solution`, with the errors and timings, instead of x alone.
        trans : {0, 1, 2} or {"N", "T", "C"}
            0: A x = b. 1: A^T x = b. 2: A^H x = b.
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
            Called with a `Progress` repeatedly, from any thread. True shows a tqdm bar.

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
        solution = self._solve(b, **options)
        return solution if full_output else solution.x

    def _solve(self, b: Any, **options: Any) -> Solution:
        return self._client._run(_requests.solve(self.record, b, **options))

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
            Also accept a singular factor, with which no system can be solved.
        values_only : bool
            Send only the values of a scipy.sparse matrix. It must have the type of the previous matrix and
            entries at the same positions, stored zeros included; another pattern is an error. The factor
            must be sparse and have its matrix (``keep_matrix``). The server reuses the existing analysis.
            If the analysis used matching and the new values differ widely in magnitude, send the matrix in
            full instead.
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
        self.record = self._client._run(_requests.refactorize(self.record, A, **options))
        warn_of_factor(self.record)
        return self

    @property
    def rcond(self) -> float:
        """Reciprocal condition estimate of A as it was sent, in the 1-norm.

        The server's estimate if ``rcond=True`` was given; otherwise the client estimates it once, with
        about four solves. 0 for a singular matrix. If another client replaces the factor meanwhile, the
        result and this object's record are those of the new version.
        """
        steps = _linalg.estimate_rcond(self.record)
        try:
            question = next(steps)
            while True:
                if question is None:
                    question = steps.send(self.describe())
                else:
                    b, trans = question
                    question = steps.send(self._solve(b, trans=trans, verify=False))
        except StopIteration as end:
            return self._keep_rcond(end.value)

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
            ``info > 0`` and U has the unit diagonal (``record.unit_diagonal``): this form cannot be
            computed. Or A has an empty row or column and was not factored.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._download().plu()

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
        return self._download().lu_piv()

    @_options.takes(_options.factorize_options)
    def estimate(self, **options: Unpack[FactorizeOptions]) -> Estimate:
        """Estimate the bytes and seconds of `refactor` for a matrix with the same pattern.

        Only for sparse factors. Takes the options of a factorization, as in `Client.lu_factor`. Fill-in is
        exact, while it may be rough in `Client.estimate`.

        Raises
        ------
        InvalidRequest
            The factor is dense.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(_requests.estimate_again(self.handle, **options))

    def to_sparse_lu(self) -> SparseFactors:
        """Download a sparse factor, with its permutations and scales.

        Raises
        ------
        InvalidRequest
            The factor is dense: see `to_lu`.
        Singular
            There is no factor, because the matrix is structurally singular (``record.singular_reason``).
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(_requests.get_sparse_factors(self.record))

    def _download(self) -> _linalg.PackedFactors:
        return self._client._run(_requests.get_factors(self.record))

    def slogdet(self) -> SlogDet:
        """Sign and logarithm of the determinant of A, like `numpy.linalg.slogdet`.

        The server's result if ``determinant=True`` was given; otherwise computed from the downloaded factor.

        Raises
        ------
        InvalidRequest
            The factor has the determinant of another matrix, because pivots were perturbed
            (``record.sparse.perturbed_pivots``; use a dense method) or because it has a lower precision
            (``precision=``).
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        known = known_determinant(self.record)
        if known is not None:
            return known
        factors = self._download() if self.record.sparse is None else self.to_sparse_lu()
        return factors.slogdet()

    def det(self) -> complex:
        """Determinant of A, a float if A is real. It overflows easily: see `slogdet`."""
        sign, logarithm = self.slogdet()
        return sign * float(np.exp(logarithm))

    def iterations(self) -> Iterations:
        """Fetch the record of an iterative method, section by section."""
        pages = [self._client._run(_requests.get_iterations(self.handle, ""))]
        while pages[-1].next_page_token:
            token = pages[-1].next_page_token
            pages.append(self._client._run(_requests.get_iterations(self.handle, token)))
        return _messages.iterations(pages)

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
        return _inverse_operator(self, **options)


def _inverse_operator(factor: Factor, **options: Any) -> Any:
    """Return the inverse of a factor's matrix as a `scipy.sparse.linalg.LinearOperator`."""
    from scipy.sparse.linalg import LinearOperator

    for option in ("trans", "overwrite_b"):  # SciPy selects the transpose and owns its vectors.
        if option in options:
            raise TypeError(f"a linear operator takes no {option}")

    def apply(b: Array, trans: Literal[0, 2]) -> Array:
        """Solve. The real and imaginary parts of a complex b become columns of one call."""
        if not np.iscomplexobj(b) or factor.dtype.kind == "c":
            return factor._solve(b, trans=trans, **options).x
        columns = b.reshape(b.shape[0], -1)
        parts = factor._solve(np.hstack([columns.real, columns.imag]), trans=trans, **options).x
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
        dtype=factor.record.matrix_dtype,
    )
