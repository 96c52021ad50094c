#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests libcroutpetsc and crout.petsc.PC with a croutd.

Compiles libcroutpetsc for each PETSc, and PETSc's examples ex2 and ex10, which then use it by options alone. The cases in
cases.py run by petsc4py if it is installed for the PETSc, on one process and on two.

    petsc_test.py BUILD [--plugin LIBRARY] [PETSC...]
        BUILD     build tree of Crout, with croutd, croutctl, libcrout and the environment of the Python client's tests
        LIBRARY   a libcroutpetsc for the PETSc that pkg-config finds; tested in addition
        PETSC     folders with lib/pkgconfig/PETSc.pc; default: the packages of Debian
"""

import argparse
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import petsc_binary

ROOT = pathlib.Path(__file__).resolve().parents[3]
CASES = pathlib.Path(__file__).with_name("cases.py")
CROUT = ["-pc_type", "lu", "-pc_factor_mat_solver_type", "crout"]
MATRICES = pathlib.Path(os.environ.get("CROUT_MATRICES", ROOT.parent / "shared/matrices"))
# Files for ex10 of the shared matrices: circuits, power grids, a reservoir, combustion, complex numbers.
REAL = ["circuit/rajat14.mtx.gz", "hb/494_bus.mtx.gz", "fasp/spe01.mtx.gz", "ginkgo/2dcyl1.mtx.gz"]
COMPLEX = ["cuda_samples/test_complex.mtx"]
BUILD = PLUGIN = None
PETSCS = []


def run(*command, status=0, **options):
    """Runs a command and returns its output. Raises an error with the output if the exit status is unexpected."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300, **options)
    if (done.returncode == 0) != (status == 0):
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Petsc:
    """An installed PETSc with a libcroutpetsc that was compiled for it."""

    def __init__(self, folder, work):
        self.folder = folder
        self.work = work / str(len(list(work.iterdir())))
        self.work.mkdir()
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("CROUT_")}
        self.env |= {"PKG_CONFIG_PATH": str(folder / "lib/pkgconfig"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
        include = self.pkg_config("--variable=includedir")[0]
        settings = pathlib.Path(include, "petscconf.h").read_text(encoding="utf-8")
        self.complex = "define PETSC_USE_COMPLEX 1" in settings
        self.index_bytes = 8 if "define PETSC_USE_64BIT_INDICES 1" in settings else 4
        self.compiler = self.pkg_config("--variable=ccompiler")[0]
        self.plugin = self.work / "libcroutpetsc.so"
        libraries = BUILD / "client/c"
        run(self.compiler, "-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self.plugin,
            *sorted((ROOT / "client/petsc").glob("*.c")), f"-I{ROOT / 'client/c'}", f"-L{libraries}", "-lcrout",
            f"-Wl,-rpath,{libraries}", *self.pkg_config("--cflags", "--libs"))

    def pkg_config(self, *options):
        return run("pkg-config", *options, "PETSc", env=self.env).split()

    def library(self):
        """Returns the path of libpetsc."""
        folder = pathlib.Path(self.pkg_config("--variable=libdir")[0])
        name = next(word[2:] for word in self.pkg_config("--libs") if word.startswith("-lpetsc"))
        return folder / f"lib{name}.so"

    @functools.cache
    def example(self, name):
        """Compiles an example of PETSc's tutorials on linear solvers."""
        source = f"src/ksp/ksp/tutorials/{name}.c"
        places = [self.folder / "share/petsc/examples" / source, *(parent / source for parent in self.folder.parents),
                  self.folder / source]
        found = [place for place in places if place.is_file()]
        if not found:
            raise unittest.SkipTest(f"no {source} of PETSc")
        run(self.compiler, "-o", self.work / name, found[0], *self.pkg_config("--cflags", "--libs"), "-lm",
            f"-Wl,-rpath,{self.library().parent}")
        return self.work / name

    def petsc4py(self):
        """Returns the folder of petsc4py."""
        for place in (self.folder / "lib/python3/dist-packages", self.folder / "lib"):
            if (place / "petsc4py").is_dir():
                return place
        raise unittest.SkipTest("no petsc4py for this PETSc")


def for_each_petsc(test):
    """Runs a test as a subtest for each PETSc."""
    @functools.wraps(test)
    def tests(self):
        for petsc in self.petscs:
            with self.subTest(petsc.folder):
                test(self, petsc)
    return tests


class PetscTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        daemon = subprocess.Popen([BUILD / "server/croutd", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                                   "--devices=host", "--state-dir=none", "--drain-grace=0s"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        def stop():
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(timeout=60)
            daemon.stdout.close()

        cls.addClassCleanup(stop)
        cls.server = re.match(r"croutd ready listen=(\S+)", daemon.stdout.readline()).group(1)
        (cls.work / "petsc").mkdir()
        cls.petscs = [Petsc(folder, cls.work / "petsc") for folder in PETSCS]

    def solve(self, petsc, name, *options, ranks=1, plugin=None, status=0):
        program = petsc.example(name)
        start = ["mpirun", "--oversubscribe", "-n", ranks] if ranks > 1 else []
        return run(*start, program, "-dll_append", plugin or petsc.plugin, *options,
                   env=petsc.env | {"CROUT_SERVER": self.server}, status=status)

    @for_each_petsc
    def test_ex2_takes_one_iteration(self, petsc):
        for ranks in (1, 2):
            output = self.solve(petsc, "ex2", "-m", 40, "-n", 50, *CROUT, ranks=ranks)
            error, iterations = re.fullmatch(r"Norm of error (\S+) iterations (\d+)\n", output).groups()
            self.assertLess(float(error), 1e-10)
            self.assertEqual(iterations, "1")

    @for_each_petsc
    def test_other_solver_types_stay(self, petsc):
        for options in (["-pc_type", "lu"], ["-pc_type", "lu", "-pc_factor_mat_solver_type", "petsc"], ["-pc_type", "ilu"]):
            self.assertIn("Norm of error", self.solve(petsc, "ex2", *options))

    @for_each_petsc
    def test_memory_is_freed(self, petsc):
        for ranks in (1, 2):
            output = self.solve(petsc, "ex2", *CROUT, "-malloc_debug", "-malloc_dump", ranks=ranks)
            self.assertRegex(output, r"^Norm of error \S+ iterations 1\n$")

    def test_the_library_of_the_build(self):
        if PLUGIN is None:
            self.skipTest("the build has no libcroutpetsc")
        includes = run("pkg-config", "--variable=includedir", "PETSc").strip()
        petsc = next(petsc for petsc in self.petscs if petsc.pkg_config("--variable=includedir")[0] == includes)
        self.assertIn("iterations 1\n", self.solve(petsc, "ex2", *CROUT, "-mat_crout_server", self.server, plugin=PLUGIN))

    def check_ex10(self, petsc, file, *options, ranks=1):
        with self.subTest(file.name, options=options, ranks=ranks):
            output = self.solve(petsc, "ex10", "-f", file, "-ksp_rtol", "1e-10", *CROUT, *options, ranks=ranks)
            self.assertLessEqual(int(re.search(r"Number of iterations = +(\d+)", output).group(1)), 2)

    @for_each_petsc
    def test_ex10_solves_with_real_matrices(self, petsc):
        sources = [ROOT / "client/examples/convection_diffusion.mtx"]
        sources += [MATRICES / name for name in (COMPLEX if petsc.complex else REAL) if (MATRICES / name).is_file()]
        for source in sources:
            file = petsc.work / f"{source.name}.petsc"
            petsc_binary.write(source, file, petsc.index_bytes, petsc.complex)
            self.check_ex10(petsc, file)
        self.check_ex10(petsc, file, "-trans")
        self.check_ex10(petsc, file, ranks=2)

    @for_each_petsc
    def test_help_lists_the_options(self, petsc):
        listed = set(re.findall(r"-(mat_crout_\w+)", self.solve(petsc, "ex2", *CROUT, "-help")))
        page = (ROOT / "docs/petsc.md").read_text(encoding="utf-8")
        self.assertEqual(listed, set(re.findall(r"`-(mat_crout_\w+)", page)))

    def test_a_library_for_another_petsc_is_refused(self):
        others = [petsc for petsc in self.petscs if petsc.complex != self.petscs[0].complex]
        if not others:
            self.skipTest("one kind of PETSc")
        output = self.solve(others[0], "ex2", plugin=self.petscs[0].plugin, status=1)
        self.assertIn("Compile libcroutpetsc for it", output)

    @for_each_petsc
    def test_only_petsc_mpi_and_libcrout_are_linked(self, petsc):
        needed = set(re.findall(r"NEEDED.*\[lib(\w+)", run("readelf", "-d", petsc.plugin)))
        self.assertLessEqual(needed, {"petsc", "petsc_real", "petsc_complex", "crout", "mpi", "c"})

    def cases(self, petsc, kind, *options, ranks=1):
        python = BUILD / "tests/python/environment/bin/python"
        if not python.exists():
            self.skipTest("the Python client is not installed in the build")
        env = petsc.env | {"CROUT_SERVER": self.server, "PYTHONPATH": str(petsc.petsc4py()), "PYTHONDONTWRITEBYTECODE": "1",
                           "CROUT_CROUTCTL": str(BUILD / "client/cli/croutctl")}
        start = ["mpirun", "--oversubscribe", "-n", ranks] if ranks > 1 else []
        return run(*start, python, CASES, kind, "-libpetsc", petsc.library(), *options, env=env)

    @for_each_petsc
    def test_the_solver_type_by_petsc4py(self, petsc):
        for ranks in (1, 2):
            info = petsc.work / f"info_{ranks}"
            self.assertIn("OK", self.cases(petsc, "SolverCases", "-dll_append", petsc.plugin, "-info", info, ranks=ranks))

    @for_each_petsc
    def test_the_python_preconditioner(self, petsc):
        self.assertIn("OK", self.cases(petsc, "PythonCases"))
        self.assertIn("OK", self.cases(petsc, "DistributedPythonCases", ranks=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("petsc", nargs="*", type=pathlib.Path)
    parser.add_argument("--plugin", type=pathlib.Path)
    arguments = parser.parse_args()
    BUILD, PLUGIN = arguments.build.resolve(), arguments.plugin
    PETSCS = [folder.resolve() for folder in arguments.petsc]
    PETSCS = PETSCS or [file.parents[2] for file in sorted(pathlib.Path("/usr/lib/petscdir").glob("petsc*/*/lib/pkgconfig/PETSc.pc"))]
    if not PETSCS or not shutil.which("pkg-config"):
        print("no PETSc or no pkg-config: skipped")
        sys.exit(77)
    unittest.main(argv=["petsc_test.py"], verbosity=2)
