# SPDX-License-Identifier: Apache-2.0
"""A preconditioner of PETSc that solves with a factor on a Crout server, for petsc4py.

Programs select it by options alone::

    -pc_type python -pc_python_type crout.petsc.PC -pc_crout_server 127.0.0.1:50051

`docs/petsc.md` lists the options and compares this class with the solver type of libcroutpetsc.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from petsc4py import PETSc

from crout.client import Client, connect
from crout.errors import HandleExpired, InvalidRequest
from crout.factor import Factor

_CONNECT = {"tenant": PETSc.Options.getString, "timeout": PETSc.Options.getReal}
_FACTOR = {
    "name": PETSc.Options.getString,
    "lease": PETSc.Options.getReal,
    "algorithm": PETSc.Options.getString,
    "precision": PETSc.Options.getString,
    "pivot_threshold": PETSc.Options.getReal,
}


class PC:
    """Context of a preconditioner of type "python": LU of the preconditioning matrix, on a server.

    Options of the PC, after its prefix: ``-pc_crout_server``, ``_tenant``, ``_timeout`` (of `crout.connect`);
    ``_name``, ``_lease``, ``_algorithm``, ``_precision``, ``_pivot_threshold`` (of `Client.lu_factor`); and
    ``_refine``, the largest number of refinement steps of a solve.

    All methods raise the exceptions of `crout`. petsc4py passes them to the caller of PETSc.
    """

    def __init__(self, server: str | None = None, *, refine: int = 0, **options: Any) -> None:
        """Set defaults of the options: `options` are those of `crout.connect` and `Client.lu_factor`."""
        self._server = server
        self._refine = refine
        self._connect = {name: options.pop(name) for name in _CONNECT if name in options}
        self._options = options
        self._client: Client | None = None
        self._factor: Factor | None = None
        self._pattern: tuple[Any, Any] | None = None

    def setFromOptions(self, pc: Any) -> None:
        """Read the options of `pc`."""
        options = PETSc.Options(pc.getOptionsPrefix())
        if options.hasName("pc_crout_server"):
            self._server = options.getString("pc_crout_server")
        self._refine = options.getInt("pc_crout_refine", self._refine)
        for names, known in ((_CONNECT, self._connect), (_FACTOR, self._options)):
            for name, read in names.items():
                if options.hasName(f"pc_crout_{name}"):
                    known[name] = read(options, f"pc_crout_{name}")

    def setUp(self, pc: Any) -> None:
        """Factor the preconditioning matrix. If its pattern has not changed, send its values alone."""
        if pc.getComm().getSize() > 1:
            raise InvalidRequest(
                f"crout.petsc.PC factors matrices of 1 process, not of {pc.getComm().getSize()}. Use it for "
                "blocks (-pc_type bjacobi -sub_pc_type python -sub_pc_python_type crout.petsc.PC), or use "
                "libcroutpetsc, which gathers the matrix"
            )
        A = _matrix(pc.getOperators()[1])
        pattern = (A.indptr, A.indices) if sp.issparse(A) else None
        if self._factor is not None:
            try:
                self._factor.refactor(A, values_only=self._same(pattern))
                self._pattern = pattern
                return
            except HandleExpired:
                self._release()
        if self._client is None:
            self._client = connect(self._server, **self._connect)
        # Renews the lease until the exit in _release().
        self._factor = self._client.lu_factor(A, **self._options).__enter__()
        self._pattern = pattern

    def apply(self, pc: Any, b: Any, x: Any) -> None:
        """Solve A x = b."""
        x.getArray()[:] = self._solve(b.getArray(readonly=True))

    def applyTranspose(self, pc: Any, b: Any, x: Any) -> None:
        """Solve A^T x = b."""
        x.getArray()[:] = self._solve(b.getArray(readonly=True), trans=1)

    def matApply(self, pc: Any, B: Any, X: Any) -> None:
        """Solve A X = B for dense matrices."""
        X.getDenseArray()[:] = self._solve(B.getDenseArray())

    def view(self, pc: Any, viewer: Any) -> None:
        """Print the factor."""
        if self._factor is not None and viewer.getType() == PETSc.Viewer.Type.ASCII:
            record = self._factor.record
            viewer.printfASCII(
                f"  Crout factor {record.handle}, version {record.version}, {record.algorithm}\n"
            )

    def reset(self, pc: Any) -> None:
        """Release the factor."""
        self._release()

    def destroy(self, pc: Any) -> None:
        """Release the factor and close the connection."""
        self._release()
        if self._client is not None:
            self._client.close()
            self._client = None

    def _solve(self, b: Any, trans: Literal[0, 1] = 0) -> Any:
        if self._factor is None:
            raise InvalidRequest("the preconditioner has no factor: call setUp() first")
        return self._factor.solve(b, trans=trans, refine=self._refine)

    def _same(self, pattern: tuple[Any, Any] | None) -> bool:
        """Return whether the factor is sparse and has this pattern."""
        if pattern is None or self._pattern is None or self._factor is None:
            return False
        if self._factor.record.sparse is None:
            return False
        return all(np.array_equal(new, old) for new, old in zip(pattern, self._pattern, strict=True))

    def _release(self) -> None:
        if self._factor is not None:
            factor, self._factor, self._pattern = self._factor, None, None
            factor.__exit__(None, None, None)


def _matrix(A: Any) -> Any:
    """Convert a matrix of PETSc to an array if it is dense, otherwise to compressed rows."""
    kind = A.getType()
    if kind == PETSc.Mat.Type.SEQDENSE:
        return A.getDenseArray()
    if not kind.startswith(PETSc.Mat.Type.SEQAIJ):
        A = A.convert(PETSc.Mat.Type.SEQAIJ, PETSc.Mat())
    indptr, indices, values = A.getValuesCSR()
    return sp.csr_array((values, indices, indptr), shape=A.getSize())
