# SPDX-License-Identifier: Apache-2.0
"""Picture of an iterative factorization: sweeps and pivots by section, and the magnitudes of A and of LU."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import FixedLocator, MaxNLocator

from report import results
from report.style import ALARM, plt

# Colors from small to large magnitudes. Zeros are white.
MAGNITUDES = LinearSegmentedColormap.from_list("magnitudes", ["#ffd9a0", "#7fbf7b", "#2b7bba", "#000000"])
SIDE = 3.3  # side of a panel in inches; BOTTOM is the space below it
BOTTOM = 1.65
MAX_LABELS = 16  # largest number of sections per side with labels


def _pattern(axes, pattern, title):
    """Draws `pattern`, in crout-bench's format: a letter for the largest magnitude in each cell."""
    low, high = pattern["low"], pattern["high"]
    letters = np.array([[ord(cell) for cell in row] for row in pattern["rows"]], dtype=float)
    share = (letters - ord("a")) / (ord("z") - ord("a"))
    powers = np.ma.masked_less(low + share * (high - low), low - 1e-9)  # '.' and '!' precede 'a'
    image = axes.imshow(powers, cmap=MAGNITUDES, vmin=low, vmax=max(high, low + 1e-9), interpolation="nearest")
    bad = np.argwhere(letters == ord("!"))
    if len(bad):
        axes.plot(bad[:, 1], bad[:, 0], "s", ms=2, color=ALARM, label="not finite")
        axes.legend(loc="upper right", fontsize=7)
    bar = axes.inset_axes([0, -0.08, 1, 0.03])
    axes.figure.colorbar(image, cax=bar, orientation="horizontal", label="decimal logarithm of the largest entry")
    bar.grid(False)
    axes.set(title=title, xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#aaaaaa")


def _sections(count):
    """Returns a locator for the section numbers along an axis."""
    return MaxNLocator(8, integer=True) if count > 8 else FixedLocator(range(count))


def _sweeps(axes, iterations):
    sweeps = np.array(iterations["sweeps"], dtype=float)
    count = len(sweeps)
    image = axes.imshow(np.ma.masked_equal(sweeps, 0), cmap="viridis", vmin=0, aspect="equal")
    image.cmap.set_bad("#f2f2f2")
    # Insets move with the panel, which has any aspect ratio.
    bar = axes.inset_axes([1.03, 0, 0.045, 1])
    axes.figure.colorbar(image, cax=bar, label="sweeps", ticks=MaxNLocator(8, integer=True))
    bar.grid(False)
    axes.set(title="Sweeps by section", ylabel="section row", xticks=[])
    axes.yaxis.set_major_locator(_sections(count))
    axes.grid(False)
    if count > MAX_LABELS:
        return
    for i in range(count):
        for j in range(count):
            dark = sweeps[i, j] < 0.6 * sweeps.max()
            axes.text(j, i, f"{int(sweeps[i, j])}", ha="center", va="center",
                      fontsize=max(5, 9 - count // 4), color="white" if dark else "black")


def _pivots(axes, iterations):
    """Draws bars for the diagonal sections below the panel of sweeps. The bars are bad elements if they are counted,
    because each needs more sweeps, otherwise pivots.
    """
    bad = iterations.get("bad_elements")
    pivots = bad or iterations["pivots"]
    below = axes.inset_axes([0, -0.29, 1, 0.25])
    bars = below.bar(range(len(pivots)), pivots, color="#D55E00", width=0.8)
    if len(pivots) <= MAX_LABELS:
        below.bar_label(bars, fontsize=7)
    below.set(xlabel="section column", ylabel="bad elements" if bad else "pivots", xlim=(-0.5, len(pivots) - 0.5))
    below.set_ylim(0, max(1, 1.35 * max(pivots, default=0)))
    below.xaxis.set_major_locator(_sections(len(pivots)))
    below.yaxis.set_major_locator(MaxNLocator(3, integer=True))


def _panel(figure, left):
    width, height = figure.get_size_inches()
    return figure.add_axes([left / width, BOTTOM / height, SIDE / width, SIDE / height])


def heat_map(case, pattern):
    """Draws a case. `pattern` is the pattern of its matrix, or None. Ignores patterns of older results, which have no
    magnitudes.
    """
    if pattern and "rows" not in pattern["a"]:
        pattern = None
    figure = plt.figure(figsize=(12.4 if pattern else 5.2, BOTTOM + SIDE + 0.95))
    if pattern:
        _pattern(_panel(figure, 0.3), pattern["a"], "A")
        _pattern(_panel(figure, 3.95), pattern["lu"], f"L + U ({pattern['algorithm']})")
    sweeps = _panel(figure, 8.0 if pattern else 0.8)
    _sweeps(sweeps, case["iterations"])
    _pivots(sweeps, case["iterations"])
    figure.text(0.3 / figure.get_figwidth(), 0.985, _caption(case, wide=pattern is not None),
                va="top", fontsize=10, linespacing=1.4,
                color=ALARM if results.inaccurate(case) else "black")
    return figure


def _caption(case, wide):
    i = case["iterations"]
    title = f"{case['matrix']}: {case['series']}, {case['dtype']}, {i['start']} start"
    if "sequence" in case:
        title += " (step {step} of relative change {delta:g})".format(**case["sequence"])
    facts = (f"n = {case['n']}, {case['nonzeros']} nonzeros; "
             f"{i['sections']} × {i['sections']} sections of {i['section_size']}: "
             f"{i['total_sweeps']} sweeps, {i['total_pivots']} rows moved")
    if "total_bad_elements" in i:
        facts += f" for {i['total_bad_elements']} bad elements"
    if case.get("factor_ratio") is not None:
        facts += f"; factor ratio {case['factor_ratio']:.3g}"
    lines = [title, facts] if wide else [title]
    if results.inaccurate(case):
        lines.append(f"inaccurate: a factor ratio of {results.ACCEPTED_RATIO} or more")
    return "\n".join(lines)
