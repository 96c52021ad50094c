"""Pictures of times, speed-ups and accuracy.

Each function returns a figure, or None without data.
"""

import numpy as np

from report import results as r
from report.style import legend_beside, looks, plain_numbers, plt
from report.tables import ACCEPTED_RATIO

MOST_SEQUENCES = 12


def _timed(cases, dtype):
    return [case for case in r.single_matrices(cases, dtype) if r.timed(case)]


def times(cases, dtype):
    """Median times over the order, bars from minimum to maximum."""
    some = _timed(cases, dtype)
    if not some:
        return None
    figure, axes = plt.subplots(figsize=(10, 4.6), layout="constrained")
    for name, (colour, marker) in looks(r.series_of(some)).items():
        mine = sorted((c for c in some if c["series"] == name), key=lambda c: (c["n"], c["matrix"]))
        n = np.array([c["n"] for c in mine])
        median, low, high = (np.array([c[k] for c in mine]) for k in ("median_s", "min_s", "max_s"))
        axes.errorbar(n, median, yerr=[median - low, high - median], fmt=marker, ms=4.5, lw=0.8,
                      color=colour, alpha=0.85, label=name)
    axes.set(xscale="log", yscale="log", xlabel="order n", ylabel="seconds",
             title=f"Time of a factorization, {dtype}")
    plain_numbers(axes.xaxis)
    legend_beside(axes)
    return figure


def speed_up(cases, dtype):
    """How many times as fast as the reference, matrix by matrix."""
    some = _timed(cases, dtype)
    reference = r.reference_of(some)
    matrices = [(m, n, row) for m, n, row in r.by_matrix(some) if reference in row and len(row) > 1]
    if not matrices:
        return None
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.19 * max(8, len(matrices))),
                                layout="constrained")
    axes.axvline(1, color="#555555", lw=1)
    for name, (colour, marker) in looks(r.series_of(some)).items():
        if name == reference:
            continue
        points = [(row[reference]["median_s"] / row[name]["median_s"], y)
                  for y, (_, _, row) in enumerate(matrices) if name in row]
        if points:
            axes.plot(*zip(*points), marker, ms=5, color=colour, alpha=0.9, label=name)
    axes.set(xscale="log", title=f"Speed-up over {reference}, {dtype}",
             xlabel=f"time of {reference} / time of the method (right of 1: faster)",
             yticks=range(len(matrices)), ylim=(len(matrices) - 0.4, -0.6),
             yticklabels=[f"{matrix}  ({n})" for matrix, n, _ in matrices])
    plain_numbers(axes.xaxis)
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    legend_beside(axes)
    return figure


def accuracy(cases, dtype):
    """Quartiles of the accuracy by method: boxes, whiskers to the extremes."""
    some = _timed(cases, dtype)
    series = r.series_of(some)
    figures = (("factor_ratio", "factor ratio"), ("max_abs_diff", "max |PA − LU|"),
               ("backward_error", "backward error"))
    if not any(case.get(key) for case in some for key, _ in figures):
        return None
    figure, all_axes = plt.subplots(1, 3, figsize=(10, 1.7 + 0.36 * len(series)), sharey=True,
                                    layout="constrained")
    for axes, (key, title) in zip(all_axes, figures):
        # Zeros, of tiny matrices, have no place on a logarithmic axis.
        values = [[c[key] for c in some if c["series"] == name and c.get(key)] for name in series]
        boxes = axes.boxplot(values, vert=False, whis=(0, 100), widths=0.6, patch_artist=True,
                             medianprops={"color": "black"})
        for box, (colour, _) in zip(boxes["boxes"], looks(series).values()):
            box.set(facecolor=colour, alpha=0.6)
        if key == "factor_ratio":
            axes.axvline(ACCEPTED_RATIO, color="#b00000", lw=1, ls="--")
        axes.set(xscale="log", title=f"{title}, {dtype}", yticks=range(1, len(series) + 1),
                 yticklabels=series)
    all_axes[0].invert_yaxis()
    return figure


def automatic(results):
    """Time of what auto chooses over that of the fastest method, by order."""
    points = {}
    for result in results:
        for a in result.get("auto", []):
            label = f"{r.device_label(result)}, {a['dtype']}"
            points.setdefault(label, []).append((a["n"], a["chosen_over_best"]))
    if not points:
        return None
    figure, axes = plt.subplots(figsize=(10, 3.4), layout="constrained")
    axes.axhline(1.1, color="#b00000", lw=1, ls="--")
    for label, (colour, marker) in looks(points).items():
        axes.plot(*zip(*sorted(points[label])), marker, ms=5, color=colour, alpha=0.8, label=label)
    axes.set(xscale="log", xlabel="order n", ylabel="auto / fastest",
             title="What auto chooses beside the fastest method (dashed: 1.1)")
    plain_numbers(axes.xaxis)
    axes.set_ylim(0.95, max(1.2, axes.get_ylim()[1]))
    legend_beside(axes)
    return figure


def _warm_speed_ups(cases):
    """{(n, label): {change per step: [speed-ups over the reference]}}"""
    points = {}
    for case in cases:
        if "sequence" not in case or "iterations" not in case or not r.timed(case):
            continue
        base = [c["median_s"] for c in cases if c["algorithm"] == r.REFERENCE and r.timed(c) and
                all(c.get(k) == case.get(k) for k in ("matrix", "dtype", "device", "sequence"))]
        if base:
            label = f"{case['matrix']}, {case['dtype']}: {case['series']}"
            by_delta = points.setdefault((case["n"], label), {})
            by_delta.setdefault(case["sequence"]["delta"], []).append(base[0] / case["median_s"])
    return points


def warm_starts(cases):
    """Speed-up of warm starts over the reference from scratch: median, minimum and maximum of the
    steps, for the largest matrices."""
    points = _warm_speed_ups(cases)
    if not points:
        return None
    shown = sorted(points, reverse=True)[:MOST_SEQUENCES]
    figure, axes = plt.subplots(figsize=(10, 4.4), layout="constrained")
    axes.axhline(1, color="#555555", lw=1)
    for key, (colour, marker) in looks(shown).items():
        deltas = sorted(points[key])
        median = np.array([np.median(points[key][d]) for d in deltas])
        low = np.array([min(points[key][d]) for d in deltas])
        high = np.array([max(points[key][d]) for d in deltas])
        axes.errorbar(deltas, median, yerr=[median - low, high - median], marker=marker, ms=5,
                      color=colour, lw=1, label=key[1])
    axes.set(xscale="log", yscale="log", xlabel="relative change per step",
             ylabel=f"time of {r.REFERENCE} / time", title="Warm starts: speed-up over a new getrf")
    plain_numbers(axes.yaxis)
    legend_beside(axes)
    return figure
