# SPDX-License-Identifier: Apache-2.0
"""SciPy's own tests with the functions of crout.scipy; see scipy_suite.py."""

import re

import pytest
import scipy_suite


def test_scipys_tests_pass(address):
    if not any((scipy_suite.ROOT / file).exists() for file in scipy_suite.FILES):
        pytest.skip("SciPy is installed without its tests")
    status, output = scipy_suite.run(address)
    assert status == 0, output
    passed, failed = (
        int(re.search(rf"(\d+) {word}", output)[1]) for word in ("passed", "failed as expected")
    )
    assert passed > 10 * failed
