# SPDX-License-Identifier: Apache-2.0
"""Accuracy criteria of the tests."""

import numpy as np


def backward_error(A, x, b):
    """Return the largest |b - A x| / (|A| |x| + |b|) over the columns, in the infinity-norm, in float64."""
    A, x, b = (np.asarray(part, complex if np.iscomplexobj(A) else float) for part in (A, x, b))
    x, b = x.reshape(len(A), -1), b.reshape(len(A), -1)
    scale = np.abs(A).sum(axis=1).max(initial=0) * np.abs(x).max(axis=0, initial=0)
    scale = scale + np.abs(b).max(axis=0, initial=0)
    return (np.abs(b - A @ x).max(axis=0, initial=0) / np.where(scale == 0, 1, scale)).max(initial=0)


def assert_solves(A, x, b, dtype=float):
    """Check that the backward error of X is as small as LAPACK's tests require for the type."""
    assert backward_error(A, x, b) <= 30 * max(len(A), 1) * np.finfo(dtype).eps


def assert_close(actual, expected, dtype=float, factor=100):
    """Check that the largest entry of the difference is within the rounding errors of a few operations."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    scale = max(np.abs(expected).max(initial=0), 1)
    assert np.abs(actual - expected).max(initial=0) <= factor * np.finfo(dtype).eps * scale
