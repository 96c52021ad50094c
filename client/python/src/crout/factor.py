"""Factors on the server, by their handles."""

from __future__ import annotations

import abc
import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from crout import _condition, _lu, _options, _requests
from crout._factor_record import known_determinant
from crout._operator import inverse_operator
from crout._replies import warn_of_factor
from crout._sparse_lu import SparseFactors
from crout.errors import CroutError, HandleExpired
from crout.results import Estimate, FactorRecord, Iterations, SlogDet, Solution

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from crout._connection import Connection
    from crout._options import FactorizeOptions, Lease, OperatorOptions, RefactorOptions, SolveOptions

Array = npt.NDArray[Any]


class FactorView:
    """What is known of a factor without asking the server; the ground of both kinds of factors.

    Attributes
    ----------
    record : FactorRecord
        All of it, as of the call that made this version.
    """

    def __init__(self, record: FactorRecord, lease: Lease | None) -> None:
        self.record = record
        self._lease = lease

    @property
    def handle(self) -> str:
        """The factor's name on the server; whoever of the same tenant has it can solve."""
        return self.record.handle

    @property
    def name(self) -> str:
        """As the caller gave it; may be empty."""
        return self.record.name

    @property
    def version(self) -> int:
        """1, and 1 more with each refactor."""
        return self.record.version

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return self.record.n

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.n, self.n)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of L and U."""
        return self.record.dtype

    @property
    def info(self) -> int:
        """LAPACK's: 0, or the 1-based index of the first pivot that is exactly zero."""
        return self.record.info

    @property
    def quality(self) -> float | None:
        """Estimate of ||P A - L U|| / (n ||A|| eps): around 1 or below is good, above 30 poor."""
        return self.record.quality

    def _keep_rcond(self, record: FactorRecord) -> float:
        """Note what was estimated, unless a later version has come meanwhile."""
        if record.version >= self.version:
            self.record = record
        assert record.rcond is not None
        return record.rcond

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return (
            f"<{type(self).__name__}{name} {self.handle} version={self.version} n={self.n} "
            f"dtype={self.dtype} algorithm={self.record.algorithm} info={self.info}>"
        )


_View = TypeVar("_View", bound=FactorView)


def checked_factor(f: object, kind: type[_View]) -> _View:
    """`f`, if it is a factor of that kind. Raises TypeError, with what to do, else."""
    if isinstance(f, kind):
        return f
    hint = ""
    if isinstance(f, tuple):
        hint = ": solve with the pair (lu, piv) of scipy.linalg.lu_factor by scipy.linalg.lu_solve"
    elif isinstance(f, FactorView):
        hint = ", which belongs to a client of the other kind"
    raise TypeError(f"a {kind.__name__}, from lu_factor, or a handle is needed, not {type(f).__name__}{hint}")


def handle_of(f: object, kind: type[FactorView]) -> str:
    """The handle of a factor of that kind, or `f`, which is one itself."""
    return f if isinstance(f, str) else checked_factor(f, kind).handle


class Held(abc.ABC):
    """What lives on the server by a handle, as long as a ``with`` block or its lease lasts."""

    _client: Connection
    _lease: Lease | None

    @property
    @abc.abstractmethod
    def handle(self) -> str:
        """Its name on the server; whoever of the same tenant has it can solve."""

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
        """Release it. One that is gone already is as good."""
        try:
            self.release()
        except HandleExpired:
            pass
        except CroutError:
            if error is None:  # Else it would hide what went wrong in the block.
                raise

    def describe(self) -> FactorRecord:
        """Ask the server what it knows now: tier, lease, version."""
        return self._client.describe(self.handle)

    def renew(self, lease: Lease | None = None) -> datetime.datetime:
        """Give the lease another length, counted from now; when it ends, on the server's clock.

        In a ``with`` block that is the length with which it is renewed from then on.
        """
        end = self._client.renew(self.handle, lease)
        self._lease = lease
        if self._client._renewals.holds(self.handle):
            self.__enter__()
        return end

    def release(self) -> None:
        """Drop it on the server. Calls that use it finish; later ones raise `HandleExpired`."""
        self._client._renewals.drop(self.handle)
        self._client.release(self.handle)


class Factor(FactorView, Held):
    """An LU factorization on the server.

    From `Client.lu_factor`. It may be used by several threads at once, and pickled: the copy has a
    connection of its own and means the same factor. In a ``with`` block its lease is renewed in the
    background, and it is released at the end; else its lease ends it.

    Errors of every method are `CroutError`; `HandleExpired` where the server has the factor no more.
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
        """Solve A x = b, or with the transpose.

        Parameters
        ----------
        b : array_like, shape (n,) or (n, nrhs), or path of a Matrix Market file
            Anything that `Client.lu_factor` takes; a sparse one is filled up.
        full_output : bool
            Return a `Solution`, with the errors and timings, instead of x alone.
        trans : {0, 1, 2} or {"N", "T", "C"}
            0: A x = b. 1: A^T x = b. 2: A^H x = b.
        refine : int
            At most so many steps of iterative refinement, residuals in float64; up to 100.
        componentwise : bool
            Refine by the componentwise backward error instead of the normwise one.
        error_bound : bool
            Estimate a bound of the forward error, some solves more; where it is 1 or more there is a
            `LinAlgWarning`.
        componentwise_error : bool
            Compute the componentwise backward error.
        verify : bool
            Compute the backward error; where it is poor there is a `LinAlgWarning`.
        solver : str
            As `ServerInfo.devices` names them; "auto" for the cheapest.
        tolerance : float
            Of the iterative solver, "is".
        overwrite_b : bool
            x may take b's memory, where b is contiguous and of x's type. What is in it after an error
            is undefined.
        timeout : float, optional
            Seconds for the whole call, repetitions included; the client's unless given. ``math.inf``
            for no limit where the client has one.
        progress : callable or bool
            Called with a `Progress` now and then, from any thread; True: a bar of tqdm.

        Returns
        -------
        ndarray, shape of b
            Or the `Solution` that has it as ``x``. Its type is the wider one of A's and b's.

        Raises
        ------
        Singular
            The factor has ``info > 0``.
        InvalidRequest
            b has another number of rows; refinement and bounds without ``keep_matrix``; an unknown
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
        """Replace the factor by that of a new matrix of the same order, at once for all its users.

        An iterative method starts from the factor that is replaced.

        Parameters
        ----------
        A : array_like, sparse matrix or path, shape (n, n)
            As in `Client.lu_factor`, with the same options.
        replace_if_singular : bool
            Replace it even by one with which no system can be solved.
        values_only : bool
            Send only the values of a matrix of `scipy.sparse`. It must be of the type of the matrix before
            and have its entries at the same positions, stored zeros too; another pattern is refused. The
            factor must have stayed sparse, and kept its matrix. Its analysis serves again: where that was
            made with matching, send a matrix in full whose values are of quite other sizes.

        Returns
        -------
        Factor
            This one, with the next version.

        Raises
        ------
        Singular
            The new matrix is; the old factor stays.
        InvalidRequest, HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        self.record = self._client._run(_requests.refactorize(self.record, A, **options))
        warn_of_factor(self.record)
        return self

    @property
    def rcond(self) -> float:
        """Reciprocal condition estimate in the 1-norm, of A as it arrived.

        That of the server where ``rcond=True`` was asked for, else estimated here, once, by some four
        solves. 0 for a singular matrix. Where another user replaces the factor meanwhile it is that
        of the new version, whose record this factor then has.
        """
        steps = _condition.estimate(self.record)
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
        """Download the factors: P, L and U with A = P L U, as `scipy.linalg.lu` returns them.

        Returns
        -------
        P, L, U : ndarray, shape (n, n)
            Of the factors' type; L has the unit diagonal, whichever the server's does. Where A was
            equilibrated, these are the factors of A itself.

        Raises
        ------
        InvalidRequest
            The matrix stayed sparse: see `to_sparse_lu`.
        Singular
            ``info > 0``, and the method has its unit diagonal in U (``record.unit_diagonal``), from
            which these cannot be had; or A has an empty row or column, and there are no factors.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._download().plu()

    def to_lu_piv(self) -> tuple[Array, Array]:
        """Download the factors as `scipy.linalg.lu_factor` returns them, for `scipy.linalg.lu_solve`.

        Returns
        -------
        lu : ndarray, shape (n, n)
            U on and above the diagonal, L below.
        piv : ndarray of int, shape (n,)
            Row i was interchanged with row piv[i].

        Raises
        ------
        InvalidRequest, Singular, HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
            As `to_lu`.
        """
        return self._download().lu_piv()

    @_options.takes(_options.factorize_options)
    def estimate(self, **options: Unpack[FactorizeOptions]) -> Estimate:
        """Bytes and seconds that `refactor` by a matrix of the same pattern would take.

        Of a factor that stayed sparse, with the options of `Client.lu_factor`: exact, where `Client.estimate`
        guesses.

        Raises
        ------
        InvalidRequest
            The matrix was factored in its dense form.
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(_requests.estimate_again(self.handle, **options))

    def to_sparse_lu(self) -> SparseFactors:
        """Download the factors of a matrix that stayed sparse, with its permutations and scales.

        Raises
        ------
        InvalidRequest
            The matrix was factored in its dense form: see `to_lu`.
        Singular
            There are none: its pattern makes the matrix singular (``record.singular_reason``).
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        return self._client._run(_requests.get_sparse_factors(self.record))

    def _download(self) -> _lu.PackedFactors:
        return self._client._run(_requests.get_factors(self.record))

    def slogdet(self) -> SlogDet:
        """Sign and logarithm of the determinant of A, as `numpy.linalg.slogdet`.

        That of the server where ``determinant=True`` was asked for, else from downloaded factors.

        Raises
        ------
        InvalidRequest
            Pivots of a sparse factor were made larger (``record.sparse.perturbed_pivots``): its determinant
            is that of another matrix. A dense method has it. Or the factor was computed in lower precision
            (``precision=``).
        HandleExpired, Overloaded, Unavailable, DeadlineExceeded, ProtocolError
        """
        known = known_determinant(self.record)
        if known is not None:
            return known
        factors = self._download() if self.record.sparse is None else self.to_sparse_lu()
        return factors.slogdet()

    def det(self) -> complex:
        """The determinant of A, a float where A is real, which overflows early: see `slogdet`."""
        sign, logarithm = self.slogdet()
        return sign * float(np.exp(logarithm))

    def iterations(self) -> Iterations:
        """What an iterative method did, section by section."""
        pages = [self._client._run(_requests.get_iterations(self.handle, ""))]
        while pages[-1].next_page_token:
            token = pages[-1].next_page_token
            pages.append(self._client._run(_requests.get_iterations(self.handle, token)))
        return _lu.iterations(pages)

    @_options.takes(_options.solve_options, _options.call_options, without=("trans",))
    def as_linear_operator(self, **options: Unpack[OperatorOptions]) -> Any:
        """The inverse of A as a `scipy.sparse.linalg.LinearOperator`.

        For use as a preconditioner, ``gmres(A1, b, M=f.as_linear_operator())``. Takes vectors and
        blocks of them of any type; complex ones are solved as real and imaginary part.

        Parameters
        ----------
        **options
            Of its solves, as in `solve` but for ``trans`` and ``overwrite_b``: SciPy asks for the
            transpose by ``rmatvec``, and its vectors are its own. ``verify=False`` makes them cheaper.

        Raises
        ------
        ImportError
            There is no SciPy.
        """
        return inverse_operator(self, **options)
