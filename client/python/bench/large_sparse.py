# SPDX-License-Identifier: Apache-2.0
"""Measures a sparse system of ten million equations through the service, with each sparse method.

usage: large_sparse.py ADDRESS RESULT.json [--n=10000000] [--block=K] [--once] [--device=D]
                       [--algorithms=NAME,NAME...] [--pid=P]

The matrix is upwind convection and diffusion on a line. Every hundredth unknown is also coupled to the
unknown half a line away. The matrix has slightly over 3 n entries, which are sent from memory. With --block
the matrix has full blocks of order K along the diagonal, n K entries in all, which are generated while they
are sent.

The results are wall-clock seconds over loopback: a factorization with the analysis of the pattern, a
factorization with other values (not with --once, because it takes the memory of two factors), and a solve
with each factor. The backward error is computed here. --pid is the process of a server on this machine; each
row then has its largest resident memory so far. The file is rewritten after each method.
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
from crout._payload import CHUNK, Opener, Payload
from crout.v1 import matrix_pb2


def line(n):
    far = np.zeros(n - n // 2)
    far[::100] = -0.5
    bands = [(-1.5, -1), (4.0, 0), (-1.0, 1)]
    A = sp.diags([np.full(n - abs(k), value) for value, k in bands], [k for _, k in bands], format="csr")
    far = sp.diags([far], [n // 2], format="csr")
    far.eliminate_zeros()
    return (A + far).tocsr()


class Line:
    """The matrix of the line, in memory."""

    def __init__(self, n):
        self._A = line(n)
        self.n, self.nnz = n, int(self._A.nnz)

    def scale(self, factor):
        self._A.data *= factor

    def payload(self):
        return self._A

    values = payload

    def times(self, x):
        return self._A @ x

    def norm(self):
        return abs(self._A).sum(axis=1).max()


class Blocks:
    """A matrix of equal full blocks along the diagonal; one block is in memory."""

    PIECE = 1 << 20  # approximate number of entries

    def __init__(self, n, order):
        self._block = np.random.default_rng(1).uniform(-1, 1, (order, order)) + order * np.eye(order)
        self._count = n // order
        self.n, self.nnz = self._count * order, self._count * order * order

    def scale(self, factor):
        self._block *= factor

    def payload(self):
        spec = matrix_pb2.SparseSpec(
            dtype=matrix_pb2.DTYPE_FLOAT64,
            format=matrix_pb2.SPARSE_FORMAT_COMPRESSED_ROWS,
            rows=self.n,
            cols=self.n,
            entries=self.nnz,
            index_bytes=4,
        )
        return self._payload(matrix_pb2.MatrixSpec(sparse=spec), self._compressed_rows)

    def values(self, factor):
        spec = matrix_pb2.SparseValuesSpec(
            dtype=matrix_pb2.DTYPE_FLOAT64,
            entries=self.nnz,
            pattern_digest=factor.record.sparse.pattern_digest,
        )
        return self._payload(matrix_pb2.MatrixSpec(values=spec), lambda: self._values(self._block.T))

    def times(self, x):
        return (x.reshape(self._count, -1) @ self._block.T).ravel()

    def norm(self):
        return abs(self._block).sum(axis=1).max()

    def _payload(self, spec, arrays):
        def pieces():
            for array in arrays():
                memory = array.view(np.uint8).data
                for start in range(0, len(memory), CHUNK):
                    yield memory[start : start + CHUNK]

        return Payload(spec, np.dtype("<f8"), (self.n, self.n), Opener(pieces))

    def _compressed_rows(self):
        order = len(self._block)
        for first in range(0, self.n + 1, self.PIECE):
            yield np.arange(first, min(first + self.PIECE, self.n + 1), dtype="<i8").astype("<i4") * order
        columns = np.tile(np.arange(order, dtype="<i4"), order)
        some = max(1, self.PIECE // columns.size)
        for first in range(0, self._count, some):
            begins = np.arange(first, min(first + some, self._count), dtype="<i4") * order
            yield (begins[:, None] + columns).ravel()
        yield from self._values(self._block)

    def _values(self, block):
        some = max(1, self.PIECE // block.size)
        tiled = np.tile(block.ravel(), some)
        for first in range(0, self._count, some):
            yield tiled[: min(some, self._count - first) * block.size]


def backward_error(A, x, b):
    residual = np.abs(b - A.times(x)).max()
    return float(residual / (A.norm() * np.abs(x).max() + np.abs(b).max()))


def resident_peak(pid):
    """Largest resident memory of the process, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) / 1024


def seconds(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def run(client, A, algorithm, device, once):
    b = np.ones(A.n)
    options = {"algorithm": algorithm, "device": device}
    factor_s, factor = seconds(lambda: client.lu_factor(A.payload(), **options))
    with factor:
        solve_s, x = seconds(lambda: factor.solve(b))
        sparse = factor.record.sparse
        row = {
            "algorithm": algorithm,
            "ordering": sparse.ordering,
            "lu_entries": sparse.lu_entries,
            "factor_s": factor_s,
            "receive_s": factor.record.timings["receive"],
            "analyze_s": factor.record.timings["analyze"],
            "numeric_s": factor.record.timings["factor"],
            "solve_s": solve_s,
            "factor_mib": factor.record.bytes / 2**20,
            "perturbed_pivots": sparse.perturbed_pivots,
            "backward_error": backward_error(A, x, b),
        }
        if once:
            return row
        A.scale(1.25)
        row["values_s"], _ = seconds(lambda: factor.refactor(A.values(factor), values_only=True, **options))
        row["values_solve_s"], x = seconds(lambda: factor.solve(b))
        row["values_backward_error"] = backward_error(A, x, b)
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("result")
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--block", type=int, default=0)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--device", default="")
    parser.add_argument("--algorithms", default="multifrontal,klu")
    parser.add_argument("--pid", type=int)
    arguments = parser.parse_args()
    with crout.connect(arguments.address) as client:
        rows = []
        result = {**head("large_sparse", client, arguments.device), "large_sparse": rows}
        for algorithm in arguments.algorithms.split(","):
            A = Blocks(arguments.n, arguments.block) if arguments.block else Line(arguments.n)
            row = {"n": A.n, "nonzeros": A.nnz, "block": arguments.block or None}
            row.update(run(client, A, algorithm, arguments.device, arguments.once))
            if arguments.pid:
                row["server_peak_mib"] = resident_peak(arguments.pid)
            print(row, file=sys.stderr)
            rows.append(row)
            keep(result, arguments.result)


if __name__ == "__main__":
    main()
