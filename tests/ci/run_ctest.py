#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CTest, and repeats failed test cases alone if their failure may depend on timing.

usage: run_ctest.py PRESET [CTEST_ARGUMENT...]

A failed case runs three more times, alone. If all three runs pass, the case is FLAKY: the script prints its first
failure and continues. Exit status: 0 if every test passed or at most one case was FLAKY; 1 otherwise.

Sanitizer reports, crashes, time-outs and wrong numbers are never repeated.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

REPEATS = 3
MAX_FLAKY = 1

SANITIZER = re.compile(
    r"(Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer|\.(cc|h|cu|cuh):\d+:\d+: runtime error:"
)
# Matches failed comparisons of floating-point values and failed checks of accuracy.
WRONG_NUMBER = re.compile(
    r"\bnan\b|\binf\b|\d\.\d|\de[+-]\d|ratio|residual|backward|error bound|growth|rcond|The difference between"
    r"|AssertionError: .*(assert_all|not equal to tolerance)",
    re.IGNORECASE,
)


def configured_tests(preset, arguments):
    """Returns {name: (command, environment, directory)} of the tests that CTest selects."""
    listing = subprocess.run(
        ["ctest", "--preset", preset, "--show-only=json-v1", *arguments], capture_output=True, text=True, check=True
    )
    tests = {}
    for test in json.loads(listing.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        environment = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
        tests[test["name"]] = (test.get("command"), environment, properties.get("WORKING_DIRECTORY"))
    return tests


def failed_tests(junit):
    """Returns [(name, how, output)] of the failed tests in CTest's JUnit report."""
    failed = []
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        failure = case.find("failure")
        if failure is not None:
            failed.append((case.get("name"), failure.get("message") or "Failed", case.findtext("system-out") or ""))
    return failed


def failed_cases(output):
    """Returns {case: text} of the failed GoogleTest cases in `output`, or {} for other programs."""
    cases = {}
    for match in re.finditer(r"^\[ RUN      \] (\S+)\n(.*?)^\[  FAILED  \] \1", output, re.MULTILINE | re.DOTALL):
        cases[match.group(1)] = match.group(2)
    return cases


def why_final(how, output, cases):
    """Returns the reason for which a failure must not be repeated, or None."""
    if how not in ("", "Failed"):
        return how
    if SANITIZER.search(output):
        return "sanitizer report"
    if re.search(r"^\[ RUN ", output, re.MULTILINE) and not cases:
        return "the program ended in a test case"
    for case, text in cases.items():
        if WRONG_NUMBER.search(text):
            return f"{case}: wrong number"
    # In the output of other programs, only the lines with failed assertions of pytest and unittest count.
    assertions = re.findall(r"^(?:E  |AssertionError).*", output, re.MULTILINE)
    if not cases and WRONG_NUMBER.search("\n".join(assertions)):
        return "wrong number"
    return None


def passes_alone(test, case):
    command, environment, directory = test
    if case is not None:
        command = [*command, f"--gtest_filter={case}"]
        environment = {key: value for key, value in environment.items() if not key.startswith("GTEST_")}
    run = subprocess.run(
        command, env={**os.environ, **environment}, cwd=directory, capture_output=True, text=True, errors="replace"
    )
    if run.returncode != 0:
        print(run.stdout[-8000:], run.stderr[-8000:], sep="\n")
    return run.returncode == 0


def repeat(test, name, how, output):
    """Returns [(label, first failure)] of the FLAKY cases of a failed test, or None if the test has failed."""
    cases = failed_cases(output)
    final = why_final(how, output, cases)
    if final is not None:
        print(f"\n{name}: not repeated: {final}")
        return None
    flaky = []
    for case, text in cases.items() if cases else [(None, output[-8000:])]:
        label = f"{name}: {case}" if case else name
        for _ in range(REPEATS):
            if not passes_alone(test, case):
                print(f"\n{label}: failed again, alone")
                return None
        flaky.append((label, text))
    return flaky


def main(preset, arguments):
    with tempfile.TemporaryDirectory() as folder:
        junit = pathlib.Path(folder) / "junit.xml"
        run = subprocess.run(
            ["ctest", "--preset", preset, "--output-junit", str(junit), "--test-output-size-failed", "10000000", *arguments]
        )
        if run.returncode == 0:
            return 0
        failed = failed_tests(junit) if junit.exists() else []
    if not failed:
        return run.returncode
    tests = configured_tests(preset, arguments)
    flaky = []
    stands = False
    for name, how, output in failed:
        found = repeat(tests[name], name, how, output)
        if found is None:
            stands = True
        else:
            flaky += found
    for label, text in flaky:
        print(f"\nFLAKY: {label} failed once and passed {REPEATS} times alone. Its first failure:\n{text}")
    if len(flaky) > MAX_FLAKY:
        print(f"\n{len(flaky)} FLAKY cases; at most {MAX_FLAKY} is accepted")
    return 1 if stands or len(flaky) > MAX_FLAKY else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
