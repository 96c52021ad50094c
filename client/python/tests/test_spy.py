# SPDX-License-Identifier: Apache-2.0
"""Pictures of sparse matrices, factors and fronts."""

import sys

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp

import crout
from crout import _spy

matplotlib.use("Agg")


@pytest.fixture
def pictures():
    """Close the figures of a test."""
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def grid(m):
    """Return an unsymmetric matrix of a grid of m x m points."""
    along = sp.diags([-1.5, 4.0, -0.5], [-1, 0, 1], (m, m))
    return (sp.kron(sp.eye(m), along) + sp.kron(along, sp.eye(m))).tocsr()


@pytest.mark.parametrize("m", [1, 2, 7, 25])  # the last has more columns than a picture has cells
def test_fronts_are_those_of_the_server(client, m):
    f = client.lu_factor(grid(m), algorithm="multifrontal")
    lu = f.to_sparse_lu()
    fronts = _spy._fronts(lu.L)
    sparse = f.record.sparse
    assert (len(fronts.order), fronts.level.max() + 1) == (sparse.fronts, sparse.levels)
    assert fronts.order.max() == sparse.largest_front
    roots = fronts.level == 0
    assert (fronts.end - fronts.first)[roots].sum() == m * m
    assert (fronts.first <= fronts.begin).all()
    assert (fronts.begin[1:] == fronts.end[:-1]).all()


def test_fill_contains_the_permuted_entries(client):
    A = grid(9).tocsc()
    lu = client.lu_factor(A, algorithm="multifrontal").to_sparse_lu()
    stored = _spy._count(81, _spy._positions(lu.L)) + _spy._count(81, _spy._positions(lu.U))
    entries = _spy._count(81, ((lu.perm_r[row], lu.perm_c[col]) for row, col in _spy._positions(A)))
    assert entries.sum() == A.nnz
    assert (entries <= stored).all()


def test_spy_draws_three_pictures(client, pictures):
    A = grid(20)
    with client.lu_factor(A, algorithm="multifrontal") as f:
        axes = crout.spy(A, f)
        sparse = f.record.sparse
        again = crout.spy(A.toarray(), f.to_sparse_lu())
    titles = [axis.get_title() for axis in axes]
    assert titles[0] == f"A: 400 x 400, {A.nnz:,} nonzeros"
    assert titles[1].startswith(
        f"L and U: {sparse.lu_entries:,} nonzeros, {sparse.lu_entries / A.nnz:.3g} times"
    )
    assert titles[2].startswith(f"{sparse.fronts} fronts in {sparse.levels} levels")
    assert [axis.get_title() for axis in again] == titles
    blue = np.array(matplotlib.colors.to_rgb(_spy._BLUE))
    pattern = axes[0].images[0].get_array()
    diagonal = pattern[np.arange(300), np.arange(300)]
    assert (diagonal < 1).any(axis=1).all()  # no cell of the diagonal is white
    assert pattern.shape == (300, 300, 3)
    assert (pattern >= blue - 1e-12).all()
    axes[0].figure.canvas.draw()


def test_factors_of_other_methods_have_no_fronts(client, pictures):
    A = grid(4)
    assert len(crout.spy(A, client.lu_factor(A, algorithm="klu"))) == 2


def test_spy_refuses_other_matrices(client):
    A = grid(4)
    f = client.lu_factor(A, algorithm="multifrontal")
    with pytest.raises(crout.InvalidRequest, match=r"shape \(9, 9\), and the factor has order 16"):
        crout.spy(grid(3), f)
    with pytest.raises(crout.InvalidRequest, match="dense factor"):
        crout.spy(A, client.lu_factor(A, algorithm="getrf"))


def test_spy_names_a_missing_package(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib .*is not installed: pip install"):
        crout.spy(np.eye(2), None)
