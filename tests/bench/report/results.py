# SPDX-License-Identifier: Apache-2.0
"""Result files of crout-bench as lists of cases."""

import json
import pathlib

from report.table import count

REFERENCE = "getrf"
ACCEPTED_RATIO = 30  # LAPACK's threshold for the factor ratio
DTYPES = ("f64", "f32", "c128", "c64")


def load(path):
    """Returns the JSON object in a result file, with the file's name as "file"."""
    result = json.loads(pathlib.Path(path).read_text())
    result["file"] = pathlib.Path(path).name
    return result


def text(result):
    """Returns a result as JSON in the format of FormatResult (bench_result.h)."""
    members = []
    for key, value in result.items():
        if isinstance(value, list) and value:
            rows = ",\n ".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in value)
            members.append(f"{json.dumps(key)}: [\n {rows}\n]")
        else:
            members.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}")
    return "{\n" + ",\n".join(members) + "\n}\n"


def device_label(result):
    """Returns a short name of the device, such as "H100" or "host (4 cores)"."""
    device = result["device"]
    if device.startswith("NVIDIA"):
        return device.split()[1]
    cores = result.get("cores")
    return f"host ({count(cores, 'core')})" if cores else "host"


def origin(result):
    """Returns device, date and commit, as in "NVIDIA H200, 16 cores, 2026-11-23, commit 0123456789ab"."""
    cores = [count(result["cores"], "core")] if result.get("cores") else []
    return ", ".join([result["device"], *cores, result["date"][:10], f"commit {result['commit']}"])


def busy(result):
    """Returns whether the machine's load exceeded its number of cores at the start of the run."""
    return result.get("load", 0) > result.get("machine_cores", result.get("cores", 1))


def caution(result):
    """Returns a note for tables of seconds if the machine was busy, otherwise ""."""
    return " The machine was busy with other work, so the times are too long." if busy(result) else ""


def origins(some_cases):
    """Returns the distinct origins of the cases."""
    return list(dict.fromkeys(case["origin"] for case in some_cases))


def method(case):
    """Returns the algorithm and its parameters that differ from the defaults, as text."""
    names = {"section_size": "sections of", "block_size": "blocks of", "pivoting": "pivoting",
             "tolerance": "tolerance", "absolute_tolerance": "absolute tolerance",
             "sweep_limit": "sweep limit", "variant": "variant"}
    parameters = case.get("parameters", {})
    text = ", ".join("published sections" if (key, value) == ("section_size", "published") else
                     "as published" if (key, value) == ("variant", "published") else
                     f"{names[key]} {_short(value)}" for key, value in parameters.items())
    return f"{case['algorithm']} ({text})" if text else case["algorithm"]


def _short(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def cases(results):
    """Returns the cases of several results. Each has also the label of its device, its origin and its series.

    A series is a method on a device. Its name omits the device if all results have the same device.
    """
    devices = {device_label(result) for result in results}
    flat = []
    for result in results:
        for case in result["cases"]:
            case = dict(case, device=device_label(result), origin=origin(result))
            case["series"] = method(case)
            if len(devices) > 1:
                case["series"] += f", {case['device']}"
            flat.append(case)
    return flat


def single_matrices(all_cases, dtype):
    """Returns the cases without steps of sequences and direct solves."""
    return [case for case in all_cases
            if case["dtype"] == dtype and "sequence" not in case and "nrhs" not in case]


def timed(case):
    """Returns whether the time of the case counts. It does not if the method found a zero pivot."""
    return "median_s" in case and case.get("info", 0) == 0


def inaccurate(case):
    """Returns whether the factor is inaccurate. JSON has null for a ratio of NaN."""
    ratio = case.get("factor_ratio", 0)
    return ratio is None or ratio >= ACCEPTED_RATIO


def dtypes(all_cases):
    return [d for d in DTYPES if any(case["dtype"] == d for case in all_cases)]


def series_of(some_cases):
    """Returns the names of the series in the order of their first appearance."""
    return list(dict.fromkeys(case["series"] for case in some_cases))


def by_matrix(some_cases):
    """Returns [(matrix, n, {series: case})], sorted by order and name."""
    rows = {}
    for case in some_cases:
        rows.setdefault((case["n"], case["matrix"]), {})[case["series"]] = case
    return [(matrix, n, row) for (n, matrix), row in sorted(rows.items())]


def about_blocks(result):
    """Returns whether a result has block_lu or the plain loops and, except for getrf, no other methods."""
    beside_getrf = {case["algorithm"] for case in result["cases"]} - {REFERENCE}
    return bool(beside_getrf) and beside_getrf <= {"block_lu", "lu_loop"}


def about_direct(result):
    """Returns whether a result has direct solvers and, except for getrf, no factorizations."""
    factored = {case["algorithm"] for case in result["cases"] if "nrhs" not in case}
    return factored <= {REFERENCE} and len(factored) < len({case["algorithm"] for case in result["cases"]})


def reference_of(some_cases):
    """Returns the reference series for comparisons, which is getrf if there is one."""
    for case in some_cases:
        if case["algorithm"] == REFERENCE and "parameters" not in case:
            return case["series"]
    return None
