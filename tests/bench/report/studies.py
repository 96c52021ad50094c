# SPDX-License-Identifier: Apache-2.0
"""Pictures of the studies: the Poisson problem on a cube, mean curvature flow, blocked LU, Gauss-Jordan."""

from matplotlib.ticker import MaxNLocator

from report import flow, poisson, results as r, tables
from report.style import COLOURS, MARKERS, legend_beside, looks, plain_numbers, plt
from report.table import count

UNCHANGED = 1e-17  # value for an error of 0 on a logarithmic axis


def iterations(cubes):
    """Draws the iterations of conjugate gradients by the size of subdomains, for each tolerance of the local factors,
    published and ours.
    """
    theirs = poisson.read()
    rows = [row for row in cubes if row["factors"] == "icmpp"]
    exact = [row for row in cubes if row["factors"] == "getrf"]
    tolerances = sorted({row["tolerance"] for row in rows})
    figure, axes = plt.subplots(figsize=(8.6, 4.8), layout="constrained")

    def published(name):
        return sorted((m, value) for (what, m, method), value in theirs.items() if (what, method) == (poisson.FIGURES["iterations"], name))

    for place, (tolerance, colour, marker) in enumerate(zip(tolerances, COLOURS, MARKERS)):
        mine = [row for row in rows if row["tolerance"] == tolerance]
        # Each line is thinner than the line before, so that coinciding lines are visible.
        axes.plot(*zip(*published(poisson.their_name(mine[0]))), "-", color=colour, lw=max(1, 5 - 2 * place))
        # Markers are hollow, because several tolerances often have the same number of iterations.
        axes.plot([row["m"] for row in mine], [row["iterations"] for row in mine], marker, ls="", ms=8, mew=1.4, color=colour,
                  mfc="none", label=f"tolerance {tolerance:g}")
    axes.plot([row["m"] for row in exact], [row["iterations"] for row in exact], "+", ms=11, color="black",
              label="getrf")
    for m, count_of in published(poisson.EXACT["getrf"]):
        axes.annotate(f"{count_of:g}", (m, count_of), xytext=(0, -9), textcoords="offset points", ha="center", va="top", fontsize=8)
    axes.plot([], [], "-", color="#777777", lw=1, label="published, each tolerance\nin the colour of ours;\nfigures: exact factors")
    axes.set(title="Poisson's equation on a cube, 64 subdomains: iterations by the local factors",
             xlabel="elements along a subdomain's edge, H/h", ylabel="iterations", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_beside(axes)
    return figure


def mean_curvature(result):
    """Draws the sweeps for each tolerance and start, and the cost of each kind of step over its error of u."""
    flows = result["flows"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
    published_ones = [one for one in flows if one["way"] == "icmpp, published"]
    for start, colour, marker in (("cold", COLOURS[0], "o"), ("warm", COLOURS[1], "s")):
        mine = [one for one in published_ones if one["start"] == start]
        left.plot([f"{one['tolerance']:g}" for one in mine], [flow.later(one, "sweeps") for one in mine], marker=marker,
                  color=colour, label=f"{start} start", mfc="none" if start == "cold" else colour)
    left.set(xlabel="absolute tolerance", ylabel="sweeps of a step",
             title="icmpp as published: sweeps", ylim=(0, None))
    left.legend()
    groups = {}
    for one in flows:
        groups.setdefault(flow.name(one), []).append(one)
    for name, (colour, marker) in looks(groups).items():
        points = [(flow.later(one, "ms"), max(one["steps"][-1]["error_of_u"], UNCHANGED)) for one in groups[name]]
        right.plot(*zip(*points), marker=marker, ls="-" if len(points) > 1 else "", lw=0.7, ms=7, mew=1.3, mfc="none",
                   color=colour, label=name)  # hollow, because points with equal costs coincide
    right.set(xscale="log", yscale="log", xlabel="ms of a step", ylabel=f"error of u at last ({UNCHANGED:g}: none)",
              title="Each way: cost and error")
    plain_numbers(right.xaxis)
    legend_beside(right)
    return figure


def _lines(axes, lines):
    """Draws {name: [(x, y)]} with a color and a marker for each name."""
    for name, (colour, marker) in looks(lines).items():
        axes.plot(*zip(*sorted(lines[name])), f"{marker}-", ms=5, lw=1, color=colour, label=name)


def _ticks_at_points(axes, lines):
    """Sets logarithmic axes with plain numbers, and ticks of the x axis at the points."""
    axes.set(xscale="log", yscale="log")
    ticks = sorted({x for points in lines.values() for x, _ in points})
    axes.set_xticks(ticks, [str(x) for x in ticks])
    axes.set_xticks([], minor=True)
    plain_numbers(axes.yaxis)


def blocked(some_results):
    """Draws times of block_lu by size, and its rates for the largest matrices by block size and by threads."""
    cases = [case for case in tables.block_cases(some_results)
             if case["algorithm"] == "block_lu" and case["dtype"] == "f64"]
    if not cases:
        return None
    largest = max(case["n"] for case in cases)
    sizes, by_block, by_threads = {}, {}, {}
    for case in [case for dtype, some in tables.by_size(some_results) if dtype == "f64" for case in filter(r.timed, some)]:
        if case["algorithm"] != r.REFERENCE:
            sizes.setdefault(case["series"], []).append((case["n"], case["median_s"]))
    for case in [case for case in cases if case["n"] == largest]:
        block, published = tables.block_of(case), "variant" in case.get("parameters", {})
        if not published:
            by_block.setdefault(count(case["cores"], "thread"), []).append((block, tables.capacity(case)))
        if not published or block == tables.DEFAULT_BLOCK:
            name = f"blocks of {block}" + (", the report's priorities" if published else "")
            by_threads.setdefault((block, name), []).append((case["cores"], tables.capacity(case) / case["cores"]))
    by_threads = {name: points for (_, name), points in sorted(by_threads.items())}
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.6), layout="constrained")
    _lines(left, sizes)
    left.set(xlabel="order n", ylabel="seconds", title="Time of a factorization, f64")
    _lines(middle, by_block)
    middle.set(xlabel="size of blocks", ylabel="Gflop/s", title=f"Capacity, n = {largest}")
    _lines(right, by_threads)
    right.set(xlabel="threads", ylabel="Gflop/s of each thread", title=f"Scaling, n = {largest}")
    for axes, lines in ((left, sizes), (middle, by_block), (right, by_threads)):
        _ticks_at_points(axes, lines)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=7.5)
    right.set(yscale="linear", ylim=(0, 1.1 * max(y for points in by_threads.values() for _, y in points)))
    return figure


def gauss_jordan(some_results):
    """Draws times of Gauss-Jordan elimination and of getrf with getrs, on a GPU and on the host, for 1 and n right-hand
    sides.
    """
    cases = [case for case in r.cases(list(filter(r.about_direct, some_results)))
             if "nrhs" in case and "median_s" in case and case["dtype"] == "f64"]
    if not cases:
        return None
    figure, panels = plt.subplots(1, 2, figsize=(11.5, 4.4), sharey=True, layout="constrained")
    for axes, one, title in zip(panels, (True, False), ("One right-hand side, f64", "As many as rows, f64")):
        lines = {}
        for case in cases:
            if (case["nrhs"] == 1) == one:
                lines.setdefault(case["series"], []).append((case["n"], case["median_s"]))
        _lines(axes, lines)
        axes.set(xlabel="order n", title=title)
        _ticks_at_points(axes, lines)
    panels[0].set(ylabel="seconds")
    legend_beside(panels[1])
    return figure
