# SPDX-License-Identifier: Apache-2.0
"""SciPy's functions for linear systems, computed by a Crout server.

    from crout.scipy import splu      # instead of scipy.sparse.linalg

    x = splu(A).solve(b)

Signatures, warnings and exceptions are SciPy's. The first call connects to ``$CROUT_SERVER``, or to the
server of `use`. Needs SciPy. docs/scipy.md lists what differs.
"""

from __future__ import annotations

from scipy.linalg import LinAlgError, LinAlgWarning
from scipy.sparse.linalg import MatrixRankWarning, use_solver

from crout._scipy_dense import inv, solve
from crout._scipy_factors import LuFactors, lu_factor, lu_solve
from crout._scipy_server import use
from crout._scipy_sparse import SuperLU, factorized, preconditioner, splu, spsolve

__all__ = [
    "LinAlgError",
    "LinAlgWarning",
    "LuFactors",
    "MatrixRankWarning",
    "SuperLU",
    "factorized",
    "inv",
    "lu_factor",
    "lu_solve",
    "preconditioner",
    "solve",
    "splu",
    "spsolve",
    "use",
    "use_solver",
]
