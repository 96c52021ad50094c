# SPDX-License-Identifier: Apache-2.0

import os
from pathlib import Path

import numpy as np
import pytest
from daemon import Daemon

import crout


@pytest.fixture(scope="session")
def program():
    path = os.environ.get("CROUT_CROUTD_TEST")
    if path is None:
        pytest.exit("CROUT_CROUTD_TEST is to be the path of a croutd_test: build/ci/tests/e2e/croutd_test", 2)
    return path


@pytest.fixture(scope="session")
def croutd():
    """The path of croutd, for servers that the client starts."""
    path = os.environ.get("CROUT_CROUTD")
    if path is None:
        pytest.exit("CROUT_CROUTD is to be the path of a croutd: build/ci/server/croutd", 2)
    return Path(path)


@pytest.fixture(scope="session")
def shared_daemon(program, tmp_path_factory):
    """A daemon shared by tests that neither set failpoints nor advance its clock."""
    daemon = Daemon(program, tmp_path_factory.mktemp("croutd"))
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(program, tmp_path):
    """A daemon for a single test."""
    daemon = Daemon(program, tmp_path)
    yield daemon
    daemon.stop()


@pytest.fixture
def address(shared_daemon):
    return shared_daemon.address


@pytest.fixture
def client(address):
    with crout.connect(address, timeout=60) as client:
        yield client


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def regular(rng):
    """A well-conditioned unsymmetric matrix."""

    def make(n, dtype=float):
        return (rng.standard_normal((n, n)) + n * np.eye(n)).astype(dtype)

    return make
