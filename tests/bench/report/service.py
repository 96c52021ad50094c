"""The tables of the other benchmarks' results: one for every list of records."""

from report.table import Table, count, number

FIRST = ["n", "dtype", "family", "change", "nrhs", "op", "transport", "clients", "count", "rounds"]
UNITS = {"us": "µs", "ms": "ms", "s": "s", "mib": "MiB"}


def heading(key):
    """"bare_getrf_us" as "bare getrf, µs"."""
    words = key.split("_")
    if len(words) > 1 and words[-1] in UNITS:
        return " ".join(words[:-1]) + ", " + UNITS[words[-1]]
    return key.replace("gb_per_s", "GB/s").replace("_", " ")


def records(title, rows, note=""):
    """A table of objects; a column for each key, those that say which case it is first."""
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
    "payload": "A payload of 512 MiB from the client to the device's memory",
    "upload": "Upload through staging memory",
    "tls_latency": "A solve of order 256 with a cached factor and one right-hand side, as its client waits for it over an open "
                   "connection, in turn",
    "tls_upload": "Uploads of 512 MiB side by side, each on a connection of its own: all of them together",
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
                "alone: the median of a call where one client calls",
    "cases": "Square members in float64, in turn with the vendor: medians, and how often the vendor's "
             "time is irr_lu's, with the spread of the rounds",
}
# Of a run of an iterative method, beside others in one record.
RUN_KEYS = ["ms", "section", "sweeps", "pivots"]


def flat(row):
    """A record whose runs, objects themselves, became columns."""
    columns = {}
    for key, value in row.items():
        if isinstance(value, dict):
            columns.update({f"{key}_{part}": value[part] for part in RUN_KEYS if part in value})
        else:
            columns[key] = value
    return columns


def by_way(rows):
    """A row for each way in which a system was solved; the vendor's is not verified."""
    ways = [{"n": row["n"], "family": row["family"], "factor": way, **how}
            for row in rows for way, how in row.items() if isinstance(how, dict)]
    for row in ways:
        if row["factor"] == "cusolver":
            row["backward_error"] = row["accurate"] = None
    return ways


def tables(result):
    made = []
    for key, title in TITLES.items():
        value = result.get(key)
        if value is None:
            continue
        note = ""
        if isinstance(value, dict):
            value, note = _concurrency(value) if key == "concurrency" else ([value], "")
        if key == "systems":
            value = by_way(value)
        made.append(records(title, [flat(row) for row in value], note))
    return made


def suite(result):
    """The run of a test suite, in a sentence."""
    real = result.get("real_matrices", {})
    text = f"{count(result['passed'], 'test')} passed, {result['failed']} failed"
    if "checked" in real:
        text += f"; {real['checked']} real matrices checked"
    return text + "."


def google_benchmark(result):
    """Rates of a Google Benchmark result."""
    rows = []
    for run in result["benchmarks"]:
        rate = run.get("bytes_per_second")
        rows.append([run["name"].replace("/real_time", ""), number(run["real_time"]),
                     run["time_unit"], number(None if rate is None else rate / 1e6),
                     number(run.get("MB/s/core"))])
    return Table("Reading Matrix Market text",
                 ["benchmark/threads", "time", "unit", "MB/s", "MB/s for each core used"], rows)
