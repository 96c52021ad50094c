# SPDX-License-Identifier: Apache-2.0
"""Tables of crout-bench's results."""

from report import results as r
from report.table import Table, count, deviation, mean, milliseconds, number, quantile, times

ACCURACIES = (("factor_ratio", "factor ratio"), ("max_abs_diff", "max |PA - LU|"),
              ("backward_error", "backward error of a solve"), ("growth", "pivot growth"))


def _cell(case):
    if case is None:
        return "–"
    if "error" in case:
        return "failed"
    if not r.timed(case):
        return "zero pivot"
    return milliseconds(case["median_s"]) + ("*" if r.inaccurate(case) else "")


def _spread(case):
    return (case["max_s"] - case["min_s"]) / case["median_s"]


def times_by_matrix(cases, dtype):
    some = r.single_matrices(cases, dtype)
    series = r.series_of(some)
    rows = []
    for matrix, n, row in r.by_matrix(some):
        spreads = [_spread(case) for case in row.values() if r.timed(case)]
        spread = f"{100 * max(spreads):.0f} %" if spreads else "–"
        rows.append([matrix, n] + [_cell(row.get(name)) for name in series] + [spread])
    note = ("Medians in milliseconds. The spread is (maximum - minimum) / median, for the method of the row "
            "with the largest.")
    cells = [cell for row in rows for cell in row[2:-1]]
    if any("*" in cell for cell in cells):
        note += f" *: the factor ratio is {r.ACCEPTED_RATIO} or more."
    if "zero pivot" in cells:
        note += " Zero pivot: info > 0; methods without pivoting end there."
    return Table(f"Time by matrix, {dtype}", ["matrix", "n"] + series + ["largest spread"], rows, note)


def totals(cases, dtype):
    some = r.single_matrices(cases, dtype)
    matrices = r.by_matrix(some)
    reference = r.reference_of(some)
    rows = []
    for name in r.series_of(some):
        mine = [row[name] for _, _, row in matrices if name in row]
        done = [case for case in mine if r.timed(case)]
        common = [(row[name]["median_s"], row[reference]["median_s"]) for _, _, row in matrices
                  if reference and all(r.timed(row.get(s, {})) for s in (name, reference))]
        total = sum(time for time, _ in common) / sum(time for _, time in common) if common else None
        worst = max((time / base for time, base in common), default=None)
        rows.append([name, len(done), sum(map(r.inaccurate, done)), len(mine) - len(done),
                     number(sum(case["median_s"] for case in done)), times(total), times(worst)])
    note = ("Sums of the medians over the matrices that the method factored. The ratios are over the matrices "
            f"that {reference} also factored: of the sums, and of the worst single matrix.")
    header = ["method", "matrices", "of these inaccurate", "not factored", "total s",
              f"total over {reference}", "worst matrix"]
    return Table(f"Totals, {dtype}", header, rows, note)


def accuracy(cases, dtype):
    some = r.single_matrices(cases, dtype)
    rows = []
    for key, title in ACCURACIES:
        for name in r.series_of(some):
            values = [case[key] for case in some
                      if case["series"] == name and r.timed(case) and case.get(key) is not None]
            if values:
                rows.append([title, name, len(values)] +
                            [number(quantile(values, q / 4)) for q in range(5)] +
                            [number(mean(values)), number(deviation(values))])
    header = ["figure", "method", "matrices", "minimum", "1st quartile", "median", "3rd quartile",
              "maximum", "mean", "deviation"]
    note = f"A factor ratio |PA - LU|₁ / (n |A|₁ eps) below {r.ACCEPTED_RATIO} is accepted (LAPACK)."
    return Table(f"Accuracy, {dtype}", header, rows, note)


def automatic(results):
    rows = [[r.device_label(result), a["matrix"], a["n"], a["dtype"], a["chosen"],
             milliseconds(a["chosen_s"]), a["best"], milliseconds(a["best_s"]),
             times(a["chosen_over_best"])]
            for result in results for a in result.get("auto", [])]
    if not rows:
        return []
    worst = max(a["chosen_over_best"] for result in results for a in result.get("auto", []))
    return [Table("What auto chooses",
                  ["device", "matrix", "n", "type", "auto", "ms", "fastest", "ms", "auto / fastest"],
                  rows, f"Among the methods that pivot. The worst choice took {number(worst)} times as "
                  "long as the fastest method.")]


def iterations(cases):
    rows = []
    for case in cases:
        i = case.get("iterations")
        if not i or "sequence" in case or not r.timed(case):
            continue
        rows.append([case["matrix"], case["n"], case["dtype"], case["series"], i["section_size"],
                     i["sections"], i["total_sweeps"], i["total_pivots"],
                     i.get("total_bad_elements", "–"), i["first_sweeps"],
                     milliseconds(case["median_s"])])
    header = ["matrix", "n", "type", "method", "section", "sections a side", "sweeps", "rows moved",
              "bad elements", "sweeps of the first section", "ms"]
    return [Table("Iterative methods: sweeps and pivots", header, rows)] if rows else []


def _at_step(cases, case):
    """Returns the cases for the same matrix and step of a sequence as `case`."""
    return [c for c in cases if r.timed(c) and
            all(c.get(k) == case.get(k) for k in ("matrix", "dtype", "device", "sequence"))]


def warm_starts(cases):
    rows = []
    for case in cases:
        if "sequence" not in case or not r.timed(case) or "iterations" not in case:
            continue
        base = [c for c in _at_step(cases, case) if c["algorithm"] == r.REFERENCE]
        base_s = base[0]["median_s"] if base else None
        refined = case.get("refined", {})
        rows.append([case["matrix"], case["n"], case["dtype"], case["series"],
                     number(case["sequence"]["delta"]), case["sequence"]["step"],
                     case["iterations"]["total_sweeps"], milliseconds(case["median_s"]),
                     milliseconds(base_s), times(base_s and base_s / case["median_s"]),
                     number(case.get("factor_ratio")), number(case.get("backward_error")),
                     f"{number(refined.get('backward_error'))} ({refined.get('steps', 0)})"])
    header = ["matrix", "n", "type", "method", "change per step", "step", "sweeps", "ms",
              f"{r.REFERENCE} ms", "speed-up", "factor ratio", "backward error", "refined (steps)"]
    note = f"Each step starts from the factor of the step before; {r.REFERENCE} starts from scratch."
    return [Table("Warm starts", header, rows, note)] if rows else []


def direct(cases):
    some = [case for case in cases if "nrhs" in case and "factors" not in case and "median_s" in case]
    rows = []
    for case in some:
        base = [c for c in some if c["algorithm"] == "getrf+getrs" and
                all(c[k] == case[k] for k in ("matrix", "dtype", "device", "nrhs"))]
        ratio = case["median_s"] / base[0]["median_s"] if base else None
        rows.append([case["matrix"], case["n"], case["dtype"], case["series"], case["nrhs"],
                     milliseconds(case["median_s"]), times(ratio), number(case["backward_error"])])
    header = ["matrix", "n", "type", "method", "right-hand sides", "ms", "over getrf+getrs",
              "backward error"]
    return [Table("Direct solvers", header, rows)] if rows else []


def direct_by_device(some_results):
    """Tabulates direct solvers on the host and on a GPU, for the same systems."""
    cases = [dict(case, label=r.device_label(result)) for result in some_results if r.about_direct(result)
             for case in result["cases"] if "nrhs" in case and "median_s" in case]
    rows = []
    for case in cases:
        hosts = [c for c in cases if c["label"].startswith("host") and
                 all(c[k] == case[k] for k in ("matrix", "dtype", "algorithm", "nrhs"))]
        if case["label"].startswith("host") or not hosts:
            continue
        rows.append([case["matrix"], case["n"], case["dtype"], case["algorithm"], case["nrhs"], case["label"],
                     milliseconds(case["median_s"]), hosts[0]["label"], milliseconds(hosts[0]["median_s"]),
                     times(hosts[0]["median_s"] / case["median_s"])])
    header = ["matrix", "n", "type", "method", "right-hand sides", "GPU", "ms", "host", "ms", "host over GPU"]
    return [Table("On a GPU and on the host", header, rows)] if rows else []


def capacity(case):
    """Returns Gflop/s for 2 n³ / 3 operations."""
    return 2 * case["n"] ** 3 / 3e9 / case["median_s"]


def block_cases(some_results):
    """Returns the cases of results about block_lu and the plain loops, each with its number of cores."""
    return [dict(case, cores=result["cores"]) for result in some_results if r.about_blocks(result)
            for case in result["cases"] if r.timed(case)]


def has_dominant(result):
    return any(case.get("source") == "dominant" for case in result["cases"])


def by_size(some_results):
    """Returns [(type, cases)] for matrices that need no pivoting. The cases are each method with its defaults on a GPU,
    and on the smallest and largest number of cores of a host.
    """
    hosts = [result["cores"] for result in some_results if r.about_blocks(result)]
    shown = [result for result in some_results if has_dominant(result) and
             (not r.about_blocks(result) or result["cores"] in (min(hosts), max(hosts)))]
    cases = [case for case in r.cases(shown) if case["source"] == "dominant" and "parameters" not in case and
             case["algorithm"] in ("block_lu", "getrf", "lu_loop")]
    return [(dtype, r.single_matrices(cases, dtype)) for dtype in r.dtypes(cases)]


DEFAULT_BLOCK = 256  # block size of block_lu on the host


def block_of(case):
    return case.get("parameters", {}).get("block_size", DEFAULT_BLOCK)


def _blocked_method(case):
    if case["algorithm"] != "block_lu":
        return case["algorithm"]
    published = ", the report's priorities" if "variant" in case.get("parameters", {}) else ""
    return f"block_lu, blocks of {block_of(case)}{published}"


def blocks(some_results):
    """Tabulates the rates of block_lu by block size, priorities and cores, and of getrf and the plain loops."""
    cases = [case for case in block_cases(some_results) if case["dtype"] == "f64"]
    cores = sorted({case["cores"] for case in cases})
    by_row = {}
    for case in sorted(cases, key=lambda c: (c["n"], c["algorithm"] != "block_lu", _blocked_method(c).endswith("priorities"),
                                             block_of(c))):
        by_row.setdefault((case["n"], _blocked_method(case)), {})[case["cores"]] = case
    rows = []
    for (n, name), row in by_row.items():
        alone, most = row.get(1), row[max(row)]
        rows.append([n, name, *(number(capacity(row[some])) if some in row else "–" for some in cores),
                     milliseconds(most["median_s"]),
                     times(alone["median_s"] / most["median_s"]) if alone and alone is not most else "–"])
    header = ["n", "method", *(count(some, "core") for some in cores), "ms on all cores", "over one core"]
    note = "Float64, in Gflop/s of 2 n³ / 3 operations."
    return [Table("Blocks, priorities and threads", header, rows, note)] if rows else []


def solvers(cases):
    """Tabulates the solvers over all matrices: their times, and their errors without the errors of factors."""
    rows = []
    for dtype in r.dtypes(cases):
        some = [case for case in cases
                if case["dtype"] == dtype and "factors" in case and "median_s" in case]
        for name in r.series_of(some):
            mine = [case for case in some if case["series"] == name]
            errors = [case["max_abs_diff"] for case in mine if case["max_abs_diff"] is not None]
            figures = [quantile(errors, q / 4) for q in range(1, 5)] + [mean(errors), deviation(errors)]
            rows.append([dtype, name, mine[0]["factors"], len(mine), len(mine) - len(errors),
                         number(sum(case["median_s"] for case in mine))] +
                        [number(figure) for figure in figures])
    header = ["type", "solver", "factors of", "matrices", "of these not finite", "total s",
              "1st quartile", "median", "3rd quartile", "maximum", "mean", "deviation"]
    note = ("Ten right-hand sides of ones. The error is max |LUPX - B| with L U as the matrix, so that it is the "
            "solver's contribution to the factorization's error.")
    return [Table("Solvers", header, rows, note)] if rows else []


def conditions(cases, dtype):
    """Tabulates accuracy by the condition number of the matrix, in ascending order."""
    some = [case for case in r.single_matrices(cases, dtype) if r.timed(case) and case.get("condition")]
    series = r.series_of(some)
    if not some:
        return []
    found = [(row.get(series[0], next(iter(row.values())))["condition"], matrix, n, row) for matrix, n, row in r.by_matrix(some)]
    rows = [[matrix, n, number(condition), *(number(row[name].get("max_abs_diff")) if name in row else "–" for name in series)]
            for condition, matrix, n, row in sorted(found, key=lambda one: one[:3])]
    note = (f"max |PA - LU| of each method. The condition is an estimate in the 1-norm with the factors of {series[0]}, or of "
            "the next method if it has none.")
    return [Table(f"Condition beside accuracy, {dtype}", ["matrix", "n", "condition", *series], rows, note)]


# Messages for files that are not part of a run.
NOT_CHOSEN = ("beyond the limits of this run", ", not square", "is complex: run it with")


def failures(results):
    rows = []
    for result in results:
        device = r.device_label(result)
        rows += [[device, u["algorithm"], "–", "–", u["error"]] for u in result["unavailable"]]
        rows += [[device, "–", s["matrix"], "–", s["reason"]] for s in result["skipped"]
                 if not any(choice in s["reason"] for choice in NOT_CHOSEN)]
        rows += [[device, r.method(c), c["matrix"], c["dtype"], c[key]] for c in result["cases"]
                 for key in ("error", "solve_error") if key in c]
    header = ["device", "method", "matrix", "type", "message"]
    return [Table("Omitted, refused or failed", header, rows)] if rows else []


def all_tables(results):
    cases = r.cases(results)
    tables = []
    for dtype in r.dtypes(cases):
        tables += [times_by_matrix(cases, dtype), totals(cases, dtype), accuracy(cases, dtype), *conditions(cases, dtype)]
    return (tables + automatic(results) + iterations(cases) + warm_starts(cases) +
            direct(cases) + solvers(cases) + failures(results))
