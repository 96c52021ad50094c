#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests sanitized_programs.py, and run_ctest.py in a small project with tests that print output like GoogleTest's."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import run_ctest  # noqa: E402
import sanitized_programs  # noqa: E402

RUN_CTEST = pathlib.Path(__file__).parent / "run_ctest.py"

PRESETS = """{"version": 6,
 "configurePresets": [{"name": "p", "generator": "Unix Makefiles", "binaryDir": "${sourceDir}/build"}],
 "testPresets": [{"name": "p", "configurePreset": "p", "output": {"outputOnFailure": true}}]}"""

# A test program. It fails in its first `failures` runs with the text `text` and, unless 0, ends by `signal`.
PROGRAM = """import os, pathlib, sys, time
name, failures, text, signal = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
runs = pathlib.Path(name + ".runs")
run = int(runs.read_text()) if runs.exists() else 0
runs.write_text(str(run + 1))
with open("arguments", "a") as arguments:
    print(name, *sys.argv[5:], file=arguments)
print("[ RUN      ] Suite/0." + name)
if run < failures:
    print("a_test.cc:1: Failure\\n" + text, flush=True)
    if text == "hangs":
        time.sleep(60)
    if signal:
        os.kill(os.getpid(), signal)
    print("[  FAILED  ] Suite/0." + name + ", where TypeParam = float (1 ms)")
    sys.exit(1)
print("[       OK ] Suite/0." + name + " (1 ms)")
"""


class RunCtestTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        (self.path / "program.py").write_text(PROGRAM)
        (self.path / "CMakePresets.json").write_text(PRESETS)

    def run_tests(self, *tests):
        """Runs run_ctest.py with tests (name, number of failing runs, text of a failure, signal or 0)."""
        lines = ["cmake_minimum_required(VERSION 3.25)", "project(p LANGUAGES NONE)", "enable_testing()"]
        for name, failures, text, signal in tests:
            lines.append(
                f'add_test(NAME {name} COMMAND "{sys.executable}" "{self.path}/program.py" {name} {failures} [==[{text}]==] '
                f"{signal})"
            )
            if text == "hangs":
                lines.append(f"set_tests_properties({name} PROPERTIES TIMEOUT 1)")
        (self.path / "CMakeLists.txt").write_text("\n".join(lines))
        subprocess.run(["cmake", "--preset", "p"], cwd=self.path, check=True, capture_output=True)
        run = subprocess.run([RUN_CTEST, "p"], cwd=self.path, capture_output=True, text=True)
        return run.returncode, run.stdout

    def runs(self, name):
        return int((self.path / "build" / f"{name}.runs").read_text())

    def test_passes(self):
        status, output = self.run_tests(("a", 0, "", 0))
        self.assertEqual(status, 0)
        self.assertNotIn("FLAKY", output)
        self.assertEqual(self.runs("a"), 1)

    def test_one_flaky_case_is_reported_and_accepted(self):
        status, output = self.run_tests(("a", 1, "held 0 of 3 threads", 0), ("b", 0, "", 0))
        self.assertEqual(status, 0, output)
        self.assertIn("FLAKY: a: Suite/0.a failed once", output)
        self.assertIn("held 0 of 3 threads", output.split("FLAKY")[1])
        self.assertEqual(self.runs("a"), 4)
        self.assertEqual(self.runs("b"), 1)
        self.assertIn("a --gtest_filter=Suite/0.a", (self.path / "build" / "arguments").read_text())

    def test_times_in_the_output_of_other_programs_are_no_wrong_numbers(self):
        self.assertIsNone(run_ctest.why_final("Failed", "E   assert 3 == 4\n1 failed in 2.50s", {}))
        self.assertIsNotNone(run_ctest.why_final("Failed", "E   assert 0.5 < 1e-10\n1 failed in 2.50s", {}))

    def test_two_flaky_cases_fail_the_run(self):
        status, output = self.run_tests(("a", 1, "too few", 0), ("b", 1, "too few", 0))
        self.assertEqual(status, 1)
        self.assertIn("2 FLAKY cases", output)

    def test_a_case_that_fails_again_fails_the_run(self):
        status, output = self.run_tests(("a", 3, "too few", 0))
        self.assertEqual(status, 1)
        self.assertIn("failed again, alone", output)

    def test_final_failures_are_not_repeated(self):
        for text, signal in (
            ("Expected: (error) <= (30), actual: 1e+05 vs 30", 0),
            ("x is nan", 0),
            ("ERROR: AddressSanitizer: heap-use-after-free", 0),
            ("/a/b.cc:3:4: runtime error: signed integer overflow", 0),
            ("no memory", 6),
            ("no memory", 11),
            ("hangs", 0),
        ):
            with self.subTest(text=text, signal=signal):
                for left in self.path.glob("build/*"):
                    if left.is_file():
                        left.unlink()
                status, output = self.run_tests(("a", 1, text, signal))
                self.assertEqual(status, 1, output)
                self.assertEqual(self.runs("a"), 1)


class SanitizedProgramsTest(unittest.TestCase):
    PROGRAMS = ["client_test", "kernels_dense_test", "kernels_io_test", "rpc_sparse_test", "server_cache_test"]

    def select(self, *files, commits=0):
        return sanitized_programs.select(self.PROGRAMS, files, commits)

    def test_every_program_has_its_turn(self):
        turns = [self.select(commits=commits) for commits in range(3)]
        self.assertEqual(sorted(sum(turns, [])), self.PROGRAMS)

    def test_changed_folders_always_run(self):
        for commits in range(3):
            self.assertIn("kernels_io_test", self.select("kernels/io/packed_array.cc", commits=commits))
            self.assertIn("client_test", self.select("client/cpp/client.cc", commits=commits))

    def test_a_change_of_all_programs_runs_half_of_them(self):
        half = (len(self.PROGRAMS) + 1) // 2
        turns = [self.select("cmake/CroutOptions.cmake", commits=commits) for commits in range(len(self.PROGRAMS))]
        self.assertEqual({len(turn) for turn in turns}, {half})
        self.assertEqual(sorted(set(sum(turns, []))), self.PROGRAMS)

    def test_documents_add_nothing(self):
        self.assertEqual(self.select("README.md"), self.select())


if __name__ == "__main__":
    unittest.main()
