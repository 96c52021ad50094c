# SPDX-License-Identifier: Apache-2.0
"""Runs SciPy's own tests with the functions of crout.scipy in place of SciPy's.

usage: scipy_suite.py [ADDRESS] [pytest arguments]     of a croutd; the default is $CROUT_SERVER

A test that fails although scipy_suite_failures.txt does not list it fails the run. So does a listed test
that passes. Only tests that call a replaced function count. This file is also the pytest plugin of the run.
"""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import scipy
import scipy.linalg
import scipy.sparse.linalg

import crout.scipy

ROOT = Path(scipy.__file__).parent
FAILURES = Path(__file__).with_name("scipy_suite_failures.txt")
# Tests that call the functions, by a pattern of their names. Others would only take time.
FILES = {
    "linalg/tests/test_basic.py": r"::Test(Solve|Inv)::",
    "linalg/tests/test_batch.py": r"\b(inv|lu_factor)\b|test_(lu_solve|solve)\b|\bsolve\b",
    "linalg/tests/test_decomp_lu.py": r"::TestLU_?(Factor|Solve)::|lu_factor|lu_solve",
    "sparse/linalg/_dsolve/tests/test_linsolve.py": r"::Test(Factorized|Linsolve|Splu)::",
    "sparse/linalg/tests/test_matfuncs.py": r"inv",
}
PATTERNS = {Path(file).name: re.compile(pattern) for file, pattern in FILES.items()}
DENSE = ("inv", "lu_factor", "lu_solve", "solve")
SPARSE = ("factorized", "inv", "splu", "spsolve")


def expected():
    """Return patterns of the listed tests with their reasons. "*" is a parameter."""
    reasons, reason = [], ""
    for line in FAILURES.read_text().splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            pattern = re.escape(line).replace(r"\*", r"[^-\]]*")
            reasons.append((re.compile(pattern), reason))
    return reasons


def name_of(item):
    """Return the file, class and function of a test, and its parameters."""
    return f"{Path(item.fspath).name}::" + "::".join(item.nodeid.split("::")[1:])


class Suite:
    """Counts the tests that call a replaced function."""

    def __init__(self):
        self.calls = 0
        self.before = 0
        self.counts = dict.fromkeys(("passed", "failed as expected", "skipped"), 0)
        self.surprises = []
        self.expected = expected()

    def replace(self, module, name):
        function = getattr(crout.scipy, name)

        @functools.wraps(function)
        def counted(*args, **kwargs):
            self.calls += 1
            return function(*args, **kwargs)

        setattr(module, name, counted)

    def pytest_collection_modifyitems(self, config, items):
        chosen = [item for item in items if PATTERNS[Path(item.fspath).name].search(name_of(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen

    def pytest_runtest_setup(self):
        self.before = self.calls

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        if report.when == "call" and (self.calls > self.before or report.failed):
            name = name_of(item)
            reason = next((reason for pattern, reason in self.expected if pattern.fullmatch(name)), "")
            self.judge(report, name, reason)

    def judge(self, report, name, reason):
        """Count a test, and change its report if the failure is expected, or the success is not."""
        if report.skipped:
            self.counts["skipped"] += 1
        elif report.failed and reason:
            report.outcome, report.wasxfail = "skipped", reason
            self.counts["failed as expected"] += 1
        elif report.failed:
            self.surprises.append(f"fails: {name}")
        elif reason:
            report.outcome, report.longrepr = "failed", f"this test is listed as failing: {reason}"
            self.surprises.append(f"passes although it is listed: {name}")
        else:
            self.counts["passed"] += 1

    def pytest_terminal_summary(self, terminalreporter):
        text = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count)
        terminalreporter.write_line(f"SciPy {scipy.__version__} with crout.scipy: {text}")
        for surprise in self.surprises:
            terminalreporter.write_line(surprise)


def pytest_configure(config):
    suite = Suite()
    for name in DENSE:
        suite.replace(scipy.linalg, name)
    for name in SPARSE:
        for module in (scipy.sparse.linalg, scipy.sparse.linalg._dsolve):
            suite.replace(module, name)
    config.pluginmanager.register(suite)


def run(address, *arguments):
    """Run the tests in another process. Return its exit status and output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "scipy_suite"]
    command += ["-c", os.devnull, f"--rootdir={ROOT}", "-m", "not slow and not xslow", "--tb=short"]
    environment = os.environ | {"CROUT_SERVER": address, "PYTHONPATH": str(Path(__file__).parent)}
    files = [ROOT / file for file in FILES if (ROOT / file).exists()]  # test_batch.py is of SciPy 1.15
    done = subprocess.run(
        [*command, *arguments, *files], capture_output=True, text=True, timeout=1000, env=environment
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    given = sys.argv[1:]
    where = given.pop(0) if given and not given[0].startswith("-") else os.environ.get("CROUT_SERVER", "")
    status, output = run(where, *given)
    print(output)
    sys.exit(status)
