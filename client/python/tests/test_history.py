# SPDX-License-Identifier: Apache-2.0
"""Histories of concurrent clients: what the checker accepts and refuses, and a short run against a server."""

import dataclasses
import os

import history
import numpy as np
import pytest
from history import Call, HistoryError, Outage, matrix_of

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


def at(home, *calls):
    """Return the calls as calls that this replica answered."""
    return [dataclasses.replace(call, home=home) for call in calls]


ACCEPTED = {
    "either version while one is replaced": (
        [factor(0, 1), refactor(2, 5, 2, 7), solve(3, 4, 1, 1), solve(3, 4, 2, 7), solve(6, 7, 2, 7)],
        [],
    ),
    "a refactorization whose reply was lost took effect": (
        [factor(0, 1), refactor(2, 4, 0, 7, "unknown"), solve(5, 6, 2, 7)],
        [Outage(3, 4)],
    ),
    "or did not": ([factor(0, 1), refactor(2, 4, 0, 7, "unknown"), solve(5, 6, 1, 1)], [Outage(3, 4)]),
    "missing while it is released": ([factor(0, 1), release(2, 5), missing(3, 4), missing(6, 7)], []),
    "used until it is released": ([factor(0, 1), release(2, 5), solve(3, 4, 1, 1)], []),
    "missing after a kill": ([factor(0, 1), missing(4, 5)], [Outage(2, 3)]),
    "durable and used after a kill": (
        [factor(0, 1, durable=True), refactor(2, 3, 2, 7), solve(6, 7, 2, 7)],
        [Outage(4, 5)],
    ),
    "one of two refactorizations whose replies were lost": (
        [
            factor(0, 1, durable=True),
            refactor(2, 4, 0, 7, "unknown"),
            refactor(2, 4, 0, 8, "unknown"),
            describe(5, 6, 2),
            solve(7, 8, 2, 8),
        ],
        [Outage(3, 4)],
    ),
    "durable and used after a release that a kill undid": (
        [factor(0, 1, durable=True), release(2, 3), solve(5, 6, 1, 1)],
        [Outage(3.1, 4)],
    ),
    "durable and adopted after a kill": (
        at("a", factor(0, 1, durable=True)) + at("b", solve(4, 5, 1, 1), refactor(6, 7, 2, 7)),
        [Outage(2, 3, "a")],
    ),
    "adopted twice": (
        at("a", factor(0, 1, durable=True)) + at("b", solve(4, 5, 1, 1)) + at("a", solve(8, 9, 1, 1)),
        [Outage(2, 3, "a"), Outage(6, 7, "b")],
    ),
    "no answer of a home that the client does not know": (
        at("a", factor(0, 1, durable=True), refactor(5.5, 6, 0, 7, "unknown")) + at("b", solve(4, 5, 1, 1)),
        [Outage(2, 3, "a"), Outage(5.2, 7, "b")],
    ),
    "missing after an outage that ended before the reply with the handle": (
        at("a", factor(0, 4), missing(5, 6)),
        [Outage(2, 3, "a")],
    ),
    "an answer of a paused home to a call that began before the adoption": (
        [
            *at("a", factor(0, 1, durable=True), solve(1.5, 9, 1, 1)),
            *at("b", refactor(4, 5, 2, 7), solve(6, 7, 2, 7)),
        ],
        [Outage(2, 8, "a", "pause")],
    ),
    "missing after a kill of its home": (at("a", factor(0, 1), missing(4, 5)), [Outage(2, 3, "a")]),
    "missing in a pause of its home, and used after it": (
        at("a", factor(0, 1), missing(4, 5), solve(7, 8, 1, 1)),
        [Outage(2, 6, "a", "pause")],
    ),
    "a failed connection to its home": (
        at("a", factor(0, 1), refactor(2, 4, 0, 7, "unknown")),
        [Outage(3, 5, "a")],
    ),
    "durable and used after a release that a pause undid": (
        at("a", factor(0, 1, durable=True), release(2, 3)) + at("b", solve(5, 6, 1, 1)),
        [Outage(3.1, 9, "a", "pause")],
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
    "missing before the kill": ([factor(0, 1), missing(2, 3)], [Outage(4, 5)], "neither released nor lost"),
    "missing after a kill that it outlived": (
        [factor(4, 5), missing(6, 7)],
        [Outage(1, 2)],
        "neither released nor lost",
    ),
    "used after the release": (
        [factor(0, 1), release(2, 3), solve(4, 5, 1, 1)],
        [],
        "after the factor had been",
    ),
    "durable and missing after a kill": (
        [factor(0, 1, durable=True), missing(4, 5)],
        [Outage(2, 3)],
        "neither released nor lost",
    ),
    "durable with an old version after a kill": (
        [factor(0, 1, durable=True), refactor(2, 3, 2, 7), solve(6, 7, 1, 1)],
        [Outage(4, 5)],
        "was returned before",
    ),
    "durable and used long after its release": (
        [factor(0, 1, durable=True), release(2, 3), solve(9, 10, 1, 1)],
        [Outage(7, 8)],
        "after the factor had been",
    ),
    "a failed connection": ([factor(0, 1), release(2, 3, "unknown")], [], "no answer while"),
    "released, and used after a stop": (
        [factor(0, 1, durable=True), release(2, 3), solve(5, 6, 1, 1)],
        [Outage(3.1, 4, kind="stop")],
        "after the factor had been",
    ),
    "missing although another replica was killed": (
        at("a", factor(0, 1), missing(4, 5)),
        [Outage(2, 3, "b")],
        "neither released nor lost",
    ),
    "durable and missing after a pause": (
        at("a", factor(0, 1, durable=True), missing(4, 5)),
        [Outage(2, 6, "a", "pause")],
        "neither released nor lost",
    ),
    "a failed connection to a replica that ran": (
        at("a", factor(0, 1), refactor(2, 5, 0, 7, "unknown")),
        [Outage(3, 4, "b")],
        "no answer while",
    ),
    "two homes": (
        [*at("a", factor(0, 1)), *at("b", solve(2, 3, 1, 1))],
        [],
        "without an outage",
    ),
    "two homes after the outage of another replica": (
        [*at("a", factor(0, 1)), *at("b", solve(4, 5, 1, 1))],
        [Outage(2, 3, "b")],
        "without an outage",
    ),
    "an answer of the former home after the adoption": (
        [*at("a", factor(0, 1, durable=True)), *at("b", solve(4, 5, 1, 1)), *at("a", solve(6, 7, 1, 1))],
        [Outage(2, 9, "a", "pause")],
        "without an outage",
    ),
    "an old version of the former home": (
        [
            *at("a", factor(0, 1, durable=True)),
            *at("b", refactor(4, 5, 2, 7)),
            *at("a", solve(6, 7, 1, 1)),
        ],
        [Outage(2, 9, "a", "pause")],
        "was returned before",
    ),
    "one version of two matrices in two replicas": (
        [
            *at("a", factor(0, 1, durable=True), refactor(1.5, 9, 2, 8)),
            *at("b", refactor(4, 5, 2, 7)),
        ],
        [Outage(2, 9, "a", "pause")],
        "two matrices",
    ),
    "released in one replica and used in another": (
        at("a", factor(0, 1, durable=True), release(2, 3)) + at("b", solve(8, 9, 1, 1)),
        [Outage(6, 7, "a")],
        "after the factor had been",
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(name):
    calls, outages = ACCEPTED[name]
    counts = history.check(calls, outages)
    assert counts.total() - counts["home", "moved"] == len(calls)


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    calls, outages, message = REFUSED[name]
    with pytest.raises(HistoryError, match=message):
        history.check(calls, outages)


def test_a_server_that_is_killed_keeps_the_contract(tmp_path):
    server = history.OneServer(os.environ["CROUT_CROUTD"], tmp_path)
    counts = history.run(server, seconds=15, seed=1)
    assert counts["solve", "ok"] > 0
    assert counts["refactor", "ok"] > 0
    assert counts["solve", "missing"] > 0
