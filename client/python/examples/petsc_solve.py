# SPDX-License-Identifier: Apache-2.0
"""Solves two systems of PETSc with the same pattern, with the preconditioner that the options select.

usage: petsc_solve.py OPTIONS...     such as -pc_type python -pc_python_type crout.petsc.PC
"""

import sys

import petsc4py

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

M = 100


def assemble(A, wind):
    """Set the entries of convection and diffusion on a grid of M x M points."""
    h = 1 / (M + 1)
    for k in range(M * M):
        i, j = divmod(k, M)
        A[k, k] = 4 + 2 * h * wind
        for neighbor, inside, value in (
            (k - M, i > 0, -1 - h * wind),
            (k + M, i < M - 1, -1),
            (k - 1, j > 0, -1 - h * wind),
            (k + 1, j < M - 1, -1),
        ):
            if inside:
                A[k, neighbor] = value
    A.assemble()


A = PETSc.Mat().createAIJ((M * M, M * M), nnz=5)
assemble(A, wind=20)
ones, b = A.createVecs()
ones.set(1)
x = ones.duplicate()

ksp = PETSc.KSP().create()
ksp.setOperators(A)
ksp.setTolerances(rtol=1e-10)
ksp.setFromOptions()


def solve(label):
    A.mult(ones, b)
    ksp.solve(b, x)
    x.axpy(-1, ones)
    steps = ksp.getIterationNumber()
    print(f"{label}{steps} iteration{'s' * (steps != 1)}, error below 1e-10: {x.norm() < 1e-10}")


solve("")
assemble(A, wind=30)
solve("after a change of the values: ")
ksp.destroy()  # petsc4py 3.18 crashes at its end if a preconditioner of type python is left
