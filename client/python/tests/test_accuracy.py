# SPDX-License-Identifier: Apache-2.0
"""The helpers of accuracy.py reject perturbed data."""

import numpy as np
import pytest
from accuracy import assert_close, assert_solves


def test_rejects_a_perturbed_solution(regular):
    A, x = regular(10), np.ones(10)
    assert_solves(A, x, A @ x)
    x[3] += 1e-9
    with pytest.raises(AssertionError):
        assert_solves(A, x, A @ np.ones(10))


def test_rejects_a_perturbed_entry():
    expected = np.arange(6.0).reshape(2, 3)
    assert_close(expected + 1e-16, expected)
    with pytest.raises(AssertionError):
        assert_close(expected + 1e-9, expected)
    with pytest.raises(AssertionError):
        assert_close(expected.T, expected)
