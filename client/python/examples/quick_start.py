# SPDX-License-Identifier: Apache-2.0
"""Factors a matrix on a private server and solves with the cached factor."""

import numpy as np

import crout

rng = np.random.default_rng(1)
A = rng.standard_normal((1000, 1000))
b = A @ np.ones(1000)

with crout.local() as c, c.lu_factor(A) as f:  # sends A; the server keeps L and U
    x = f.solve(b)  # sends b alone
    print("error below 1e-9:", abs(x - 1).max() < 1e-9)
    f.refactor(A + 0.1 * np.eye(1000))  # replaces the matrix, keeps the handle
    s = f.solve(b, full_output=True)
    print(f"version {f.version}, backward error below 1e-14: {s.backward_error < 1e-14}")
