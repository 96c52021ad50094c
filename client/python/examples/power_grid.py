# SPDX-License-Identifier: Apache-2.0
"""Computes the DC power flow of a transmission grid of 40,000 buses, before and after lines fail.

usage: power_grid.py [ADDRESS]     of a croutd; the default is $CROUT_SERVER, else 127.0.0.1:50051
"""

# %% A grid: rows of substations, lines between neighbours, and the power of each substation
import sys

import numpy as np
import scipy.sparse as sp

import crout

M = 200
rng = np.random.default_rng(1)
bus = np.arange(M * M).reshape(M, M)
along = np.column_stack([bus[:, :-1].ravel(), bus[:, 1:].ravel()])
across = np.column_stack([bus[:-1].ravel(), bus[1:].ravel()])
lines = np.vstack([along, across[rng.random(len(across)) < 0.4]])
susceptance = 1 / rng.uniform(0.01, 0.1, len(lines))
power = rng.normal(0, 0.3, M * M)
power -= power.mean()

# %% Solve B theta = P for the voltage angles theta; bus 0 is the reference
incidence = sp.coo_matrix(
    (np.repeat([1.0, -1.0], len(lines)), (np.tile(np.arange(len(lines)), 2), lines.T.ravel())),
    (len(lines), M * M),
).tocsc()[:, 1:]


def matrix(susceptance):
    return (incidence.T @ sp.diags(susceptance) @ incidence).tocsr()


c = crout.connect(sys.argv[1] if len(sys.argv) > 1 else None)
B = matrix(susceptance)
with c.lu_factor(B) as f:
    theta = f.solve(power[1:])
    flow = susceptance * (incidence @ theta)
    sparse = f.record.sparse
    fill = sparse.lu_entries / f.record.nnz
    print(f"{f.n} unknowns, {f.record.nnz} entries, {fill:.1f} times as many in L and U")
    print(f"perturbed pivots: {sparse.perturbed_pivots}")
    print(f"residual below 1e-9: {np.abs(B @ theta - power[1:]).max() < 1e-9}")

    # %% The most loaded lines fail, one at a time: new values in a known pattern
    for line in np.argsort(-np.abs(flow))[:3]:
        left = susceptance.copy()
        left[line] *= 1e-9
        f.refactor(matrix(left))
        moved = np.abs(left * (incidence @ f.solve(power[1:])) - flow)
        again = not f.record.sparse.analysis_reused
        print(f"analyzed again: {again}, lines with a changed load: {(moved > 0.5).sum()}")
