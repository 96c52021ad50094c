# SPDX-License-Identifier: Apache-2.0
"""Histories of concurrent clients: what the checker accepts and refuses, and a short run against a server."""

import os
from pathlib import Path

import history
import numpy as np
import pytest
from history import Call, HistoryError, Kill, matrix_of

B = np.arange(1.0, history.ORDER + 1)


def factor(begin, end, seed=1, durable=False):
    return Call("factor", begin, end, "ok", "H", version=1, seed=seed, durable=durable)


def describe(begin, end, version):
    return Call("describe", begin, end, "ok", "H", version=version)


def refactor(begin, end, version, seed, outcome="ok"):
    return Call("refactor", begin, end, outcome, "H", version=version, seed=seed)


def solve(begin, end, version, seed):
    """Return a solve that used the matrix of `seed`."""
    return Call("solve", begin, end, "ok", "H", version=version, b=B, x=np.linalg.solve(matrix_of(seed), B))


def missing(begin, end):
    return Call("solve", begin, end, "missing", "H")


def release(begin, end, outcome="ok"):
    return Call("release", begin, end, outcome, "H")


ACCEPTED = {
    "either version while one is replaced": (
        [factor(0, 1), refactor(2, 5, 2, 7), solve(3, 4, 1, 1), solve(3, 4, 2, 7), solve(6, 7, 2, 7)],
        [],
    ),
    "a refactorization whose reply was lost took effect": (
        [factor(0, 1), refactor(2, 4, 0, 7, "unknown"), solve(5, 6, 2, 7)],
        [Kill(3, 4)],
    ),
    "or did not": ([factor(0, 1), refactor(2, 4, 0, 7, "unknown"), solve(5, 6, 1, 1)], [Kill(3, 4)]),
    "missing while it is released": ([factor(0, 1), release(2, 5), missing(3, 4), missing(6, 7)], []),
    "used until it is released": ([factor(0, 1), release(2, 5), solve(3, 4, 1, 1)], []),
    "missing after a kill": ([factor(0, 1), missing(4, 5)], [Kill(2, 3)]),
    "durable and used after a kill": (
        [factor(0, 1, durable=True), refactor(2, 3, 2, 7), solve(6, 7, 2, 7)],
        [Kill(4, 5)],
    ),
    "one of two refactorizations whose replies were lost": (
        [
            factor(0, 1, durable=True),
            refactor(2, 4, 0, 7, "unknown"),
            refactor(2, 4, 0, 8, "unknown"),
            describe(5, 6, 2),
            solve(7, 8, 2, 8),
        ],
        [Kill(3, 4)],
    ),
    "durable and used after a release that a kill undid": (
        [factor(0, 1, durable=True), release(2, 3), solve(5, 6, 1, 1)],
        [Kill(3.1, 4)],
    ),
}
REFUSED = {
    "the solution of another version": (
        [factor(0, 1), refactor(2, 3, 2, 7), solve(4, 5, 2, 1)],
        [],
        "not that of",
    ),
    "an old version": ([factor(0, 1), refactor(2, 3, 2, 7), solve(4, 5, 1, 1)], [], "was returned before"),
    "an older version than one that was seen": (
        [factor(0, 1), refactor(2, 9, 2, 7), solve(3, 4, 2, 7), solve(5, 6, 1, 1)],
        [],
        "was returned before",
    ),
    "a version from the future": (
        [factor(0, 1), solve(2, 3, 2, 7), refactor(4, 5, 2, 7)],
        [],
        "requested later",
    ),
    "an unknown version": ([factor(0, 1), solve(2, 3, 5, 1)], [], "no factorization explains"),
    "one version of two matrices": (
        [factor(0, 1), refactor(2, 3, 2, 7), refactor(4, 5, 2, 8)],
        [],
        "two matrices",
    ),
    "missing without a release": ([factor(0, 1), missing(2, 3)], [], "neither released nor lost"),
    "missing before the release": (
        [factor(0, 1), missing(2, 3), release(4, 5)],
        [],
        "neither released nor lost",
    ),
    "missing before the kill": ([factor(0, 1), missing(2, 3)], [Kill(4, 5)], "neither released nor lost"),
    "missing after a kill that it outlived": (
        [factor(4, 5), missing(6, 7)],
        [Kill(1, 2)],
        "neither released nor lost",
    ),
    "used after the release": (
        [factor(0, 1), release(2, 3), solve(4, 5, 1, 1)],
        [],
        "after the factor had been",
    ),
    "durable and missing after a kill": (
        [factor(0, 1, durable=True), missing(4, 5)],
        [Kill(2, 3)],
        "neither released nor lost",
    ),
    "durable with an old version after a kill": (
        [factor(0, 1, durable=True), refactor(2, 3, 2, 7), solve(6, 7, 1, 1)],
        [Kill(4, 5)],
        "was returned before",
    ),
    "durable and used long after its release": (
        [factor(0, 1, durable=True), release(2, 3), solve(9, 10, 1, 1)],
        [Kill(7, 8)],
        "after the factor had been",
    ),
    "a failed connection": ([factor(0, 1), release(2, 3, "unknown")], [], "failed while the server ran"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(name):
    calls, kills = ACCEPTED[name]
    assert sum(history.check(calls, kills).values()) == len(calls)


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    calls, kills, message = REFUSED[name]
    with pytest.raises(HistoryError, match=message):
        history.check(calls, kills)


def test_a_server_that_is_killed_keeps_the_contract():
    program = Path(os.environ["CROUT_CROUTD"])
    counts = history.run(str(program), seconds=15, seed=1)
    assert counts["solve", "ok"] > 0
    assert counts["refactor", "ok"] > 0
    assert counts["solve", "missing"] > 0
