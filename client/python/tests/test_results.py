# SPDX-License-Identifier: Apache-2.0
"""Representations of results in a terminal and in a notebook."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse

from crout import TenantQuota, _messages
from crout.v1 import factorization_service_pb2 as service

NAME = "<script>\n&\"'"
A = np.diag([1.0, 2.0, 4.0])
B = np.ones((3, 2))


def cells(value):
    table = ET.fromstring(value._repr_html_())
    assert table.findtext("caption") == type(value).__name__
    return {row.findtext("th"): row.findtext("td") for row in table.findall("tr")}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda c: c.lu_factor(A), {"version": "1", "n": "3", "dtype": "float64", "info": "0"}),
        (lambda c: c.lu_factor(A).record, {"n": "3", "device": "host"}),
        (lambda c: c.lu_factor([A, A]), {"members": "2", "singular": "0"}),
        (lambda c: c.lu_factor([A, A]).solve([B, B], full_output=True), {"x": "2 arrays"}),
        (lambda c: c.solve(A, B, full_output=True), {"x": "float64(3, 2)", "backward_error": "0"}),
        (lambda c: next(c.series([A], B)), {"x": "float64(3, 2)", "strategy": "refactor"}),
        (lambda c: c.schur_complement(A, 1)[0], {"S": "float64(2, 2)"}),
        (lambda c: c.rref(A), {"R": "float64(3, 3)", "rank": "3"}),
        (lambda c: c.server_info(), {"devices": "host", "draining": "False"}),
        (lambda c: c.server_info().devices[0], {"name": "host", "healthy": "True"}),
        (
            lambda c: c.lu_factor(scipy.sparse.eye(3), algorithm="klu").to_sparse_lu(),
            {"L": "float64(3, 3)", "perm_r": "int32(3,)"},
        ),
    ],
)
def test_results_show_their_numbers_in_one_line_and_as_a_table(client, make, expected):
    value = make(client)
    line = repr(value)
    assert line.startswith(f"<{type(value).__name__} ")
    assert line.isprintable()
    shown = cells(value)
    for name, text in expected.items():
        assert shown[name] == text
        assert f" {name}={text}" in line


def test_names_are_escaped(client):
    with client.lu_factor(A, name=NAME) as f:
        assert repr(f).isprintable()
        assert cells(f)["name"] == repr(NAME)
        assert "<script>" not in f._repr_html_()
    with client.lu_factor(A) as f:
        assert "name" not in cells(f)


def test_quotas_of_the_tenant(client):
    own = client.server_info().own
    assert (own.tenant, own.quota) == ("default", None)
    message = service.GetServerInfoResponse()
    assert _messages.server_info(message).own is None
    message.own.quota.factors = 3
    message.own.quota.soft = True
    assert _messages.server_info(message).own.quota == TenantQuota(factors=3, soft=True)
