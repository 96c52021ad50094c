# SPDX-License-Identifier: Apache-2.0
"""The shared real matrices, up to order 1500, compared with SciPy. CROUT_MATRICES names their directory."""

import csv
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.linalg
from accuracy import backward_error

import crout

DIRECTORY = Path(
    os.environ.get("CROUT_MATRICES", Path(__file__).resolve().parents[3].parent / "shared/matrices")
)
MOST = 1500


def _matrices():
    index = DIRECTORY / "INDEX.tsv"
    if not index.exists():
        return []
    with index.open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        row["file"]
        for row in rows
        if row["n"].isdigit() and 0 < int(row["n"]) <= MOST and row["field"] in ("real", "integer", "pattern")
    ]


@pytest.mark.skipif(not _matrices(), reason="no shared matrices: set CROUT_MATRICES")
@pytest.mark.parametrize("file", _matrices())
def test_solutions_are_as_accurate_as_scipys(client, file):
    path = DIRECTORY / file
    A = scipy.io.mmread(path)
    dense = np.asarray(A.toarray() if scipy.sparse.issparse(A) else A, float)
    with warnings.catch_warnings():  # some matrices are singular: SciPy and the client both warn
        warnings.simplefilter("ignore")
        theirs = scipy.linalg.lu_factor(dense)
        f = client.lu_factor(path)
        same = client.lu_factor(A)
    assert f.record.norm_one == pytest.approx(np.abs(dense).sum(axis=0).max())
    assert (f.info, f.record.nnz) == (same.info, same.record.nnz)
    b = dense @ np.ones(len(dense))
    if f.info:
        with pytest.raises(crout.Singular):
            f.solve(b)
        return
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        x = f.solve(b)
    if doubts:  # no regular matrix is reported as nearly singular
        assert all(issubclass(doubt.category, crout.LinAlgWarning) for doubt in doubts)
        assert np.linalg.cond(dense) > 1e12
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = backward_error(dense, scipy.linalg.lu_solve(theirs, b), b)
    assert not backward_error(dense, x, b) > max(10 * reference, 1e-14)
