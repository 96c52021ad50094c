# SPDX-License-Identifier: Apache-2.0
"""Measures sparse systems through the service and with SciPy's splu in the same process.

usage: sparse.py MATRICES [ADDRESS] > result.json     MATRICES: a folder with the files of CASES

Prints a table to standard error, and one JSON object with the device, the commit and the date. The results
are medians of wall-clock time over alternating rounds, over loopback, for a factorization and one solve.
"first" includes the analysis of the pattern. "again" refactors with the same pattern. "values" refactors but
sends only the values. "study" is a step of a series whose steps send only values.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg
from result import head

import crout

ROUNDS = 5
STEPS = 5  # steps of a series after its first
CASES = ["nist/memplus.mtx.gz", "suitesparse/Pd.mtx.gz", "nist/sherman5.mtx.gz", "poisson2d_200"]


def matrix(folder, name):
    if not name.startswith("poisson2d_"):
        return scipy.io.mmread(folder / name).tocsc()
    m = int(name.rsplit("_", 1)[1])
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (m, m))
    return sp.kronsum(line, line).tocsc()


def timed(function):
    begin = time.perf_counter()
    x = function()
    return (time.perf_counter() - begin) * 1e3, x


def backward_error(A, x, b):
    return np.abs(b - A @ x).max() / (abs(A).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max())


def case(client, A, name):
    b = np.ones(A.shape[0])
    times = {"splu": [], "first": [], "again": [], "values": [], "study": []}
    for _ in range(ROUNDS + 1):
        ms, theirs = timed(lambda: scipy.sparse.linalg.splu(A).solve(b))
        times["splu"].append(ms)
        begin = time.perf_counter()
        factor = client.lu_factor(A)
        ours = factor.solve(b)
        times["first"].append((time.perf_counter() - begin) * 1e3)

        def again(factor=factor):
            factor.refactor(A)
            return factor.solve(b)

        def by_values(factor=factor):
            factor.refactor(A, values_only=True)
            return factor.solve(b)

        times["again"].append(timed(again)[0])
        times["values"].append(timed(by_values)[0])
        record = factor.record
        study = client.series(
            [A, *[crout.Values(A.data)] * STEPS], b, strategy="refactor", algorithm=record.algorithm
        )
        next(study)
        times["study"].append(timed(lambda study=study: list(study))[0] / STEPS)
        factor.release()
    middle = {way: statistics.median(values[1:]) for way, values in times.items()}
    print(
        f"{name:24} splu {middle['splu']:8.1f} ms, first {middle['first']:8.1f},"
        f" again {middle['again']:8.1f}, values {middle['values']:8.1f},"
        f" study {middle['study']:8.1f}  {record.algorithm}",
        file=sys.stderr,
    )
    return {
        "n": A.shape[0],
        "matrix": name,
        "nonzeros": int(A.nnz),
        "algorithm": record.algorithm,
        "splu_ms": middle["splu"],
        "first_ms": middle["first"],
        "again_ms": middle["again"],
        "values_ms": middle["values"],
        "study_ms": middle["study"],
        "first_over_splu": middle["first"] / middle["splu"],
        "again_over_splu": middle["again"] / middle["splu"],
        "bytes_mib": record.bytes / 2**20,
        "splu_backward_error": backward_error(A, theirs, b),
        "backward_error": backward_error(A, ours, b),
    }


def main():
    folder = Path(sys.argv[1])
    with crout.connect(sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:50051") as client:
        result = head("python_sparse", client)
        result["sparse_users"] = [case(client, matrix(folder, name), name) for name in CASES]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
