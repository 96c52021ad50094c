#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Combines the reports of run_suite.sh.

usage: suite_result.py RESULTS_DIRECTORY > result.json
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from report import results  # noqa: E402


def main(directory):
    tests = []
    head = {}
    context = {}
    for path in directory.glob("*.failed"):
        if not path.with_suffix(".json").exists():
            sys.exit(f"{path.stem} left no report (it was not found, or it crashed): see its log")
    # A program that runs in several lanes has one report per lane: NAME.LANE.json.
    for path in sorted(directory.glob("gpu_*_test*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["tests"] == 0:
            continue
        if "commit" in report:  # gpu_plugin_test does not record it
            head = head or {"device": report["device"], "version": report["version"],
                            "commit": report["commit"], "date": report["timestamp"]}
            if report["commit"] != head["commit"]:
                sys.exit(f"{path} is of commit {report['commit']}, others of {head['commit']}: run "
                         "the suite again into an empty directory")
        for suite in report["testsuites"]:
            for test in suite["testsuite"]:
                tests.append({"program": path.name.split(".")[0],
                              "test": f"{suite['name']}.{test['name']}",
                              "passed": not test.get("failures"),
                              "seconds": float(test["time"].rstrip("s"))})
                if "files" in test:
                    context["real_matrices"] = {
                        "checked": int(test["checked"]), "of_index_not_there": int(test["missing"]),
                        "files": test["files"].split()}
    if not tests:
        sys.exit(f"no report of a test in {directory}: let run_suite.sh finish there first")
    tests.sort(key=lambda test: (test["program"], test["test"]))
    passed = sum(test["passed"] for test in tests)
    sys.stdout.write(results.text({"suite": "gpu", **head, **context, "passed": passed,
                                   "failed": len(tests) - passed, "tests": tests}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
