# SPDX-License-Identifier: Apache-2.0
"""Tables of the results of other benchmarks. Each list of records in a result has a table."""

from report.table import Table, count, number

FIRST = ["n", "dtype", "family", "change", "nrhs", "op", "transport", "clients", "count", "rounds"]
UNITS = {"us": "µs", "ms": "ms", "s": "s", "mib": "MiB"}


def heading(key):
    """Returns the heading of a column, such as "bare getrf, µs" for "bare_getrf_us"."""
    words = key.replace("gb_per_s", "GB/s").split("_")
    if len(words) > 1 and words[-1] in UNITS:
        return " ".join(words[:-1]) + ", " + UNITS[words[-1]]
    return " ".join(words)


def records(title, rows, note=""):
    """Returns a table of objects with a column for each key. The keys that identify the case are first."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    keys.sort(key=lambda key: FIRST.index(key) if key in FIRST else len(FIRST))
    return Table(title, [heading(key) for key in keys],
                 [[number(row.get(key)) for key in keys] for row in rows], note)


def _concurrency(value):
    rows = value.get("cases") or value.get("contexts") or []
    rest = ", ".join(f"{key.replace('_', ' ')} {number(v)}" for key, v in value.items()
                     if not isinstance(v, list))
    return rows, rest


# {list of records: (heading of its table, note below the table)}.
TITLES = {
    "systems": ("Time from the matrix to a float64 solution with one right-hand side, by type of factor", ""),
    "latency": ("Time from the last byte of the request to the result, beside the vendor's routine", ""),
    "concurrency": ("Concurrent factorizations", ""),
    "batch": ("A batch of 1000 matrices of orders 1 to 64 over loopback",
              "Medians of the client's time, and of the server's time to receive the batch."),
    "payload": ("A payload of 512 MiB from the client to the device's memory", ""),
    "upload": ("Upload through staging memory", ""),
    "tls_latency": ("A solve of order 256 with a cached factor and one right-hand side, with and without TLS",
                    "The client's time over an open connection; both measured in turn."),
    "tls_upload": ("Concurrent uploads of 512 MiB, with and without TLS",
                   "Each upload has a separate connection. The rate is the total. The transport \"socket\" is a bare TCP connection between two threads."),
    "python_factor": ("lu_factor from Python beside the C++ client", "Medians over loopback, in turn with croutctl bench, which uses the C++ client."),
    "python_solve": ("solve from Python with a cached factor and one right-hand side, beside the C++ client",
                     "Medians over loopback, measured in turn. grpcio sends and receives the same bytes without Crout: as a stream, and as one "
                     "message with a stream as reply."),
    "solvers": ("Triangular solvers", ""),
    "prepare": ("Preparation of a factor for crout_solve when it enters the cache", ""),
    "cached": ("crout_solve with a prepared factor beside cusolverDnXgetrs", "Medians, and the spread of the rounds; measured in turn."),
    "square": ("Square matrices", "Medians, and the spread of the rounds. portable: the kernels without clusters."),
    "rectangular": ("Rectangular matrices", ""),
    "out_of_core": ("Out-of-core LU beside crout_lu in the GPU's memory",
                    "One run of each case. device: the GPU's memory in use. fill: the time to generate the matrix; register: to pin its memory. Times of "
                    "factorizations exclude both, and the in-core time also excludes the copy of the matrix to the GPU. share of in core rate: of the rate of "
                    "crout_lu. Errors are |P A x - L U x| / (|A| |x|) in the maximum norm for a random x."),
    "gallery": ("Accuracy on the gallery", "The factor ratio |PA - LU|₁ / (n |A|₁ eps) and the growth max |U| / max |A|; none if they are not finite."),
    "kernels": ("Kernels of crout_lu by stream", "Kernels with at least 1 % of the time. Each is counted from the end of the previous kernel of its stream."),
    "factor": ("Direct methods beside the vendor's getrf", "Measured in turn."),
    "solve": ("Gauss-Jordan elimination beside getrf and getrs with n right-hand sides", "Measured in turn."),
    "schur": ("Schur complements beside getrf, trsm and gemm", "Float64, measured in turn."),
    "cold": ("icmpp without an earlier factor, beside getrf", "Tolerance 0, float64, measured in turn."),
    "cold_f32": ("icmpp without an earlier factor, beside getrf, in float32", ""),
    "cold_total": ("icmpp without an earlier factor: totals", "Float64."),
    "warm": ("icmpp from the factor of the previous step, beside getrf", "Measured in turn."),
    "series": ("Steps of a series by strategy, beside the vendor's getrf and getrs",
               "Measured in turn. Medians and spread of the steps after the first, and their total time relative to getrf's. Over all steps: "
               "factorizations, solves with a factor, the largest backward error."),
    "fairness": ("Calls of a tenant with 100 cached factors",
                 "One call after another: alone, and beside callers of another tenant. Limit: 1.5 times (twice the median alone, plus the longest job of "
                 "either tenant). Latencies include the retries of refused calls. factors left: of 100."),
    "overload": ("Solves with a cached factor",
                 "croutctl bench on other cores than the server: workers that send the next call when the last one has ended, then calls on schedule at ten "
                 "times the largest rate of these. of capacity: answered calls relative to that rate. Four other callers measure the time of refusals. server "
                 "cpu: processor time of the server for each call, answered or refused."),
    "store_starts": ("Starts with stored factors of order 32", "From exec to ready. cold: after the files were dropped from the page cache."),
    "store_writes": ("Durable factors",
                     "Medians, measured in turn: a factorization, a durable one, and a file of as many bytes that is written and synced in the same folder. The "
                     "rate of the store counts only the additional time."),
    "store_promotions": ("First solves with stored factors after a restart",
                         "Medians: the first solve, the next one, and reading the file and copying its bytes. The ratio compares the additional time of the first "
                         "solve with the last. Files are dropped from the page cache before."),
    "shared_memory": ("Uploads and factorizations by one client over a Unix socket",
                      "512 MiB, and n = 4096 in float64 from call to call. messages: matrices in messages of gRPC. copied: arrays of NumPy that the "
                      "client copies to shared memory. shared: arrays from client.empty. cudaMemcpy: from page-locked memory, without Crout. Medians."),
    "shared_clients": ("Concurrent factorizations of arrays from client.empty",
                       "n = 4096 in float64, one process for each client, and the median of the GPU's utilization."),
    "soak": ("Mixed calls during faults",
             "Calls by kind, and failed calls by reason; all answers were right. growth: of the server's resident memory from the eleventh minute to the last."),
    "throughput": ("Calls per second with many clients: FactorizeAndSolve of one small system",
                 "Each client sends its next call when the last one is answered. With dynamic batching, without it, and calls that compute nothing. "
                 "alone: the median time of a call with a single client, and the phases that the server reports."),
    "batching_gain": ("Dynamic batching beside single calls",
                  "Medians and spread of rounds, measured in turn: ratio of calls per second, share of the rate of calls that compute nothing, and the "
                  "additional time of a call with a single client."),
    "call_costs": ("Cost of a call by the number of concurrent clients",
                   "Means: processor time of the daemon and of all its clients, number of times that a thread of the daemon slept, the client's time, and "
                   "the phases that the server reports."),
    "few_large": ("Few large members",
                  "Square members with orders uniform from `least` to `largest`: irr_lu as the device offers it, beside crout_lu with several streams, the "
                  "kernels of smaller members alone, and cuSOLVER in 16 streams. Medians, measured in turn, and the ratio of the others' time to irr_lu's "
                  "with the spread of the rounds."),
    "block_trsm": ("Triangular solves alone",
                   "1000 systems with unit lower triangles of orders uniform up to `largest`, beside cuBLAS's trsm for each in 16 streams, measured in turn. "
                   "Rates count Σ n m² operations; the error is the largest ‖b - T x‖ / (‖T‖ ‖x‖)."),
    "block_panel": ("Panels alone",
                    "Heights uniform up to `tallest`: in registers, and column by column in the GPU's memory, measured in turn. Rates count "
                    "Σ m n² - n³/3 - n²/2 + 5n/6 operations."),
    "block_laswp": ("Row interchanges alone",
                    "Interchanges of 32 rows in all columns of square members of orders uniform up to `largest`: combined and applied at once, and with one "
                    "launch for each row, measured in turn."),
    "block_gemm": ("Products alone",
                   "All three sizes uniform up to `largest`, beside cuBLAS's gemm for each in 16 streams, measured in turn. Rates count Σ 2 m n k operations."),
    "cache_misses": ("Cache misses of one factorization",
                     "Simulated by cachegrind: one core, 32 KiB of first-level cache, 12 MiB of last-level cache."),
    "cases": ("Square members beside the vendor",
              "float64 unless another type is given. Medians. Rounds of irr_lu alternate with rounds of the vendor's routine, or on a host with LAPACK for each "
              "member. The ratio is the vendor's time over irr_lu's, with the spread of the rounds."),
    "sparse": ("Sparse matrices beside UMFPACK",
               "Medians on all cores, measured in turn. The numeric ratio is Crout's time over UMFPACK's; below 1 Crout is faster."),
    "beside_libraries": ("The method that auto chooses, beside UMFPACK, SuperLU and KLU",
                         "The libraries use their defaults, SuperLU with COLAMD; measured in turn. factor: with the analysis. refactor: with the results of the first "
                         "factorization, KLU also with its pivots. solve: one right-hand side without refinement. ratio: Crout's time over the fastest library's, "
                         "median of the rounds with least and most. A library whose first factorization takes ten times as long as Crout's is measured once."),
    "factors_beside_libraries": ("Factors of the method that auto chose",
                                 "Fronts, entries of L and U, perturbed pivots, time of the analysis alone, and backward errors of a solve by each library."),
    "sparse_users": ("Factorization and one solve through the service from Python, beside SciPy's splu",
                     "Medians over loopback, in turn with splu in the same process. first: with the analysis of the pattern. again: a refactorization."),
    "large_sparse": ("Large sparse systems through the service from Python",
                     "A line of upwind convection and diffusion with a few distant couplings, or, for more entries, full blocks of the order `block`. Measured once "
                     "over loopback: seconds of a factorization with its analysis, a solve, a refactorization with values alone, and another solve; the largest "
                     "resident memory of the server so far."),
    "sparse_series": ("Sequences of matrices of one pattern",
                      "Microseconds of a step on one core, medians over the steps after the first: KLU's refactorization and solve alone, the same through the method "
                      "klu, and a whole job and a whole step of a series, which also measure norms, quality and backward errors."),
    "beside_cudss": ("Beside cuDSS, by its mode",
                     "Medians, least and most, measured in turn, and Crout's time over cuDSS's; below 1 Crout is faster. Both factor a general matrix and solve without "
                     "refinement. refactor: with the data of the previous factor. In its deterministic mode cuDSS solves for one right-hand side at a time; Crout "
                     "is always deterministic."),
    "factors_beside_cudss": ("Factors beside cuDSS's",
                             "Entries of L and U, perturbed pivots, the largest normwise backward error of the right-hand sides."),
    "maxwell": ("Maxwell's problem with the right-hand side of a known field", "Backward errors of a solve, and after one refinement."),
    "front_levels": ("Levels of the tree of fronts",
                     "Leaves first: number of fronts, their d1 and d2 (least, median, most), and the time of the level, in batches and one by one."),
    "fronts_one_by_one": ("All fronts in batches, beside single calls of cuSOLVER and cuBLAS in 16 streams",
                          "Level by level, measured in turn with the same assembly: medians, and the ratio of the single calls' time to Crout's with the spread of "
                          "the rounds."),
    # Keys with a benchmark apply only to its results.
    "gpu_stripes.solve": ("The published method beside Gauss-Jordan by panels, the echelon form of [A b], and getrf with getrs",
                          "Medians, measured in turn, the last three also on the host's cores: one right-hand side, entries uniform in [1, 1000]."),
    "service.series": ("A step of a time series over loopback, by the data that it sends",
                       "Medians of the client's time for the whole step, and of the server's time to receive the step and to work on it."),
    "gpu_sparse.cases": ("Float64: analysis, numeric phase and solves",
                         "Medians: the analysis on the host; the numeric phase with the analysis known and the values on the GPU; the same with the data that the previous factor "
                         "holds of the analysis, as in a series; solves of one and of 16 right-hand sides without refinement."),
}
# Ratios of two times that are measured in turn in each round.
BY_ROUNDS = ("gain", "times_faster", "numeric_ratio")
ROUNDS_NOTE = "A ratio of times is the median of the ratios of the rounds, not the ratio of the medians."
# Keys of the runs of an iterative method in a record.
RUN_KEYS = ["ms", "section", "sweeps", "pivots"]
# Keys of a sparse factorization by a library in a record.
SPARSE_KEYS = ["analysis_ms", "numeric_ms", "solve_ms", "lu_entries", "backward_error"]


def flat(row):
    """Returns the record with the keys of its nested objects as columns."""
    columns = {}
    for key, value in row.items():
        if isinstance(value, dict):
            columns.update({f"{key}_{part}": value[part] for part in RUN_KEYS + SPARSE_KEYS if part in value})
        else:
            columns[key] = value
    return columns


def by_way(rows):
    """Returns a row for each kind of factor. The vendor's solution has no backward error."""
    ways = [{"n": row["n"], "family": row["family"], "factor": way, **how}
            for row in rows for way, how in row.items() if isinstance(how, dict)]
    for row in ways:
        if row["factor"] == "cusolver":
            row["backward_error"] = row["accurate"] = None
    return ways


def table(result, key):
    """Returns the table for the result's list of records `key`, or None if there is none."""
    value = result.get(key)
    if value is None:
        return None
    title, note = TITLES.get(f"{result.get('benchmark')}.{key}", TITLES[key])
    if isinstance(value, dict):
        value, note = _concurrency(value) if key == "concurrency" else ([value], note)
    if key == "systems":
        value = by_way(value)
    if key == "beside_cudss":
        note = f"{result['cudss']}. {note}"
    rows = [flat(row) for row in value]
    if key == "beside_cudss" or any(name.endswith(BY_ROUNDS) for row in rows for name in row):
        note = f"{note} {ROUNDS_NOTE}".lstrip()
    return records(title, rows, note)


def tables(result):
    made = [table(result, key) for key in TITLES]
    return [one for one in made if one is not None]


def suite(result):
    """Describes the run of a test suite in a sentence."""
    real = result.get("real_matrices", {})
    programs = {test["program"] for test in result["tests"]}
    text = (f"{count(result['passed'], 'test')} of {count(len(programs), 'program')} passed, "
            f"{result['failed']} failed")
    if "checked" in real:
        text += f"; {real['checked']} real matrices checked"
    return text + "."


def google_benchmark(result):
    """Returns the table of rates of a Google Benchmark result."""
    rows = []
    for run in result["benchmarks"]:
        rate = run.get("bytes_per_second")
        rows.append([run["name"].replace("/real_time", ""), number(run["real_time"]),
                     run["time_unit"], number(None if rate is None else rate / 1e6),
                     number(run.get("MB/s/core"))])
    return Table("Reading Matrix Market text",
                 ["benchmark/threads", "time", "unit", "MB/s", "MB/s for each core used"], rows)
