# SPDX-License-Identifier: Apache-2.0
"""Picture of the fronts of a sparse matrix by level, and of the time at which each level ran."""

from matplotlib.ticker import MaxNLocator

from . import style

plt = style.plt


def by_matrix(rows):
    """Returns {matrix: rows of its levels, leaves first}."""
    matrices = {}
    for row in rows:
        matrices.setdefault(row["matrix"], []).append(row)
    return matrices


def name(matrix):
    return f"levels_{matrix}"


def spread(axes, levels, rows, key, colour, marker, label):
    """Draws medians, and lines from the least to the largest size. Omits sizes of 0, such as the border of a root."""
    some = [(level, row) for level, row in zip(levels, rows) if row[f"{key}_most"] > 0]
    axes.vlines([level for level, _ in some], [max(row[f"{key}_least"], 1) for _, row in some],
                [row[f"{key}_most"] for _, row in some], color=colour, lw=2, alpha=0.35)
    axes.plot([level for level, _ in some], [max(row[key], 1) for _, row in some], marker, color=colour, ms=4, label=label)


def timeline(axes, levels, rows, key, colour, title):
    begin = 0
    for level, row in zip(levels, rows):
        axes.barh(level, row[key], left=begin, height=0.7, color=colour)
        begin += row[key]
    axes.set(xlabel="ms from the start of the factorization", ylim=(max(levels) + 0.7, -0.7), title=title)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def picture(matrix, rows):
    """Draws the numbers and sizes of fronts, and timelines of factorizations in batches and one by one. The timelines
    have different scales.
    """
    levels = [row["level"] for row in rows]
    figure = plt.figure(figsize=(8.4, 8.6), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[2, 3, 4])
    counts, sizes = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    counts.bar(levels, [row["fronts"] for row in rows], color=style.COLOURS[5])
    counts.set(yscale="log", ylabel="fronts", title=f"{matrix}: fronts of each level, 0 being the root")
    spread(sizes, [level - 0.12 for level in levels], rows, "d1", style.COLOURS[0], "o", "d1, eliminated")
    spread(sizes, [level + 0.12 for level in levels], rows, "d2", style.COLOURS[1], "s", "d2, border")
    sizes.set(yscale="log", ylabel="order: least, median, most", xlabel="level")
    style.legend_beside(sizes)
    for axes in (counts, sizes):
        axes.set_xlim(max(levels) + 0.7, -0.7)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    batches = figure.add_subplot(grid[2, 0])
    timeline(batches, levels, rows, "multifrontal_ms", style.COLOURS[0], "When each level runs in batches")
    batches.set_ylabel("level")
    timeline(figure.add_subplot(grid[2, 1]), levels, rows, "one_by_one_ms", style.COLOURS[1], "and one by one in 16 streams")
    return figure
