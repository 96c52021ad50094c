# SPDX-License-Identifier: Apache-2.0
"""Runs mixed calls of many clients and tenants during faults, and compares results with exact solutions.

usage: soak.py CROUTD_TEST [--seconds=3600] [--clients=200] [--result=FILE]

The clients belong to TENANTS tenants with different quotas. Memory is small, so that idle factors move to the
store on disk and back. Half of the factors that a client keeps are durable. Every FAULT_INTERVAL seconds one
of FAULTS makes an operation of the server fail.

Matrices, solutions and right-hand sides are integers, so that b = A x is exact. A result passes if its
relative forward error is at most 10 n cond(A) u, or if it came with a warning and cond(A) u is above 1e-4. A
call may fail only by a quota, for lack of memory, or by a fault, and no durable factor may be lost. At the
end no factor may be left. The daemon's resident memory may grow by GROWTH from FLAT_AFTER seconds on; shorter
runs do not check this. The daemon keeps freed blocks within its budget, which is small so that it is used
up by then.

Exit status: 0 if every check passed.
"""

import argparse
import concurrent.futures
import itertools
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from daemon import Daemon

import crout

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
from result import head, keep

TENANTS = 8
QUOTAS = """
[default]
factors = 10000

[tenant.t1]
device_seconds_per_minute = 5

[tenant.t2]
queued_jobs = 4
running_jobs = 1

[tenant.t3]
host_bytes = "2MiB"
soft = true

[tenant.t4]
factors = 40
bytes_in_flight = "1MiB"

[tenant.t5]
host_bytes = "2MiB"
store_bytes = "1MiB"

[tenant.t6]
max_n = 50
"""
KEPT = 12
"""Factors that a client keeps at most."""
MOST = 60
"""Largest order."""
PAUSE = 4.0
"""Mean seconds between the calls of a client. Without pauses, the clients of one process delay each other."""
FLAGS = ("--host-budget=24MiB", "--receive-buffers=64MiB", "--call-memory=32MiB", "--log-calls=none")
INJECTED = "injected by soak.py"
RESOURCE_EXHAUSTED, UNAVAILABLE = 8, 14
FAULTS = (
    ("memory.allocate", RESOURCE_EXHAUSTED),
    ("store.write", RESOURCE_EXHAUSTED),
    ("factorize.factor", UNAVAILABLE),
    ("store.read", UNAVAILABLE),
    ("solve.run", UNAVAILABLE),
    ("store.sync", UNAVAILABLE),
    ("dynamic_batch.run", UNAVAILABLE),
    ("store.remove", UNAVAILABLE),
    ("sparse.analyze", UNAVAILABLE),
    ("store.create", UNAVAILABLE),
)
FAULT_INTERVAL = 20.0
SAMPLE_INTERVAL = 5.0
FLAT_AFTER = 600.0
WINDOW = 60.0
"""Seconds over which a figure of resident memory is a median."""
GROWTH = 0.02


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


def factor_and_solve(client, problem, A, **options):
    f, first = call_with_warnings(client.lu_factor, A, **options)
    with f:
        if f.info:
            assert problem.cond * problem.u > 1e-4
            return
        x, doubted = call_with_warnings(f.solve, problem.b)
        problem.check(x, first or doubted)


def sparse(client, rng, dtype):
    problem = Problem(rng, dtype)
    factor_and_solve(client, problem, scipy.sparse.csr_matrix(problem.A))


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


def durable(client, rng, dtype):
    problem = Problem(rng, dtype)
    factor_and_solve(client, problem, problem.A, durable=True)


class Keeper:
    """Keeps factors of one client, and solves with any of them."""

    def __init__(self) -> None:
        self.lost = 0
        self._kept = []

    def kept(self, client, rng, dtype):
        if self._kept and rng.random() < 0.1:
            self._release(self._kept.pop(rng.integers(len(self._kept))))
        if len(self._kept) < KEPT:
            problem = Problem(rng, dtype)
            if problem.cond * problem.u > 1e-6:
                return
            self._kept.append((client.lu_factor(problem.A, durable=bool(rng.random() < 0.5)), problem))
        index = rng.integers(len(self._kept))
        f, problem = self._kept[index]
        try:
            x = f.solve(problem.b)
        except crout.HandleExpired:
            assert not f.record.durable, "a durable factor is lost"
            self.lost += 1
            del self._kept[index]
            return
        problem.check(x, doubted=False)

    def close(self) -> None:
        for kept in self._kept:
            self._release(kept)

    def _release(self, kept) -> None:
        f, _ = kept
        try:
            f.release()
        except crout.HandleExpired:
            assert not f.record.durable, "a durable factor is lost"
            self.lost += 1


WORK = (dense, sparse, once, batch, series, durable)
DTYPES = tuple(np.dtype(name).type for name in ("float32", "float64", "complex64", "complex128"))


def tenant_of(client: int) -> str:
    return f"t{client % TENANTS}"


def is_expected(error: crout.CroutError) -> bool:
    """Return whether a call may fail with this error."""
    return isinstance(error, crout.Overloaded) or error.reason == "STORE_FAILED" or INJECTED in str(error)


def run(address: str, number: int, stop: threading.Event) -> Counter:
    """Run random calls of one client. Return the number of calls by kind, and of errors by reason."""
    rng = np.random.default_rng(number)
    keeper, counts = Keeper(), Counter()
    works = (*WORK, keeper.kept, keeper.kept)
    with crout.connect(address, tenant_of(number), timeout=60) as client:
        while not stop.wait(rng.uniform(0, 2 * PAUSE)):
            work, dtype = works[rng.integers(len(works))], DTYPES[rng.integers(len(DTYPES))]
            try:
                work(client, rng, dtype)
                counts[work.__name__] += 1
            except crout.CroutError as error:
                if not is_expected(error):
                    raise
                counts[error.reason or error.code] += 1
        keeper.close()
    counts["lost"] = keeper.lost
    return counts


def inject(daemon: Daemon, stop: threading.Event) -> Counter:
    """Inject the faults in turn. Return their number."""
    for turn in itertools.count():
        if stop.wait(FAULT_INTERVAL):
            break
        daemon.fail(*FAULTS[turn % len(FAULTS)], INJECTED)
    return Counter(faults=turn)


def growth(samples: list[tuple[float, float]]) -> float | None:
    """Return the growth of resident memory as a share; None after a short run. Samples: seconds, bytes."""
    end = samples[-1][0]
    if end < FLAT_AFTER + 2 * WINDOW:
        return None
    early = [size for at, size in samples if FLAT_AFTER <= at <= FLAT_AFTER + WINDOW]
    late = [size for at, size in samples if at >= end - WINDOW]
    return statistics.median(late) / statistics.median(early) - 1


def factors_left(daemon: Daemon) -> int:
    """Print the factors of all tenants. Return their number."""
    left = 0
    for number in range(TENANTS):
        with crout.connect(daemon.address, tenant_of(number)) as client:
            for f in client.list():
                print(f"left to {tenant_of(number)}:", f.record)
                left += 1
    return left


def soak(daemon: Daemon, clients: int, seconds: float) -> dict:
    """Run all clients for `seconds`. A failed check or call ends the run with its exception."""
    stop = threading.Event()
    samples = []
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients + 1) as pool:
        calls = [pool.submit(run, daemon.address, number, stop) for number in range(clients)]
        calls.append(pool.submit(inject, daemon, stop))
        done = set()
        while not done and (passed := time.monotonic() - begin) < seconds:
            samples.append((passed, daemon.resident_bytes()))
            wait = min(SAMPLE_INTERVAL, seconds - passed)
            done, _ = concurrent.futures.wait(calls, wait, concurrent.futures.FIRST_COMPLETED)
        stop.set()
    counts = sum((call.result() for call in calls), Counter())
    found = {"clients": clients, "tenants": TENANTS, "seconds": seconds, **counts}
    stored = daemon.metrics("crout_store_transferred_bytes_total")
    found |= {"stored_mib": sum(stored.values()) / 2**20, "resident_mib": samples[-1][1] / 2**20}
    for minutes in (10, 20, 30, 40, 50):
        if sizes := [size for at, size in samples if at >= 60 * minutes]:
            found[f"resident_mib_{minutes}_min"] = sizes[0] / 2**20
    return found | {"growth": growth(samples), "factors_left": factors_left(daemon)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("croutd_test")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--result", help="file of the result, a JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        quotas = Path(directory, "quotas.toml")
        quotas.write_text(QUOTAS)
        quotas.chmod(0o600)
        flags = (*FLAGS, f"--quotas={quotas}", f"--store={directory}/store")
        daemon = Daemon(arguments.croutd_test, Path(directory), *flags)
        try:
            with crout.connect(daemon.address) as client:
                result = head("soak", client)
            found = soak(daemon, arguments.clients, arguments.seconds)
        finally:
            daemon.stop()
    print(found)
    if arguments.result:
        keep({**result, "soak": [found]}, arguments.result)
    assert found["factors_left"] == 0, "factors are left"
    assert found["growth"] is None or found["growth"] <= GROWTH, "the daemon's memory grew"
    print("every answer passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
