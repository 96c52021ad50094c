#!/usr/bin/env python3
"""Puts what run_suite.sh left together: suite_result.py RESULTS_DIRECTORY > result.json"""

import json
import pathlib
import sys


def main(directory):
    tests = []
    context = {}
    for path in sorted(directory.glob("gpu_*_test.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        for suite in report["testsuites"]:
            for test in suite["testsuite"]:
                tests.append({"program": path.stem, "test": f"{suite['name']}.{test['name']}",
                              "passed": not test.get("failures"),
                              "seconds": float(test["time"].rstrip("s"))})
                if "files" in test:
                    context["real_matrices"] = {
                        "checked": int(test["checked"]), "of_index_not_there": int(test["missing"]),
                        "files": test["files"].split()}
    benches = sorted(directory.glob("gpu_*_bench.json"))
    if not benches:
        sys.exit(f"no gpu_*_bench.json in {directory} says which device and commit: let run_suite.sh "
                 "finish there first")
    bench = json.loads(benches[0].read_text(encoding="utf-8"))
    head = {key: bench[key] for key in ("device", "version", "commit", "date")}
    passed = sum(test["passed"] for test in tests)
    json.dump({"suite": "gpu", **head, **context, "passed": passed,
               "failed": len(tests) - passed, "tests": tests}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
