# SPDX-License-Identifier: Apache-2.0
"""Pictures of times, speed-ups and accuracy.

Each function returns a figure, or None without data. Rings mark inaccurate factors.
"""

import numpy as np

from report import results as r
from report.style import ALARM, TITLE_PAD, legend_beside, limit, looks, plain_numbers, plt, ring

MAX_SEQUENCES = 12
AUTO_LIMIT = 1.1  # accepted time of auto's choice over the time of the fastest method
INACCURATE = f"inaccurate: factor ratio\nof {r.ACCEPTED_RATIO} or more"


def _timed(cases, dtype):
    return [case for case in r.single_matrices(cases, dtype) if r.timed(case)]


def times(cases, dtype):
    """Draws median times by order, with bars from minimum to maximum."""
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
    ring(axes, [(c["n"], c["median_s"]) for c in some if r.inaccurate(c)], INACCURATE)
    axes.set(xscale="log", yscale="log", xlabel="order n", ylabel="seconds",
             title=f"Time of a factorization, {dtype}")
    plain_numbers(axes.xaxis)
    legend_beside(axes)
    return figure


def speed_up(cases, dtype):
    """Draws the speed-up over the reference for each matrix."""
    some = _timed(cases, dtype)
    reference = r.reference_of(some)
    matrices = [(m, n, row) for m, n, row in r.by_matrix(some) if reference in row and len(row) > 1]
    if not matrices:
        return None
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.19 * max(8, len(matrices))),
                                layout="constrained")
    limit(axes, 1, f"as fast as {reference}", vertical=True)
    doubtful = []
    for name, (colour, marker) in looks(r.series_of(some)).items():
        if name == reference:
            continue
        mine = [(row[reference]["median_s"] / row[name]["median_s"], y, row[name])
                for y, (_, _, row) in enumerate(matrices) if name in row]
        points = [(x, y) for x, y, _ in mine]
        doubtful += [(x, y) for x, y, case in mine if r.inaccurate(case)]
        if points:
            axes.plot(*zip(*points), marker, ms=5, color=colour, alpha=0.9, label=name)
    ring(axes, doubtful, INACCURATE)
    axes.set_title(f"Speed-up over {reference}, {dtype}", pad=TITLE_PAD)
    axes.set(xscale="log",
             xlabel=f"time of {reference} / time of the method (right of 1: faster)",
             yticks=range(len(matrices)), ylim=(len(matrices) - 0.4, -0.6),
             yticklabels=[f"{matrix}  ({n})" for matrix, n, _ in matrices])
    plain_numbers(axes.xaxis)
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    legend_beside(axes)
    return figure


def accuracy(cases, dtype):
    """Draws the accuracy of each method as a box of quartiles with whiskers to the extremes. Ratios that are NaN are
    rings at the right edge.
    """
    some = _timed(cases, dtype)
    series = r.series_of(some)
    figures = (("factor_ratio", "factor ratio"), ("max_abs_diff", "max |PA − LU|"),
               ("backward_error", "backward error"))
    if not any(case.get(key) for case in some for key, _ in figures):
        return None
    figure, all_axes = plt.subplots(1, 3, figsize=(10, 1.7 + 0.36 * len(series)), sharey=True,
                                    layout="constrained")
    for axes, (key, title) in zip(all_axes, figures):
        # A logarithmic axis cannot show zeros, which tiny matrices have.
        values = [[c[key] for c in some if c["series"] == name and c.get(key)] for name in series]
        boxes = axes.boxplot(values, vert=False, whis=(0, 100), widths=0.6, patch_artist=True,
                             medianprops={"color": "black"})
        for box, (colour, _) in zip(boxes["boxes"], looks(series).values()):
            box.set(facecolor=colour, alpha=0.6)
        if key == "factor_ratio":
            limit(axes, r.ACCEPTED_RATIO, f"accepted: below {r.ACCEPTED_RATIO}", vertical=True,
                  accepted=True)
        places = [(c.get(key), 1 + series.index(c["series"])) for c in some if r.inaccurate(c)]
        ring(axes, [(x, y) for x, y in places if x], INACCURATE)
        for y in {y for x, y in places if x is None}:
            axes.plot(1, y, "o", ms=10, mfc="none", mec=ALARM, mew=1.3, clip_on=False,
                      label=INACCURATE, transform=axes.get_yaxis_transform())
        axes.set_title(f"{title}, {dtype}", pad=TITLE_PAD)
        axes.set(xscale="log", yticks=range(1, len(series) + 1),
                 yticklabels=series)
    all_axes[0].invert_yaxis()
    rings = {label: handle for axes in all_axes
             for handle, label in zip(*axes.get_legend_handles_labels())}
    if rings:
        all_axes[-1].legend(rings.values(), rings.keys(), loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def automatic(results):
    """Draws, by order, the time of auto's choice over the time of the fastest method."""
    points = {}
    doubtful = []
    for result in results:
        bad = {(c["matrix"], c["dtype"], r.method(c)) for c in result["cases"] if r.inaccurate(c)}
        for a in result.get("auto", []):
            label = f"{r.device_label(result)}, {a['dtype']}"
            points.setdefault(label, []).append((a["n"], a["chosen_over_best"]))
            if (a["matrix"], a["dtype"], a["chosen"]) in bad:
                doubtful.append((a["n"], a["chosen_over_best"]))
    if not points:
        return None
    figure, axes = plt.subplots(figsize=(10, 3.4), layout="constrained")
    limit(axes, AUTO_LIMIT, f"asked: at most {AUTO_LIMIT}", accepted=True)
    for label, (colour, marker) in looks(points).items():
        axes.plot(*zip(*sorted(points[label])), marker, ms=5, color=colour, alpha=0.8, label=label)
    ring(axes, doubtful, INACCURATE)
    axes.set(xscale="log", xlabel="order n", ylabel="auto / fastest",
             title="What auto chooses beside the fastest method")
    plain_numbers(axes.xaxis)
    axes.set_ylim(0.95, max(1.2, axes.get_ylim()[1]))
    legend_beside(axes)
    return figure


def _warm_speed_ups(cases):
    """Returns {(n, label): {change per step: [(speed-up over the reference, whether inaccurate)]}}."""
    points = {}
    for case in cases:
        if "sequence" not in case or "iterations" not in case or not r.timed(case):
            continue
        base = [c["median_s"] for c in cases if c["algorithm"] == r.REFERENCE and r.timed(c) and
                all(c.get(k) == case.get(k) for k in ("matrix", "dtype", "device", "sequence"))]
        if base:
            label = f"{case['matrix']}, {case['dtype']}: {case['series']}"
            by_delta = points.setdefault((case["n"], label), {})
            by_delta.setdefault(case["sequence"]["delta"], []).append(
                (base[0] / case["median_s"], r.inaccurate(case)))
    return points


def warm_starts(cases):
    """Draws the speed-up of warm starts over the reference method for the largest matrices: median, minimum and
    maximum of the steps.
    """
    points = _warm_speed_ups(cases)
    if not points:
        return None
    shown = sorted(points, reverse=True)[:MAX_SEQUENCES]
    figure, axes = plt.subplots(figsize=(10, 4.4), layout="constrained")
    limit(axes, 1, f"as fast as a new {r.REFERENCE}")
    doubtful = []
    for key, (colour, marker) in looks(shown).items():
        deltas = sorted(points[key])
        steps = [[speed_up for speed_up, _ in points[key][d]] for d in deltas]
        median, low, high = (np.array([f(s) for s in steps]) for f in (np.median, min, max))
        doubtful += [(d, m) for d, m in zip(deltas, median) if any(bad for _, bad in points[key][d])]
        axes.errorbar(deltas, median, yerr=[median - low, high - median], marker=marker, ms=5,
                      color=colour, lw=1, label=key[1])
    ring(axes, doubtful, INACCURATE)
    axes.set(xscale="log", yscale="log", xlabel="relative change per step",
             ylabel=f"time of {r.REFERENCE} / time", title="Warm starts: speed-up over a new getrf")
    plain_numbers(axes.yaxis)
    legend_beside(axes)
    return figure


def profile(cases, dtype):
    """Draws a performance profile (E. D. Dolan, J. J. Moré, Math. Program. 91, 2002): the share of the matrices that
    each method factors within a multiple of the fastest time. An inaccurate factor is a failure.
    """
    some = r.single_matrices(cases, dtype)
    matrices = r.by_matrix(some)
    good = [{name: case["median_s"] for name, case in row.items() if r.timed(case) and not r.inaccurate(case)}
            for _, _, row in matrices]
    series = r.series_of(some)
    if len(matrices) < 2 or len(series) < 2:
        return None
    figure, axes = plt.subplots(figsize=(10, 3.8), layout="constrained")
    worst = max((time / min(row.values()) for row in good for time in row.values()), default=1)
    for name, (colour, _) in looks(series).items():
        ratios = sorted(row[name] / min(row.values()) for row in good if name in row)
        bad = sum(name in row and r.inaccurate(row[name]) for _, _, row in matrices)
        label = f"{name} ({bad} inaccurate)" if bad else name
        shares = [k / len(matrices) for k in range(len(ratios) + 1)]
        axes.step([1, *ratios, worst], [*shares, shares[-1]], where="post", color=colour, lw=1.5, label=label)
    axes.set(xscale="log", ylim=(0, 1.02), xlim=(1, None), ylabel="share of the matrices,\nfactored accurately",
             xlabel="time / time of the fastest method of each matrix",
             title=f"Share of the matrices factored within so many times the fastest time, {dtype}")
    plain_numbers(axes.xaxis)
    legend_beside(axes)
    return figure
