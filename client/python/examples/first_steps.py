# SPDX-License-Identifier: Apache-2.0
"""Factors a matrix once, solves with it, checks the errors, and uses the factor as a preconditioner.

usage: first_steps.py [ADDRESS]     of a croutd; the default is $CROUT_SERVER, else 127.0.0.1:50051
"""

# %% Connect; the matrix is convection and diffusion on a grid of 32 x 32 points
import sys

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import gmres

import crout

c = crout.connect(sys.argv[1] if len(sys.argv) > 1 else None)


def convection_diffusion(m, wind):
    h = 1 / (m + 1)
    along = sp.diags([-1 - h * wind, 2 + h * wind, -1.0], [-1, 0, 1], (m, m))
    return (sp.kron(sp.eye(m), along) + sp.kron(along, sp.eye(m))).tocsr()


A = convection_diffusion(32, wind=20.0)
b = np.ones(A.shape[0])

# %% Factor once, solve often
f = c.lu_factor(A, name="demo", lease="10m")
x = f.solve(b)
print(f"n={f.n} nnz={f.record.nnz} info={f.info} rcond={f.rcond:.3f}")
print(f"residual below 1e-12: {np.abs(A @ x - b).max() < 1e-12}")

# %% Ask for error estimates
s = f.solve(b, trans=1, refine=2, error_bound=True, full_output=True)
print(f"backward error below 1e-15: {s.backward_error < 1e-15}")
print(f"forward error below 1e-9: {s.forward_error_bound < 1e-9}")

# %% Replace the matrix: all users of the handle get the new factor
f.refactor(convection_diffusion(32, wind=25.0))
print(f"version {f.version}")

# %% Use the factor of a nearby matrix as a preconditioner
steps = []
y, failed = gmres(A, b, M=f.as_linear_operator(), atol=0.0, callback=steps.append, callback_type="pr_norm")
print(f"gmres converged: {failed == 0}, in less than 10 steps: {len(steps) < 10}")

# %% Errors are exceptions
f.release()
try:
    f.solve(b)
except crout.HandleExpired as error:
    print(f"{error.reason}: {error}")
try:
    c.solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0])
except np.linalg.LinAlgError as error:
    print(f"{type(error).__name__}: info={error.factor.info}")
