"""An iterative factorization: sweeps by section and pivots, beside the sparsity of A and of LU."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

from report.style import plt

INK = LinearSegmentedColormap.from_list("ink", ["#ffffff", "#9db7d5", "#08306b"])
MOST_LABELS = 16  # sections a side up to which their figures are written into them


def _pattern(axes, rows, title):
    share = np.array([[int(cell) for cell in row] for row in rows])
    # The lightest ink is well visible: one nonzero in a cell counts.
    shade = np.where(share > 0, 0.35 + 0.65 * share / 9, 0)
    axes.imshow(shade, cmap=INK, vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    axes.set(title=title, xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#aaaaaa")


def _sweeps(figure, axes, iterations):
    sweeps = np.array(iterations["sweeps"], dtype=float)
    count = len(sweeps)
    shown = np.ma.masked_equal(sweeps, 0)
    image = axes.imshow(shown, cmap="viridis", vmin=0, aspect="equal")
    image.cmap.set_bad("#f2f2f2")
    figure.colorbar(image, ax=axes, label="sweeps", shrink=0.85, pad=0.02)
    axes.set(title="Sweeps by section", xticks=[], yticks=[])
    axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_ylabel("section row")
    axes.grid(False)
    if count > MOST_LABELS:
        return
    for i in range(count):
        for j in range(count):
            dark = sweeps[i, j] < 0.6 * sweeps.max()
            axes.text(j, i, f"{int(sweeps[i, j])}", ha="center", va="center",
                      fontsize=max(5, 9 - count // 4), color="white" if dark else "black")


def _pivots(axes, iterations):
    pivots = iterations["pivots"]
    bars = axes.bar(range(len(pivots)), pivots, color="#D55E00", width=0.8)
    if len(pivots) <= MOST_LABELS:
        axes.bar_label(bars, fontsize=7)
    axes.set(xlabel="section column", ylabel="pivots", xlim=(-0.5, len(pivots) - 0.5))
    axes.set_ylim(0, max(1, 1.3 * max(pivots, default=0)))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))


def heat_map(case, pattern):
    """`pattern`: that of the case's matrix, or None."""
    iterations = case["iterations"]
    figure = plt.figure(figsize=(11 if pattern else 5.2, 4.6), layout="constrained")
    # A colour bar takes its room from the panel, so the panel of sweeps is the widest.
    mosaic = [["a", "lu", "sweeps"], ["text", "text", "pivots"]] if pattern else [["sweeps"], ["pivots"]]
    panels = figure.subplot_mosaic(
        mosaic, height_ratios=[4, 1], **({"width_ratios": [1, 1, 1.25]} if pattern else {}))
    if pattern:
        _pattern(panels["a"], pattern["a"], "A")
        _pattern(panels["lu"], pattern["lu"], f"L + U ({pattern['algorithm']})")
        panels["text"].axis("off")
        panels["text"].text(0, 0.9, _caption(case), va="top", linespacing=1.5)
    _sweeps(figure, panels["sweeps"], iterations)
    _pivots(panels["pivots"], iterations)
    title = f"{case['matrix']}: {case['series']}, {case['dtype']}"
    if "sequence" in case:
        title += f", step {case['sequence']['step']} of relative change {case['sequence']['delta']:g}"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return figure


def _caption(case):
    i = case["iterations"]
    lines = [f"n = {case['n']}, {case['nonzeros']} nonzeros; {i['start']} start",
             f"{i['sections']} × {i['sections']} sections of {i['section_size']}: "
             f"{i['total_sweeps']} sweeps, {i['total_pivots']} pivots"]
    if case.get("factor_ratio") is not None:
        lines.append(f"factor ratio {case['factor_ratio']:.3g}")
    return "\n".join(lines)
