# SPDX-License-Identifier: Apache-2.0
"""A SciPy program that solves on the server, because it imports from crout.scipy instead of SciPy.

usage: from_scipy.py     the server is $CROUT_SERVER, else 127.0.0.1:50051
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import gmres

from crout.scipy import lu_factor, lu_solve, preconditioner, splu  # instead of scipy

# %% A dense matrix
rng = np.random.default_rng(1)
A = rng.standard_normal((200, 200))
x = lu_solve(lu_factor(A), A @ np.ones(200))
print(f"dense: error below 1e-9: {abs(x - 1).max() < 1e-9}")

# %% A sparse matrix: Poisson's equation on a grid of 60 x 60 points
line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (60, 60))
P = (sp.kron(sp.eye(60), line) + sp.kron(line, sp.eye(60))).tocsc()
lu = splu(P)
x = lu.solve(P @ np.ones(3600), "T")
print(f"sparse: error below 1e-9: {abs(x - 1).max() < 1e-9}")
print(f"rows permuted: {(lu.perm_r != np.arange(3600)).any()}, L is {lu.L.format}")

# %% A preconditioner for a nearby matrix
b = np.ones(3600)
x, failed = gmres(P + 0.01 * sp.eye(3600), b, M=preconditioner(P, dtype=np.float32), atol=0.0)
print(f"gmres converged: {failed == 0}")
