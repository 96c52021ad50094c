# SPDX-License-Identifier: Apache-2.0
"""Shared style of all pictures: colors by series, axes, and export of figures to files."""

import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of the backend)
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

# The colors of Okabe and Ito are distinguishable with any color vision.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31"]
ALARM = "#b00000"  # for limits and results beyond them
TITLE_PAD = 16
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]

plt.rcParams.update({
    "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.7, "legend.frameon": False, "svg.fonttype": "none",
    "svg.hashsalt": "crout", "figure.dpi": 110,
})


def looks(series):
    """Returns {series: (color, marker)}. Repeated colors have different markers."""
    return {name: (COLOURS[i % len(COLOURS)], MARKERS[(i + i // len(COLOURS)) % len(MARKERS)])
            for i, name in enumerate(series)}


def plain_numbers(axis):
    """Labels a logarithmic axis with 1, 2, 5 and 10 instead of powers."""
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_beside(axes):
    """Places the legend to the right of the axes, where the layout reserves space for it."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))


def sign(figure, origins):
    """Writes the origins of the results below the picture, one line per result."""
    figure.supxlabel("\n".join(origins), x=0.995, ha="right", fontsize=7, color="#666666")


def limit(axes, value, text, vertical=False, accepted=False):
    """Draws a line across the axes with `text` at its end. If `accepted`, the line is dashed and separates accepted
    results from others. The text of a vertical line is above the axes and below a title with TITLE_PAD.
    """
    look = {"color": ALARM, "lw": 1, "ls": "--"} if accepted else {"color": "#555555", "lw": 1}
    at, transform, alignment = (((value, 1), axes.get_xaxis_transform(), "center") if vertical else
                                ((0.995, value), axes.get_yaxis_transform(), "right"))
    (axes.axvline if vertical else axes.axhline)(value, **look)
    axes.annotate(text, at, xycoords=transform, xytext=(0, 2), textcoords="offset points", fontsize=7,
                  color=look["color"], ha=alignment, va="bottom", annotation_clip=False)


def ring(axes, points, label):
    """Draws rings around `points`, [(x, y)], with one entry in the legend. Draws nothing without points."""
    if points:
        axes.plot(*zip(*points), "o", ms=10, mfc="none", mec=ALARM, mew=1.3, zorder=6, label=label)


def save(figure, path):
    # Without a date, the same results have the same bytes.
    metadata = {"Date": None} if str(path).endswith(".svg") else None
    figure.savefig(path, metadata=metadata)


def svg(figure):
    """Returns an <svg> element for an HTML page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]
