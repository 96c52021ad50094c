# SPDX-License-Identifier: Apache-2.0
"""Pictures of a sparse matrix, its factors, and the fronts of the multifrontal method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout._linalg import SparseFactors
from crout._payload import as_array, is_sparse
from crout.errors import InvalidRequest
from crout.factor import Factor

Array = npt.NDArray[Any]

_CELLS = 300  # largest number of cells along a side of a picture
_ENTRIES_AT_ONCE = 1 << 22
# The colors of Okabe and Ito are distinguishable with any color vision.
_BLUE, _ORANGE = "#0072B2", "#D55E00"
_GREENS = ("#d5f0e6", "#009E73", "#00402f")  # colors of small to large fronts
_LEAST_SHADE = 0.5  # shade of a cell with few nonzeros
_ORDER = "in the order of elimination, from 0"
_TITLE = 11  # points
_LEAST_BLOCK = 50  # smallest share of the order, 1/50, at which a front is outlined


def spy(A: Any, f: Factor | SparseFactors) -> Array:
    """Draw the pattern of a sparse matrix, the fill of its factors, and the fronts, with matplotlib.

    Three pictures: the nonzeros of A; the nonzeros of L and U in the order of elimination, where blue are
    entries of A and orange is fill; and the tree of fronts of the multifrontal method, where each front
    covers the columns of its subtree. Without fronts, as for "klu", there is no third picture.

    Large matrices are drawn as 300 x 300 cells. A cell is darker if more of its elements are nonzero, on a
    logarithmic scale. In L and U it is blue if at least half of them are entries of A.

    Parameters
    ----------
    A : sparse matrix or array_like, shape (n, n)
        The matrix. Stored zeros of a sparse matrix count as nonzeros.
    f : Factor or SparseFactors
        A sparse factor of A, which is downloaded; or the result of `Factor.to_sparse_lu`.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (3,) or (2,)
        In a new figure of pyplot. Rows and columns count from 0.

    Raises
    ------
    ImportError
        matplotlib or SciPy is not installed.
    InvalidRequest
        A has another shape than the factor, or the factor is dense.
    CroutError
        The download failed, as in `Factor.to_sparse_lu`.
    """
    try:
        from matplotlib import pyplot as plt
        from scipy import sparse
    except ImportError as error:
        raise ImportError(
            f"crout.spy needs matplotlib and SciPy, and {error.name} is not installed: pip install "
            "matplotlib scipy"
        ) from error
    if isinstance(f, Factor) and f._record.sparse is None:
        raise InvalidRequest("f is a dense factor, and only factors by sparse methods have a picture")
    entries = sparse.csc_array(A if is_sparse(A) else as_array(A))
    entries.sum_duplicates()
    lu = f if isinstance(f, SparseFactors) else f.to_sparse_lu()
    n = lu.L.shape[0]
    if entries.shape != (n, n):
        raise InvalidRequest(f"the matrix has the shape {entries.shape}, and the factor has order {n}")
    fronts = _fronts(lu.L) if lu.record.algorithm == "multifrontal" and n > 0 else None
    count = 2 if fronts is None else 3
    axes: Array
    figure, axes = plt.subplots(1, count, figsize=(5 * count, 5.8), layout="constrained")

    pattern = _count(n, _positions(entries))
    _draw_pattern(axes[0], n, pattern, pattern)
    axes[0].set_title(f"A: {n:,} x {n:,}, {entries.nnz:,} nonzeros", fontsize=_TITLE)
    axes[0].set(xlabel="column, from 0", ylabel="row, from 0")

    filled = lu.L.nnz - n + lu.U.nnz  # without the unit diagonal
    below = ((row[row > col], col[row > col]) for row, col in _positions(lu.L))
    permuted = ((lu.perm_r[row], lu.perm_c[col]) for row, col in _positions(entries))
    _draw_pattern(axes[1], n, _count(n, [*below, *_positions(lu.U)]), _count(n, permuted))
    ratio = filled / max(entries.nnz, 1)
    axes[1].set_title(f"L and U: {filled:,} nonzeros, {ratio:.3g} times those of A", fontsize=_TITLE)
    axes[1].set(xlabel=f"column {_ORDER}", ylabel=f"row {_ORDER}")
    marks = [plt.Rectangle((0, 0), 1, 1, color=color) for color in (_BLUE, _ORANGE)]
    axes[1].legend(
        marks,
        ["entries of A", "fill"],
        ncol=2,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.13),
        frameon=False,
    )
    if fronts is not None:
        _outline(axes[1], n, fronts)
        _draw_fronts(figure, axes[2], n, fronts)
    return axes


@dataclass(frozen=True)
class _Fronts:
    """The tree of fronts, in postorder. Each array has an element for each front.

    Attributes
    ----------
    begin, end : ndarray of int
        The columns that the front eliminates: begin, ..., end - 1.
    first : ndarray of int
        First column of the front's subtree.
    order : ndarray of int
        Order of the front.
    level : ndarray of int
        0 for roots; one more than the parent's for all others.
    """

    begin: Array
    end: Array
    first: Array
    order: Array
    level: Array


def _fronts(lower: Any) -> _Fronts:
    """Find the fronts in L, which stores their zeros: columns with the same structure below the diagonal.

    Parameters
    ----------
    lower : scipy.sparse.csc_array, shape (n, n)
        L with its diagonal; indices ascend in each column.
    """
    n = lower.shape[0]
    counts = np.diff(lower.indptr)
    # The row below the diagonal with the first entry: the column's parent in the elimination tree.
    parent = np.full(n, n)
    inner = np.flatnonzero(counts > 1)
    parent[inner] = lower.indices[lower.indptr[inner] + 1]
    continues = (parent[:-1] == np.arange(1, n)) & (counts[1:] == counts[:-1] - 1)
    begin = np.flatnonzero(np.concatenate([[True], ~continues]))
    end = np.append(begin[1:], n)
    front_of = np.repeat(np.arange(len(begin)), end - begin)
    above = np.where(parent[end - 1] < n, front_of[np.minimum(parent[end - 1], n - 1)], -1).tolist()
    first, level = begin.tolist(), [0] * len(begin)
    for k, parent_front in enumerate(above):
        if parent_front >= 0:
            first[parent_front] = min(first[parent_front], first[k])
    for k in reversed(range(len(above))):
        if above[k] >= 0:
            level[k] = level[above[k]] + 1
    return _Fronts(begin, end, np.array(first), counts[begin], np.array(level))


def _positions(columns: Any) -> Iterator[tuple[Array, Array]]:
    """Generate the rows and columns of the entries of compressed columns, in blocks."""
    for start in range(0, columns.nnz, _ENTRIES_AT_ONCE):
        stop = min(start + _ENTRIES_AT_ONCE, columns.nnz)
        col = np.searchsorted(columns.indptr, np.arange(start, stop), side="right") - 1
        yield columns.indices[start:stop], col


def _count(n: int, positions: Iterable[tuple[Array, Array]]) -> Array:
    """Count the entries in each cell of a picture of an n x n matrix."""
    cells = min(n, _CELLS)
    counts = np.zeros(cells * cells, np.int64)
    for row, col in positions:
        cell = row.astype(np.int64) * cells // n * cells + col.astype(np.int64) * cells // n
        counts += np.bincount(cell, minlength=cells * cells)
    return counts.reshape(cells, cells)


def _draw_pattern(axes: Any, n: int, counts: Array, entries: Array) -> None:
    """Draw counts of nonzeros; blue where at least half of them are `entries`, otherwise orange."""
    from matplotlib.colors import to_rgb

    elements = max(-(-n // max(counts.shape[0], 1)), 1) ** 2  # elements of a cell
    shade = _LEAST_SHADE + (1 - _LEAST_SHADE) * np.log(np.maximum(counts, 1)) / max(np.log(elements), 1e-9)
    if elements == 1:
        shade = np.ones_like(shade)
    shade = np.where(counts > 0, shade, 0.0)[..., np.newaxis]
    color = np.where((2 * entries >= counts)[..., np.newaxis], to_rgb(_BLUE), to_rgb(_ORANGE))
    image = 1 - shade * (1 - color)
    axes.imshow(image, extent=(-0.5, n - 0.5, n - 0.5, -0.5), interpolation="nearest")
    for axis in (axes.xaxis, axes.yaxis):
        _number(axis)


def _number(axis: Any) -> None:
    """Label an axis with integers."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _outline(axes: Any, n: int, fronts: _Fronts) -> None:
    """Outline the pivot blocks of the fronts that eliminate many columns."""
    from matplotlib.patches import Rectangle

    for begin, end in zip(fronts.begin.tolist(), fronts.end.tolist(), strict=True):
        if end - begin >= max(n / _LEAST_BLOCK, 2):
            side = end - begin
            axes.add_patch(Rectangle((begin - 0.5, begin - 0.5), side, side, fill=False, lw=0.8))


def _draw_fronts(figure: Any, axes: Any, n: int, fronts: _Fronts) -> None:
    """Draw the tree of fronts: a row for each level, roots at the top; colors by order."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import StrMethodFormatter

    levels = int(fronts.level.max()) + 1
    width, height = min(n, _CELLS), min(levels, _CELLS)
    largest = np.zeros((height, width))
    for first, end, level, order in zip(fronts.first, fronts.end, fronts.level, fronts.order, strict=True):
        cells = largest[level * height // levels, first * width // n : (end - 1) * width // n + 1]
        np.maximum(cells, order, out=cells)
    colors = LinearSegmentedColormap.from_list("fronts", _GREENS)
    image = axes.imshow(
        np.ma.masked_equal(largest, 0),
        cmap=colors,
        norm=LogNorm(int(fronts.order.min()), max(int(fronts.order.max()), 2)),
        extent=(-0.5, n - 0.5, levels - 0.5, -0.5),
        interpolation="nearest",
        aspect="auto",
    )
    wide = fronts.end - fronts.first >= n / _LEAST_BLOCK
    edges = [
        [(x - 0.5, level - 0.5), (x - 0.5, level + 0.5)]
        for x, level in zip(fronts.first[wide].tolist(), fronts.level[wide].tolist(), strict=True)
    ]
    axes.add_collection(LineCollection(edges, colors="white", linewidths=0.8))
    axes.set_box_aspect(1)
    _number(axes.xaxis)
    _number(axes.yaxis)
    bar = figure.colorbar(image, ax=axes, label="order of the front", shrink=0.8)
    smallest, greatest = int(fronts.order.min()), int(fronts.order.max())
    bar.set_ticks(sorted({smallest, *(10**k for k in range(10) if smallest < 10**k < greatest), greatest}))
    bar.ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    bar.ax.minorticks_off()
    count = len(fronts.begin)
    axes.set_title(
        f"{count:,} fronts in {levels:,} levels, the largest of order {greatest:,}", fontsize=_TITLE
    )
    axes.set(xlabel=f"column {_ORDER}", ylabel="level, from 0 at the roots")
