# SPDX-License-Identifier: Apache-2.0
"""Cases of libcroutpetsc and of crout.petsc.PC, run by petsc4py. petsc_test.py starts this file.

usage: [mpirun -n N] python3 cases.py CLASS -libpetsc LIBRARY [-dll_append LIBRARY] [-info FILE]
    CROUT_SERVER     address of a croutd
    CROUT_CROUTCTL   path of croutctl
"""

import ctypes
import functools
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import petsc4py

petsc4py.init(sys.argv)

import numpy as np  # noqa: E402
from petsc4py import PETSc  # noqa: E402

COMPLEX = np.issubdtype(PETSc.ScalarType, np.complexfloating)
OPTIONS = PETSc.Options()
WORLD = PETSc.COMM_WORLD


def grid(m, wind=20.0):
    """Returns convection and diffusion on a grid of m x m points, not symmetric and with complex entries if possible."""
    A = PETSc.Mat().createAIJ((m * m, m * m), nnz=5)
    fill(A, m, wind)
    return A


def fill(A, m, wind):
    h = 1 / (m + 1)
    for k in range(*A.getOwnershipRange()):
        i, j = divmod(k, m)
        A[k, k] = 4 + 2 * h * wind + (1j if COMPLEX else 0)
        if i > 0:
            A[k, k - m] = -1 - h * wind
        if i < m - 1:
            A[k, k + m] = -1
        if j > 0:
            A[k, k - 1] = -1 - h * wind
        if j < m - 1:
            A[k, k + 1] = -1
    A.assemble()


def small(rows):
    A = PETSc.Mat().createAIJ((len(rows), len(rows)), nnz=len(rows))
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value is not None and A.getOwnershipRange()[0] <= i < A.getOwnershipRange()[1]:
                A[i, j] = value
    A.assemble()
    return A


def solver(A, kind="crout", prefix=""):
    ksp = PETSc.KSP().create(A.getComm())
    ksp.setOptionsPrefix(prefix)
    ksp.setOperators(A)
    ksp.setType("preonly")
    if kind == "crout":
        ksp.getPC().setType("lu")
        ksp.getPC().setFactorSolverType("crout")
    else:
        ksp.getPC().setType("python")
        ksp.getPC().setPythonType("crout.petsc.PC")
    ksp.setFromOptions()
    return ksp


def call(function, *objects):
    """Calls a function of PETSc that petsc4py 3.18 lacks."""
    petsc = ctypes.CDLL(OPTIONS.getString("libpetsc"))
    assert getattr(petsc, function)(*(ctypes.c_void_p(thing.handle) for thing in objects)) == 0


class Case(unittest.TestCase):
    kind = "crout"

    def solver(self, A, prefix=""):
        ksp = solver(A, self.kind, prefix)
        self.addCleanup(ksp.destroy)
        return ksp

    def check(self, ksp, A, transpose=False):
        """Solves a system and checks its residual."""
        b, x = A.createVecs("left"), A.createVecs("right")
        b.setRandom()
        if transpose:
            ksp.solveTranspose(b, x)
        else:
            ksp.solve(b, x)
        self.assertGreater(ksp.getConvergedReason(), 0)
        r = b.duplicate()
        (A.multTranspose if transpose else A.mult)(x, r)
        r.axpy(-1, b)
        self.assertLess(r.norm(), 1e-11 * b.norm())

    def check_many(self, solve, A, transpose=False):
        """Solves with five right-hand sides and checks the residuals."""
        B = PETSc.Mat().createDense((A.getSizes()[0], (None, 5)), comm=A.getComm())
        B.setUp()
        B.setRandom()
        B.assemble()
        X = B.duplicate()
        X.assemble()
        solve(B, X)
        R = (A.transposeMatMult if transpose else A.matMult)(X)
        R.axpy(-1, B)
        self.assertLess(R.norm(), 1e-11 * B.norm())

    def options(self, prefix, **values):
        for name, value in values.items():
            OPTIONS[f"{prefix}{name}"] = value
            self.addCleanup(OPTIONS.delValue, f"{prefix}{name}")

    def assert_error(self, text, call, *arguments):
        """Checks that the call fails on every process, with this text in PETSc's message."""
        with self.assertRaises(PETSc.Error) as failed:
            call(*arguments)
        if WORLD.getRank() == 0:
            self.assertIn(text, str(failed.exception))
        return failed.exception.ierr


class SolverCases(Case):
    """The solver type, on one process or several."""

    def setUp(self):
        self.info = pathlib.Path(OPTIONS.getString("info", "") + ".0")
        self.begin = len(self.log())

    def log(self):
        """Returns the messages of libcroutpetsc on rank 0."""
        return [line for line in self.info.read_text(errors="replace").splitlines() if "Crout:" in line]

    def assert_log(self, *texts):
        """Checks the messages since the previous call."""
        lines = [line for line in self.log()[self.begin:] if "sent" in line]
        self.begin = len(self.log())
        self.assertEqual(len(texts), len(lines), lines)
        for text, line in zip(texts, lines, strict=True):
            self.assertIn(text, line)

    def test_solves_and_transposes(self):
        A = grid(40)
        ksp = self.solver(A)
        self.check(ksp, A)
        self.check(ksp, A, transpose=True)
        self.check(ksp, A)
        self.assertEqual(ksp.getPC().getFactorSolverType(), "crout")

    def test_many_right_hand_sides(self):
        A = grid(30)
        ksp = self.solver(A)
        ksp.setUp()
        F = ksp.getPC().getFactorMatrix()
        self.check_many(F.matSolve, A)
        self.check_many(functools.partial(call, "KSPMatSolve", ksp), A)
        self.check_many(functools.partial(call, "MatMatSolveTranspose", F), A, transpose=True)

    def test_the_same_pattern_sends_values_alone(self):
        A = grid(80)
        ksp = self.solver(A)
        self.check(ksp, A)
        self.assert_log("sent the matrix for a new factor: factored")
        fill(A, 80, wind=30.0)
        self.check(ksp, A)
        self.check(ksp, A, transpose=True)
        self.assert_log(f"sent {5 * 80 * 80 - 4 * 80} values: factored")

    def test_a_dense_factor_takes_the_matrix(self):
        A = small([[4, 1], [2, 3]])
        ksp = self.solver(A)
        self.check(ksp, A)
        for _ in range(2):
            A.scale(2)
            self.check(ksp, A)
        self.assert_log("a new factor: factored", "values: ", "the matrix for the factor: factored",
                        "the matrix for the factor: factored")

    def test_another_pattern(self):
        A = small([[4, 1, None], [2, 3, None], [None, None, 1]])
        A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
        ksp = self.solver(A)
        self.check(ksp, A)
        if A.getOwnershipRange()[0] == 0:
            A[0, 2] = 7
        A.assemble()
        self.check(ksp, A)

    def test_another_matrix(self):
        ksp = self.solver(grid(10))
        ksp.setUp()
        A = small([[None, 2], [3, None]])
        ksp.reset()
        ksp.setOperators(A)
        self.check(ksp, A)

    def test_a_singular_matrix_is_a_reason(self):
        A = small([[1, 2], [2, 4]])
        ksp = self.solver(A)
        b, x = A.createVecs("left"), A.createVecs("right")
        b.set(1)
        for _ in range(2):
            ksp.solve(b, x)
            self.assertEqual(ksp.getConvergedReason(), PETSc.KSP.ConvergedReason.DIVERGED_PCSETUP_FAILED)
            A.scale(2)
        if A.getOwnershipRange()[0] == 0:
            A[0, 0] = 8
        A.assemble()
        self.check(ksp, A)
        A.zeroEntries()
        A.assemble()
        ksp.solve(b, x)
        self.assertLess(ksp.getConvergedReason(), 0)
        # The server still has the factor of the previous matrix.
        F = ksp.getPC().getFactorMatrix()
        self.assertEqual(self.assert_error("the matrix is singular", self.check_many, F.matSolve, A), 71)

    def test_a_nearly_singular_matrix_warns_once(self):
        A = small([[1, 2, 3], [4, 5, 6], [7, 8, 9.000000000000002]])
        ksp = self.solver(A)
        b, x = A.createVecs("left"), A.createVecs("right")
        b.set(1)
        with tempfile.TemporaryFile() as errors:
            before = os.dup(2)
            os.dup2(errors.fileno(), 2)
            try:
                for _ in range(2):
                    ksp.solve(b, x)
            finally:
                os.dup2(before, 2)
                os.close(before)
            errors.seek(0)
            text = errors.read().decode()
        self.assertEqual(text.count("the matrix may be numerically singular"), 1 if WORLD.getRank() == 0 else 0, text)

    def test_a_singular_matrix_is_an_error_on_request(self):
        ksp = self.solver(small([[1, 2], [2, 4]]))
        ksp.setErrorIfNotConverged(True)
        self.assertEqual(self.assert_error("the matrix is singular", ksp.setUp), 71)  # PETSC_ERR_MAT_LU_ZRPVT

    def test_options_reach_the_server(self):
        A = grid(10)
        self.options("own_", mat_crout_server=os.environ["CROUT_SERVER"], mat_crout_algorithm="multifrontal",
                     mat_crout_name="own", mat_crout_condition=True, mat_crout_refinement_steps=2, mat_crout_lease=100)
        ksp = self.solver(A, "own_")
        self.check(ksp, A)
        viewer = PETSc.Viewer().createASCII(str(self.info) + ".view", comm=A.getComm())
        viewer.pushFormat(PETSc.Viewer.Format.ASCII_INFO)
        ksp.getPC().getFactorMatrix().view(viewer)
        viewer.popFormat()
        viewer.destroy()
        if WORLD.getRank() == 0:
            text = pathlib.Path(str(self.info) + ".view").read_text()
            self.assertRegex(text, r"handle [a-z2-7]{26}, version 1")
            self.assertRegex(text, r"reciprocal condition 0\.\d")
            croutctl = os.environ["CROUT_CROUTCTL"]
            self.assertRegex(subprocess.check_output([croutctl, "describe", "own"], text=True), r"method +multifrontal")

    def test_wrong_options(self):
        self.options("wrong_", mat_crout_algorithm="fast")
        ksp = self.solver(grid(3), "wrong_")
        self.assertEqual(self.assert_error("no algorithm is called fast", ksp.setUp), 62)  # PETSC_ERR_ARG_WRONG

    def test_an_unreachable_server(self):
        self.options("far_", mat_crout_server="127.0.0.1:1")
        ksp = self.solver(grid(3), "far_")
        self.assertEqual(self.assert_error("failed to connect", ksp.setUp), 76)  # PETSC_ERR_LIB

    def test_a_lost_factor(self):
        A = grid(3)
        self.options("lost_", mat_crout_name="lost")
        ksp = self.solver(A, "lost_")
        self.check(ksp, A)
        if WORLD.getRank() == 0:
            subprocess.check_output([os.environ["CROUT_CROUTCTL"], "release", "lost"])
        WORLD.barrier()
        b = A.createVecs("left")
        self.assert_error("Crout:", ksp.getPC().getFactorMatrix().solve, b, b.duplicate())
        A.scale(2)
        self.check(ksp, A)

    def test_the_limit_of_gathered_matrices(self):
        A = grid(20)
        self.options("limit_", mat_crout_gather_limit=0.01)
        ksp = self.solver(A, "limit_")
        if WORLD.getSize() == 1:
            self.check(ksp, A)
        else:
            self.assert_error("Raise -mat_crout_gather_limit", ksp.setUp)

    def test_blocks(self):
        A = grid(20)
        self.options("block_", pc_type="bjacobi", sub_pc_type="lu", sub_pc_factor_mat_solver_type="crout",
                     ksp_type="gmres", ksp_rtol=1e-13)
        self.check(self.solver(A, "block_"), A)


class PythonCases(Case):
    """crout.petsc.PC."""

    kind = "python"

    def test_solves_and_transposes(self):
        A = grid(40)
        ksp = self.solver(A)
        self.check(ksp, A)
        self.check(ksp, A, transpose=True)
        self.check_many(functools.partial(call, "KSPMatSolve", ksp), A)

    def test_refactors(self):
        A = grid(80)
        ksp = self.solver(A)
        self.check(ksp, A)
        factor = ksp.getPC().getPythonContext()._factor
        fill(A, 80, wind=30.0)
        self.check(ksp, A)
        self.assertEqual(factor.version, 2)
        self.assertTrue(factor.record.sparse.analysis_reused)
        factor.release()
        A.scale(2)
        self.check(ksp, A)
        self.assertIsNot(factor, ksp.getPC().getPythonContext()._factor)

    def test_dense_matrices(self):
        A = PETSc.Mat().createDense((3, 3))
        A.setUp()
        A[:, :] = np.array([[1, 2, 3], [3, 1, 2], [0, 1, 1]])
        A.assemble()
        ksp = self.solver(A)
        self.check(ksp, A)
        A.scale(2)
        self.check(ksp, A)

    def test_a_singular_matrix(self):
        import crout

        A = small([[1, 2], [2, 4]])
        ksp = self.solver(A)
        with warnings.catch_warnings(), self.assertRaises(crout.Singular):
            warnings.simplefilter("ignore")
            self.check(ksp, A)

    def test_options(self):
        import crout

        self.options("own_", pc_crout_algorithm="multifrontal", pc_crout_name="python", pc_crout_lease=100, pc_crout_refine=1)
        A = grid(4)
        ksp = self.solver(A, "own_")
        self.check(ksp, A)
        record = ksp.getPC().getPythonContext()._factor.record
        self.assertEqual((record.name, record.algorithm), ("python", "multifrontal"))
        ksp.destroy()
        with crout.connect() as client:
            self.assertNotIn("python", [factor.name for factor in client.list()])

    def test_an_unreachable_server(self):
        import crout

        self.options("far_", pc_crout_server="127.0.0.1:1")
        with self.assertRaises(crout.Unavailable):
            self.solver(grid(3), "far_").setUp()


class DistributedPythonCases(Case):
    """crout.petsc.PC on several processes."""

    kind = "python"

    def test_blocks(self):
        A = grid(20)
        self.options("block_", pc_type="bjacobi", sub_pc_type="python", sub_pc_python_type="crout.petsc.PC",
                     ksp_type="gmres", ksp_rtol=1e-13)
        self.check(self.solver(A, "block_"), A)

    def test_distributed_matrices_are_refused(self):
        import crout

        with self.assertRaisesRegex(crout.InvalidRequest, "-pc_type bjacobi"):
            self.solver(grid(4)).setUp()


if __name__ == "__main__":
    result = unittest.main(argv=["cases.py", sys.argv[1]], exit=False).result
    gc.collect()  # petsc4py 3.18 crashes at the exit if a Python PC still exists
    sys.exit(not result.wasSuccessful())
