# SPDX-License-Identifier: Apache-2.0
"""Runs mixed calls from several clients at once and compares each result with the exact solution.

usage: soak.py CROUTD_TEST [SECONDS]        300 seconds by default

Matrices, solutions and right-hand sides are integers, so that b = A x is exact. A result passes if its
relative forward error is at most 10 n cond(A) u, or if it came with a warning and cond(A) u is above 1e-4.
At the end no factor may be left, and the daemon's memory must have stopped growing.
Exit status: 0 if every check passed.
"""

import concurrent.futures
import itertools
import sys
import tempfile
import threading
import urllib.request
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from daemon import Daemon

import crout

CLIENTS = 6
MOST = 60
"""Largest order."""
GROWTH = 1.5
"""Most that memory may grow from a fifth of the time to the end."""


class Problem:
    """A system A x = b of integers, with the condition number of A. Some matrices are nearly singular."""

    def __init__(self, rng: np.random.Generator, dtype: np.dtype, n: int | None = None) -> None:
        self.n = n or int(rng.integers(1, MOST))
        self.dtype = dtype
        A = rng.integers(-9, 10, (self.n, self.n)) + np.diag(rng.integers(0, 3 * self.n, self.n))
        A = np.where(rng.random(A.shape) < rng.choice([0.2, 1.0]), A, 0) + np.eye(self.n, dtype=int)
        self.x = rng.integers(-9, 10, (self.n, int(rng.integers(1, 4))))
        if np.issubdtype(dtype, np.complexfloating):
            A = A + 1j * rng.integers(-3, 4, A.shape) * (A != 0)
        self.A = A.astype(dtype)
        self.b = (A @ self.x).astype(dtype)
        self.cond = np.linalg.cond(A) if self.n else 1.0
        self.u = np.finfo(dtype).eps / 2

    def check(self, x: np.ndarray, doubted: bool) -> None:
        error = np.abs(x - self.x).max() / max(np.abs(self.x).max(), 1)
        if error <= 10 * self.n * self.cond * self.u:
            return
        if doubted and self.cond * self.u > 1e-4:
            return
        raise AssertionError(f"n={self.n} {self.dtype}: error {error:.1e}, cond(A) {self.cond:.1e}")


def call_with_warnings(function, *args, **options):
    """Return the result of a call, and whether it issued a warning."""
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        result = function(*args, **options)
    return result, bool(doubts)


def dense(client, rng, dtype):
    problem = Problem(rng, dtype)
    f, first = call_with_warnings(client.lu_factor, problem.A)
    with f:
        if f.info:
            assert problem.cond * problem.u > 1e-4
            return
        for _ in range(3):
            x, doubted = call_with_warnings(f.solve, problem.b)
            problem.check(x, first or doubted)
        again = Problem(rng, dtype, problem.n)
        if again.cond * again.u < 1e-6:
            f.refactor(again.A)
            again.check(f.solve(again.b), doubted=False)


def sparse(client, rng, dtype):
    problem = Problem(rng, dtype)
    f, first = call_with_warnings(client.lu_factor, scipy.sparse.csr_matrix(problem.A))
    with f:
        if f.info:
            assert problem.cond * problem.u > 1e-4
            return
        x, doubted = call_with_warnings(f.solve, problem.b)
        problem.check(x, first or doubted)


def once(client, rng, dtype):
    problem = Problem(rng, dtype)
    try:
        x, doubted = call_with_warnings(client.solve, problem.A, problem.b)
    except crout.Singular:
        assert problem.cond * problem.u > 1e-4
        return
    problem.check(x, doubted)


def batch(client, rng, dtype):
    problems = [Problem(rng, dtype) for _ in range(5)]
    problems = [problem for problem in problems if problem.cond * problem.u < 1e-6]
    if not problems:
        return
    with client.lu_factor([problem.A for problem in problems]) as f:
        for problem, x in zip(problems, f.solve([problem.b for problem in problems]), strict=True):
            problem.check(x, doubted=False)


def series(client, rng, dtype):
    problem = Problem(rng, dtype)
    if problem.cond * problem.u > 1e-6:
        return
    scales = [1, 2, 2, 4]
    steps = client.series([problem.A * dtype(scale) for scale in scales], problem.b)
    for scale, step in zip(scales, steps, strict=True):
        problem.check(step.x * scale, doubted=False)


WORK = (dense, sparse, once, batch, series)
DTYPES = tuple(np.dtype(name).type for name in ("float32", "float64", "complex64", "complex128"))


def run(address: str, seed: int, stop: threading.Event, counts: Counter) -> None:
    rng = np.random.default_rng(seed)
    with crout.connect(address, timeout=60) as client:
        while not stop.is_set():
            work, dtype = WORK[rng.integers(len(WORK))], DTYPES[rng.integers(len(DTYPES))]
            work(client, rng, dtype)
            counts[work.__name__] += 1


def resident_bytes(daemon: Daemon) -> int:
    with urllib.request.urlopen(f"http://{daemon.metrics_address}/metrics", timeout=60) as page:
        text = page.read().decode()
    lines = [line for line in text.splitlines() if line.startswith("process_resident_memory_bytes ")]
    return int(float(lines[0].split()[1]))


def soak(daemon: Daemon, seconds: float) -> None:
    """Run all clients for `seconds`. A failed check or call ends the run with its exception."""
    counts, stop = Counter(), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        calls = [pool.submit(run, daemon.address, seed, stop, counts) for seed in range(CLIENTS)]
        concurrent.futures.wait(calls, seconds / 5, concurrent.futures.FIRST_EXCEPTION)
        early = resident_bytes(daemon)
        concurrent.futures.wait(calls, seconds * 4 / 5, concurrent.futures.FIRST_EXCEPTION)
        late = resident_bytes(daemon)
        stop.set()
    for call in calls:
        call.result()
    with crout.connect(daemon.address) as client:
        left = len(list(itertools.islice(client.list(), 10)))
    print(dict(counts), f"resident: {early >> 20} MiB, at the end {late >> 20} MiB; factors left: {left}")
    assert late <= GROWTH * early, "the daemon's memory grew"
    assert left == 0, "factors are left"


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(sys.argv[1], Path(directory))
        try:
            soak(daemon, float(sys.argv[2]) if len(sys.argv) == 3 else 300.0)
        finally:
            daemon.stop()
    print("every answer passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
