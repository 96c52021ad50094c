# SPDX-License-Identifier: Apache-2.0
"""The table of docs/series.md, from the series benchmarks: the cases in which reuse of a factor is faster."""

from report.table import Table, times

DRIFTS = ("random", "dominant", "complex random")  # families with a rate of change
TOLD = 4  # smallest number of steps of a sequence in the table


def change_of(row):
    """Returns the rate of change, or None if the sequence has no constant rate."""
    return row.get("change")


def rows_of(result):
    """Returns {(n, family): {change: {strategy: row}}} for the drifts and sequences of a result."""
    found = {}
    for row in result["series"]:
        drifts = change_of(row) is not None
        if row["strategy"] not in ("auto", "refactor") or drifts != (row["family"] in DRIFTS) or row["steps"] < TOLD:
            continue
        place = found.setdefault((row["n"], row["family"]), {}).setdefault(change_of(row), {})
        place[row["strategy"]] = row
    return found


def cell(pair):
    if pair is None:
        return "–"
    auto, refactor = pair["auto"], pair["refactor"]
    return f"{times(refactor['of_getrf'] / auto['of_getrf'])}, {auto['factorizations']} of {auto['steps']}"


def table(of_kind):
    """Returns a table with a row for each device, order and family, from the newest results."""
    newest = {}
    for kind in ("gpu_series", "host_series"):
        for result in sorted(of_kind.get(kind, []), key=lambda one: one["date"]):
            for (n, family), changes in rows_of(result).items():
                newest[kind, n, family] = (result["device"], changes)
    changes = sorted({change for _, found in newest.values() for change in found if change is not None}, reverse=True)
    rows = []
    for kind in ("gpu_series", "host_series"):
        for (its, n, family), (device, found) in sorted(newest.items(), key=lambda item: (-item[0][1], item[0][2])):
            if its == kind:
                rows.append([device, n, family] + [cell(found.get(change)) for change in changes + [None]])
    return Table("", ["device", "n", "family"] + [f"{change:g}" for change in changes] + ["as it is"], rows)
