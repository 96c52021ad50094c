# SPDX-License-Identifier: Apache-2.0
"""Tables over all matrices that a result shares with the thesis: accuracy, times and pivoting, published and ours."""

import csv

from report import published
from report import results as r
from report.table import Table, deviation, mean, number, quantile, times

# {our algorithm: the thesis's method}. Thread blocks of the thesis's methods do not affect accuracy.
DECOMPOSERS = {"getrf": "cusolver_getrf", "cmpp": "cmpp", "icmpp": "icm_32pp", "pcmpp": "pcm_8pp"}
SOLVERS = {name: theirs[0] for name, theirs in published.SOLVERS.items()}
STATISTICS = ["mean", "deviation", "1st quartile", "median", "3rd quartile", "maximum"]
OTHERS = "`thesis<n>` stand for `Cejka<n>`: other matrices of the same description."


def _statistics(values):
    return [number(value) for value in (mean(values), deviation(values),
                                        *(quantile(values, q / 4) for q in range(1, 5)))]


def _their_difference(row, column):
    """Returns the published difference, or None if it is missing or invalid. Invalid differences are negative."""
    try:
        value = float(row[f"{column}_max_abs_diff"])
    except ValueError:
        return None
    return value if value >= 0 else None


def _shared(cases, kind, dtype, columns):
    """Yields (series, published column, [(case, row)]) for the series with a published counterpart."""
    rows = published.by_our_name(kind, dtype)
    some = [case for case in cases if case["dtype"] == dtype and r.timed(case) and
            case["algorithm"] in columns and case["matrix"] in rows]
    for name in r.series_of(some):
        mine = [(case, rows[case["matrix"]]) for case in some if case["series"] == name]
        yield name, columns[mine[0][0]["algorithm"]], mine


def _accuracy(shared, title, figure, note):
    rows = []
    for name, column, pairs in shared:
        both = [(case["max_abs_diff"], _their_difference(row, column)) for case, row in pairs
                if case.get("max_abs_diff") is not None]
        both = [pair for pair in both if pair[1] is not None]
        if not both:
            continue
        rows.append([name, "Crout", len(both)] + _statistics([mine for mine, _ in both]))
        rows.append([name, f"published {column}", len(both)] + _statistics([theirs for _, theirs in both]))
    header = ["method", figure, "matrices"] + STATISTICS
    return [Table(title, header, rows, note)] if rows else []


def _totals(shared, title, note):
    rows = []
    for name, column, pairs in shared:
        both = [(case["median_s"], published.seconds(row, column)) for case, row in pairs]
        both = [pair for pair in both if pair[1] is not None]
        if not both:
            continue
        mine, theirs = (sum(values) for values in zip(*both))
        rows.append([name, column, len(both), number(mine), number(theirs), times(theirs / mine)])
    header = ["method", "published as", "matrices", "Crout, s", "published, s", "speed-up"]
    return [Table(title, header, rows, note)] if rows else []


MACHINES = "Crout's medians and published means, on different machines: a user's gain, not a comparison of the code. "


def decomposers(cases, dtype, timed):
    """Tabulates methods over the shared matrices, like the thesis's tables 3.8 and 3.9, and 3.7 if `timed`."""
    single = r.single_matrices(cases, dtype)
    shared = list(_shared(single, "decomposers", dtype, DECOMPOSERS))
    note = ("max |PA - LU| over the matrices that both have. The published methods pivot only if the diagonal "
            f"element is outside (1e-5, 1e5] (cmpp: below 1e-5); cuSOLVER always pivots. {OTHERS}")
    made = _accuracy(shared, f"Accuracy beside the published results, {dtype}", "max |PA - LU|", note)
    return made + (_totals(shared, f"Totals beside the published results, {dtype}", MACHINES + OTHERS) if timed else [])


def solvers(cases, dtype, timed):
    """Tabulates solvers over the shared matrices, like tables 3.12 and 3.13, and 3.11 if `timed`."""
    some = [case for case in cases if "factors" in case]
    shared = list(_shared(some, "solvers", dtype, SOLVERS))
    note = ("max |LUPX - B| with ten right-hand sides of ones, over the matrices on which both are valid. The published "
            f"results of `is` use blocks of 8. {OTHERS}")
    made = _accuracy(shared, f"Solvers' accuracy beside the published results, {dtype}", "max |LUPX - B|", note)
    return made + (_totals(shared, f"Solvers' totals beside the published results, {dtype}", MACHINES + OTHERS) if timed
                   else [])


# (our algorithm, its column in the published file about pivoting).
RULES = (("cmpp", "cmpp"), ("pcmpp", "pcm"))
INTERVALS = ("interval:1e-05:inf", "interval:1e-05:100000")  # the thesis's rule has no upper bound


def pivoting(cases, dtype):
    """Tabulates conditional pivoting and full partial pivoting (figures 3.12 and 3.14)."""
    with open(published.DIRECTORY / "pivoting.csv", newline="", encoding="utf-8") as file:
        theirs = {published.our_name(row["matrix"]): row for row in csv.DictReader(file)}
    rows = []
    for algorithm, column in RULES:
        some = [case for case in r.single_matrices(cases, dtype)
                if case["algorithm"] == algorithm and r.timed(case)]
        for matrix, n, row in r.by_matrix(some):
            by_rule = {case.get("parameters", {}).get("pivoting", "partial"): case for case in row.values()}
            interval = next((by_rule[rule] for rule in INTERVALS if rule in by_rule), None)
            if interval is None or "partial" not in by_rule or matrix not in theirs:
                continue
            them = [theirs[matrix][f"{column}_{rule}_{dtype}"] or "–" for rule in ("cond", "full")]
            rows.append([algorithm, matrix, n, number(interval.get("max_abs_diff")), them[0],
                         number(by_rule["partial"].get("max_abs_diff")), them[1]])
    header = ["method", "matrix", "n", "interval rule", "published, conditional", "partial pivoting",
              "published, full"]
    note = f"max |PA - LU|. {OTHERS}"
    return [Table(f"Conditional against partial pivoting, {dtype}", header, rows, note)] if rows else []


def tables(result, timed):
    """Returns all tables of one result. `timed` is whether its times count."""
    cases = r.cases([result])
    made = []
    for dtype in published.FILES:
        made += decomposers(cases, dtype, timed) + solvers(cases, dtype, timed) + pivoting(cases, dtype)
    return made
