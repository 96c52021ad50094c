"""A sparse system of ten million equations through the service, by each method for such matrices.

usage: large_sparse.py ADDRESS RESULT.json [--n=10000000] [--block=K] [--device=D]
                       [--algorithms=NAME,NAME...] [--pid=P]

The matrix is upwind convection and diffusion on a line, every hundredth unknown of it coupled to one half a
line away besides: 3 n entries and some, values by a formula, which are sent as they are in memory. With
--block it is blocks of order K along the diagonal, each full: n K entries, for as many as there may be.
Wall-clock seconds over loopback, of one factorization (the first of its pattern, so with its analysis), one
of other values and one solve with each factor; the backward error is computed here. --pid: of a server on
this machine; its largest resident memory so far is in each row then. The file is written anew after each
method.
"""

import argparse
import re
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from result import head, keep

import crout


def matrix(n):
    far = np.zeros(n - n // 2)
    far[::100] = -0.5
    bands = [(-1.5, -1), (4.0, 0), (-1.0, 1)]
    A = sp.diags([np.full(n - abs(k), value) for value, k in bands], [k for _, k in bands], format="csr")
    far = sp.diags([far], [n // 2], format="csr")
    far.eliminate_zeros()
    return (A + far).tocsr()


def blocks(n, order):
    count = n // order
    block = np.random.default_rng(1).uniform(-1, 1, (order, order)) + order * np.eye(order)
    first = np.arange(count, dtype=np.int32) * order
    columns = first[:, None, None] + np.arange(order, dtype=np.int32)
    indices = np.broadcast_to(columns, (count, order, order)).ravel()
    indptr = np.arange(count * order + 1, dtype=np.int64) * order
    A = sp.csr_matrix((count * order, count * order))
    A.data, A.indices, A.indptr = np.tile(block.ravel(), count), indices, indptr.astype(np.int32)
    return A


def backward_error(A, x, b):
    """Norms of a few rows at a time, since a copy of a large A may not fit."""
    step = 100_000
    norm = max(abs(A[i : i + step]).sum(axis=1).max() for i in range(0, A.shape[0], step))
    return float(np.abs(b - A @ x).max() / (norm * np.abs(x).max() + np.abs(b).max()))


def resident_peak(pid):
    """MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) / 1024


def seconds(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def run(client, A, algorithm, device):
    b = np.ones(A.shape[0])
    options = {"algorithm": algorithm, "device": device}
    factor_s, factor = seconds(lambda: client.lu_factor(A, **options))
    with factor:
        solve_s, x = seconds(lambda: factor.solve(b))
        first = backward_error(A, x, b)
        A.data *= 1.25
        again_s, _ = seconds(lambda: factor.refactor(A, values_only=True, **options))
        again_solve_s, x = seconds(lambda: factor.solve(b))
        sparse = factor.record.sparse
        return {
            "algorithm": algorithm,
            "ordering": sparse.ordering,
            "lu_entries": sparse.lu_entries,
            "factor_s": factor_s,
            "solve_s": solve_s,
            "values_s": again_s,
            "values_solve_s": again_solve_s,
            "factor_mib": factor.record.bytes / 2**20,
            "perturbed_pivots": sparse.perturbed_pivots,
            "backward_error": first,
            "values_backward_error": backward_error(A, x, b),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("result")
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--block", type=int, default=0)
    parser.add_argument("--device", default="")
    parser.add_argument("--algorithms", default="multifrontal,klu")
    parser.add_argument("--pid", type=int)
    arguments = parser.parse_args()
    with crout.connect(arguments.address) as client:
        rows = []
        result = {**head("large_sparse", client, arguments.device), "large_sparse": rows}
        for algorithm in arguments.algorithms.split(","):
            A = blocks(arguments.n, arguments.block) if arguments.block else matrix(arguments.n)
            row = {"n": A.shape[0], "nonzeros": int(A.nnz)}
            row.update(run(client, A, algorithm, arguments.device))
            if arguments.pid:
                row["server_peak_mib"] = resident_peak(arguments.pid)
            print(row, file=sys.stderr)
            rows.append(row)
            keep(result, arguments.result)


if __name__ == "__main__":
    main()
