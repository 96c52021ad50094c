"""The tables of the other benchmarks' results: one for every list of records."""

from report.table import Table, count, number

FIRST = ["n", "dtype", "family", "change", "nrhs", "op", "transport", "clients", "count", "rounds"]
UNITS = {"us": "µs", "ms": "ms", "s": "s", "mib": "MiB"}


def heading(key):
    """Returns "bare getrf, µs" for "bare_getrf_us"."""
    words = key.split("_")
    if len(words) > 1 and words[-1] in UNITS:
        return " ".join(words[:-1]) + ", " + UNITS[words[-1]]
    return key.replace("gb_per_s", "GB/s").replace("_", " ")


def records(title, rows, note=""):
    """Makes a table with a column for each key. Keys that identify the case come first."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    keys.sort(key=lambda key: FIRST.index(key) if key in FIRST else len(FIRST))
    return Table(title, [heading(key) for key in keys],
                 [[number(row.get(key)) for key in keys] for row in rows], note)


def _concurrency(value):
    rows = value.get("cases") or value.get("contexts") or []
    rest = ", ".join(f"{key.replace('_', ' ')} {number(v)}" for key, v in value.items()
                     if not isinstance(v, list))
    return rows, rest


TITLES = {
    "systems": "From the matrix to a float64 solution with one right-hand side, by the type of the factor",
    "latency": "From the last byte to the result, beside the bare vendor routine",
    "concurrency": "Factorizations side by side",
    "batch": "FactorizeBatch of 1000 matrices of orders 1 to 64 over loopback, as its client waits for it, beside what the "
             "server took to receive it: medians",
    "payload": "A payload of 512 MiB from the client to the device's memory",
    "upload": "Upload through staging memory",
    "tls_latency": "A solve of order 256 with a cached factor and one right-hand side, as its client waits for it over an open "
                   "connection, in turn",
    "tls_upload": "Uploads of 512 MiB side by side, each on a connection of its own: all of them together",
    "python_factor": "lu_factor over loopback, in turn with croutctl bench, which uses the C++ client: medians",
    "python_solve": "solve with a cached factor and one right-hand side, likewise; beside the same bytes by grpcio alone, as a stream "
                    "and as one message whose reply is a stream",
    "solvers": "Triangular solvers",
    "prepare": "Preparing a factor for crout_solve when it enters the cache",
    "cached": "crout_solve with a prepared factor beside cusolverDnXgetrs, in turn: medians, and the "
              "spread of the rounds",
    "square": "Square matrices: medians, and the spread of the rounds; portable is without clusters",
    "rectangular": "Rectangular matrices",
    "gallery": "Accuracy on the gallery: |PA - LU|₁ / (n |A|₁ eps) and max |U| / max |A|; none where "
               "they are not finite",
    "kernels": "crout_lu's kernels by stream: from 1 % of the time on, each from the end of the one "
               "before it in its stream",
    "factor": "Direct methods beside the vendor's getrf, in turn",
    "solve": "Gauss-Jordan elimination beside getrf and getrs with n right-hand sides, in turn",
    "schur": "Schur complements beside getrf, trsm and gemm, in turn: float64",
    "cold": "icmpp from scratch beside getrf, in turn: tolerance 0, float64",
    "cold_f32": "The same in float32",
    "cold_total": "icmpp from scratch: totals, float64",
    "warm": "icmpp from the factor of the step before, beside getrf from scratch, in turn",
    "series": "Steps by each strategy, in turn with the vendor's getrf and getrs: median and spread of the "
              "steps after the first, all of them as a share of getrf's, and over all steps "
              "factorizations, solves with a factor, the worst backward error",
    "gathered": "FactorizeAndSolve of one small system, by many clients at once with each its next call, a second: "
                "calls that wait together run together, or each by itself; beside calls that compute nothing. "
                "alone: the median of a call where one client calls, and of what the server says of its phases",
    "gathering": "Calls that run together beside the same that do not, by rounds in turn: how many times as many a second, their share of the "
                 "calls that compute nothing, and by how much a call alone takes longer; medians, and the spread of the rounds",
    "call_costs": "What one call costs, by as many clients at once: processor time of the daemon and of all its clients, how often a thread of "
                  "the daemon went to sleep, how long the client waited, and of that what the server says of its phases; means",
    "few_large": "Few and large: square members of orders uniform from `least` to `largest` as the device offers it, beside crout_lu for "
                 "each in so many streams, beside the kernels of smaller members alone, and beside cuSOLVER in 16 streams, in turn: "
                 "medians, and how often the others' time is irr_lu's, with the spread of the rounds",
    "block_trsm": "Triangular solves alone: 1000 systems, unit lower triangles of orders uniform up to `largest`, each with so many "
                  "right-hand sides, beside cuBLAS's trsm for each in 16 streams, in turn; rates by Σ n m², the error is the "
                  "largest ‖b - T x‖ / (‖T‖ ‖x‖)",
    "block_panel": "Panels alone: heights uniform up to `tallest`, in registers and column by column in the GPU's memory, in turn; "
                   "rates by Σ m n² - n³/3 - n²/2 + 5n/6",
    "block_laswp": "Interchanges alone: those of 32 rows in all columns of square members of orders uniform up to `largest`, rehearsed "
                   "and moved at once, and by a launch for each row, in turn",
    "block_gemm": "Products alone: all three sizes uniform up to `largest`, beside cuBLAS's gemm for each in 16 streams, in turn; "
                  "rates by Σ 2 m n k",
    "cache_misses": "Of one factorization, simulated by cachegrind: one core, 32 KiB of first-level cache, 12 MiB of last-level "
                    "cache",
    "cases": "Square members (float64 where no type is named), in turn with the vendor, or on a host with LAPACK member by "
             "member: medians, and how often the vendor's time is irr_lu's, with the spread of the rounds",
    "sparse": "Sparse matrices, in turn with UMFPACK, both on all cores: medians; numeric ratio is our time in UMFPACK's, below 1 "
              "where ours is less",
    "beside_libraries": "The method that auto chooses beside UMFPACK, SuperLU (columns by COLAMD) and KLU with their defaults, in turn: factor with "
                        "the analysis, refactor with what the first found (KLU with its pivots, too), solve with one right-hand side without "
                        "refinement; ratio: our time in that of the fastest library, the median of the rounds with least and most. A library whose first "
                        "factorization takes ten times ours is measured once",
    "factors_beside_libraries": "The method that auto chose: fronts, entries of L and U, perturbed pivots, time of the analysis alone, and backward "
                                "errors of a solve by each library",
    "sparse_users": "Factorization and one solve through the service, from Python over loopback, beside SciPy's splu in the same "
                    "process, in turn: medians. first: with the analysis of the pattern; again: a refactorization",
    "large_sparse": "One line of upwind convection and diffusion with a few far couplings, or, where there are more entries, full blocks of "
                    "the order `block`, from Python over loopback, once: seconds of a factorization with its analysis, of a solve, of a "
                    "refactorization by values alone and of another solve; the most that the server had resident so far",
    "sparse_series": "Sequences of matrices of one pattern, a step's microseconds on one core, medians over the steps after the "
                     "first: KLU's refactorization and solve by itself, what klu takes for the same as a method, and the whole of "
                     "a job and a step of a series, which also measure norms, quality and backward errors",
    "beside_cudss": "Beside cuDSS in turn, by its mode: medians, least and most, and our time in its, below 1 where ours is less. Both factor "
                    "a general matrix and solve without refinement; refactor: with what the factor before it holds; it takes one "
                    "right-hand side at a time where it is deterministic, as ours always is",
    "factors_beside_cudss": "What both came to: entries of L and U, pivots that were made larger, the largest normwise backward error of "
                            "the right-hand sides",
    "maxwell": "Maxwell's problem with the right-hand side of a known field: backward errors of a solve and after one refinement",
    "front_levels": "Levels of the tree, the leaves first: fronts, their d1 and d2 (least, median, most), and what the level takes, in "
                    "batches and one by one",
    "fronts_one_by_one": "All fronts in batches, as multifrontal takes them, beside cuSOLVER's and cuBLAS's calls for each in 16 streams, "
                         "level by level in turn, assembled alike: medians, and how often the calls' time is ours, with the spread of the "
                         "rounds",
    # Titles for one benchmark only.
    "gpu_stripes.solve": "The published method, Gauss-Jordan by panels, the echelon form of [A b] and getrf with getrs, in turn, and "
                         "the last three on the host's cores: one right-hand side, entries uniform in [1, 1000], medians",
    "service.series": "A step of a time series as its client waits for it over loopback, by what it sends: the whole step, beside "
                      "what the server took to receive it and to work on it, medians",
    "gpu_sparse.cases": "Float64, medians: the analysis on the host, the numeric phase with that known and the values on the GPU, "
                        "the same again with what the factor before it holds of the analysis, as in a series, solves of one and of 16 right-hand sides without refinement",
}
# Quotients of two times measured in turn, with one value per round.
BY_ROUNDS = ("gain", "times_faster", "numeric_ratio")
ROUNDS_NOTE = "Quotients of times are medians of those of the rounds, not the quotients of the medians beside them."
# Columns of a run of an iterative method within a record.
RUN_KEYS = ["ms", "section", "sweeps", "pivots"]
# Columns of a sparse factorization by one library within a record.
SPARSE_KEYS = ["analysis_ms", "numeric_ms", "solve_ms", "lu_entries", "backward_error"]


def flat(row):
    """Returns a record in which runs, which are objects, became columns."""
    columns = {}
    for key, value in row.items():
        if isinstance(value, dict):
            columns.update({f"{key}_{part}": value[part] for part in RUN_KEYS + SPARSE_KEYS if part in value})
        else:
            columns[key] = value
    return columns


def by_way(rows):
    """Returns a row for each way to solve a system. The vendor's is not verified."""
    ways = [{"n": row["n"], "family": row["family"], "factor": way, **how}
            for row in rows for way, how in row.items() if isinstance(how, dict)]
    for row in ways:
        if row["factor"] == "cusolver":
            row["backward_error"] = row["accurate"] = None
    return ways


def table(result, key):
    """Returns the table of one list of records, or None if the result does not have it."""
    value = result.get(key)
    if value is None:
        return None
    note = ""
    if isinstance(value, dict):
        value, note = _concurrency(value) if key == "concurrency" else ([value], "")
    if key == "systems":
        value = by_way(value)
    if key == "beside_cudss":
        note = f"{result['cudss']}."
    title = TITLES.get(f"{result.get('benchmark')}.{key}", TITLES[key])
    rows = [flat(row) for row in value]
    if key == "beside_cudss" or any(name.endswith(BY_ROUNDS) for row in rows for name in row):
        note = f"{note} {ROUNDS_NOTE}".lstrip()
    return records(title, rows, note)


def tables(result):
    made = [table(result, key) for key in TITLES]
    return [one for one in made if one is not None]


def suite(result):
    """Summarizes the run of a test suite in a sentence."""
    real = result.get("real_matrices", {})
    programs = {test["program"] for test in result["tests"]}
    text = (f"{count(result['passed'], 'test')} of {count(len(programs), 'program')} passed, "
            f"{result['failed']} failed")
    if "checked" in real:
        text += f"; {real['checked']} real matrices checked"
    return text + "."


def google_benchmark(result):
    """Tabulates the rates of a Google Benchmark result."""
    rows = []
    for run in result["benchmarks"]:
        rate = run.get("bytes_per_second")
        rows.append([run["name"].replace("/real_time", ""), number(run["real_time"]),
                     run["time_unit"], number(None if rate is None else rate / 1e6),
                     number(run.get("MB/s/core"))])
    return Table("Reading Matrix Market text",
                 ["benchmark/threads", "time", "unit", "MB/s", "MB/s for each core used"], rows)
