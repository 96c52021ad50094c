# SPDX-License-Identifier: Apache-2.0
"""The table of README.md: the cases in which Crout is faster than the caller's own process."""

import math

from report.table import Table, milliseconds, number

# Matrices of the benchmark `python_sparse` and their names in the table.
SPARSE = {
    "nist/memplus.mtx.gz": "circuit memplus",
    "poisson2d_200": "grid of 200 x 200 points",
    "suitesparse/Pd.mtx.gz": "Pd of SuiteSparse",
}
INDEX_BYTES = 4
VALUE_BYTES = 8


def newest(some, wanted):
    """Returns the newest result for which wanted(result) is true. If a day has several results, returns the result with
    the most cores.
    """
    return max(filter(wanted, some), key=lambda result: (result["date"][:10], result.get("cores", 0)))


def on_gpu(result):
    return result["device"].startswith("NVIDIA")


def record(result, key, **wanted):
    """Returns the first record with the values `wanted` in the result's list `key`, or {}."""
    return next((row for row in result.get(key, []) if all(row.get(name) == value for name, value in wanted.items())), {})


def link(payload_bytes, alone, server):
    """Describes the slowest link with which Crout is as fast as the caller's own process. `alone` is the time of the
    caller's process and `server` the time of the server, in seconds.
    """
    if alone <= server:
        return "never"
    rate = 8 * payload_bytes / (alone - server)
    return "with a link of at least " + (f"{number(rate / 1e9, 2)} Gbit/s" if rate >= 1e8 else f"{number(rate / 1e6, 2)} Mbit/s")


def from_system(alone, first, later):
    """Describes the first system of a sequence after which Crout's total time is shorter.

    `alone` is the caller's time for each system. `first` and `later` are Crout's times for the first and each later
    system.
    """
    if first <= alone:
        return "from system 1"
    if later >= alone:
        return "never"
    return f"from system {math.floor((first - later) / (alone - later)) + 1}"


class Measured:
    """The newest results with the data for the table."""

    def __init__(self, of_kind):
        direct = [result for result in of_kind.get("crout", []) if not on_gpu(result)]
        self.direct = newest(direct, lambda result: record(result, "cases", algorithm="getrf+getrs", nrhs=1, dtype="f64"))
        service = of_kind.get("service", [])
        self.host = newest(service, lambda result: "series" in result and not on_gpu(result))
        self.gpu = newest(service, lambda result: "series" in result and "payload" in result and on_gpu(result))
        self.lu, self.solve, self.sparse_gpu = (newest(of_kind.get(name, []), lambda result, key=key: key in result)
                                                for name, key in (("gpu_lu", "square"), ("gpu_solve", "cached"), ("gpu_sparse", "beside_cudss")))
        self.users = newest(of_kind.get("python_sparse", []), lambda result: "sparse_users" in result)

    def bytes_per_second(self):
        return 1e9 * record(self.gpu, "payload", transport="tcp")["gb_per_s_median"]

    def lapack(self, n):
        return record(self.direct, "cases", algorithm="getrf+getrs", nrhs=1, dtype="f64", n=n)["median_s"]

    def later_rhs(self, n):
        """Returns the row for a solve with a kept factor. The server's time includes the overhead of a call of order 256."""
        factor = record(self.direct, "cases", algorithm="getrf", dtype="f64", n=n)["median_s"]
        alone = self.lapack(n) - factor
        payload = 2 * VALUE_BYTES * n
        call = 1e-6 * (self.gpu["latency"]["round_trip_us"] - self.gpu["latency"]["last_byte_to_reply_us"])
        server = call + 1e-3 * record(self.solve, "cached", n=n, nrhs=1, op="none")["crout_solve_ms"]
        return [f"dense, n = {n:,}, each later right-hand side", "b; x comes back", milliseconds(alone), "–",
                milliseconds(payload / self.bytes_per_second() + server), "on an H100 " + link(payload, alone, server)]

    def dense(self, n):
        """Returns the row for a new matrix and one solve."""
        payload = VALUE_BYTES * n * n
        server = 1e-3 * (record(self.lu, "square", rows=n, cols=n, dtype="f64")["crout_lu_ms"] +
                         record(self.solve, "cached", n=n, nrhs=1, op="none")["crout_solve_ms"])
        return [f"dense, n = {n:,}", "all values", milliseconds(self.lapack(n)), "–",
                milliseconds(payload / self.bytes_per_second() + server), "on an H100 " + link(payload, self.lapack(n), server)]

    def step(self, n, sent):
        """Returns the row for a step of a series of dense matrices, timed by the client."""
        host, gpu = (record(result, "series", n=n, sent=sent) for result in (self.host, self.gpu))
        server = 1e-3 * (gpu["step_ms"] - gpu["receive_ms"])
        return [f"dense, n = {n:,}, each later system of a series", sent, milliseconds(self.lapack(n)), number(host["step_ms"]),
                number(gpu["step_ms"]), "on an H100 " + link(gpu["bytes"], self.lapack(n), server)]

    def sparse(self, matrix):
        """Returns the row for a matrix with a new pattern, then new values for this pattern, each with one solve."""
        ours = record(self.users, "sparse_users", matrix=matrix)
        gpu = record(self.sparse_gpu, "cases", matrix=matrix)
        values = VALUE_BYTES * ours["nonzeros"]
        pattern = INDEX_BYTES * (ours["nonzeros"] + ours["n"] + 1)
        gpu_times = "–"
        if gpu:
            transfer = [1e3 * size / self.bytes_per_second() for size in (values + pattern, values)]
            first = transfer[0] + gpu["analysis_ms"] + gpu["numeric_ms"] + gpu["solve_ms"]
            later = transfer[1] + gpu["again_ms"] + gpu["solve_ms"]
            gpu_times = f"{number(first)}, then {number(later)}"
        pays = "on the host " + from_system(ours["splu_ms"], ours["first_ms"], ours["values_ms"])
        return [f"sparse, {SPARSE[matrix]}, n = {ours['n']:,}", "new pattern, then new values", number(ours["splu_ms"]),
                f"{number(ours['first_ms'])}, then {number(ours['values_ms'])}", gpu_times, pays]


def table(of_kind):
    measured = Measured(of_kind)
    note = ("Each time runs from the matrix to a float64 solution with one right-hand side. \"Then\" separates the first system from each later one. "
            "– means not measured. \"From system k\" means that the first k systems together take less time with Crout. *In process* "
            f"is OpenBLAS on {measured.direct['cores']} cores for dense systems: `getrf` and `getrs`, or `getrs` alone for a later right-hand side. "
            f"For sparse systems it is SciPy's `splu` on {measured.users['cores']} cores. *Host* is `croutd` on a machine of the same kind, over loopback. The series (n = 2,048) were "
            "measured over loopback on an H100. The other times of the H100 are computed: the server's measured time, plus the transfer at the measured rate of "
            f"loopback, {number(8 * measured.bytes_per_second() / 1e9)} Gbit/s.")
    rows = [measured.dense(4096), measured.later_rhs(4096), measured.step(2048, "all values"), measured.step(2048, "0.1 % of the entries")]
    rows += [measured.sparse(matrix) for matrix in SPARSE]
    return Table("", ["system", "what is sent", "in process, ms", "host, ms", "H100, ms", "Crout is faster"], rows, note)
