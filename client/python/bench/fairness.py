# SPDX-License-Identifier: Apache-2.0
"""Measures what the flood of one tenant does to the calls and the factors of another tenant.

usage: fairness.py CROUTD [--result=FILE] [--seconds=30] [--floods=NAME,NAME...]

The tenant "steady" solves with 100 cached factors of order 100, and factors and solves systems of orders 100
and 300, one call after another. It repeats a refused call after the server's delay; its latency includes the
delay. The tenant "flood" runs one of FLOODS: factors that fill the memory, small systems, or large sparse
matrices. Each flood has its own server, on which the steady tenant is measured alone first, and then
beside the flood.

The clients of the flood run at a low priority, because in practice they have other machines.

The goals are that no factor of the steady tenant is lost, and that the 99th percentile of each of its calls
is at most SLACK times the sum of

- the median of the call without the flood, times the number of active tenants, and
- the longest job of either tenant during the flood.

Exit status: 0 if all goals are met, 1 if one is missed.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from croutd import Server
from result import head, keep

import crout

TENANTS = 2
SLACK = 1.5
FACTORS = 100
FLAGS = ("--host-budget=512MiB", "--log-calls=none")
ONCE = crout.RetryPolicy(max_attempts=1)
PAUSE = 0.02
"""Seconds between a refused call of a flood and its next call."""
JOB = ("analyze", "host_to_device", "factor", "solve", "refine", "device_to_host")
"""Phases that occupy the device."""
SPARSE_ORDER = 400_000


def dense(n):
    return np.random.default_rng(n).standard_normal((n, n)) + n * np.eye(n)


def tridiagonal(n):
    return sp.diags([np.full(n - 1, -1.5), np.full(n, 4.0), np.full(n - 1, -1.0)], [-1, 0, 1], format="csr")


@dataclass(frozen=True)
class Flood:
    callers: int
    matrix: Callable
    call: Callable
    """Takes the client and the matrix. Returns the timings of the job."""


def cache(client, A):
    return client.lu_factor(A).record.timings


def solve_once(client, A):
    return client.solve(A, np.ones(A.shape[0]), full_output=True).timings


FLOODS = {
    "factors of order 1000": Flood(32, lambda: dense(1000), cache),
    "factors of order 400": Flood(100, lambda: dense(400), cache),
    "systems of order 60": Flood(32, lambda: dense(60), solve_once),
    "large sparse factors": Flood(8, lambda: tridiagonal(SPARSE_ORDER), cache),
}
PROCESSES = 2


def job_seconds(timings):
    return sum(timings.get(phase, 0) for phase in JOB)


class Callers:
    """The callers of one process of a flood. Counts the answers by status."""

    def __init__(self, address, flood, callers, answered, stop):
        self.counts = Counter()
        self.longest = 0.0
        self._address, self._flood, self._answered, self._stop = address, flood, answered, stop
        self._A = flood.matrix()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(callers)]

    def run(self):
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()

    def _work(self):
        with crout.connect(self._address, "flood", timeout=60, retry=ONCE) as client:
            while not self._stop.is_set():
                status, seconds = "OK", 0.0
                try:
                    seconds = job_seconds(self._flood.call(client, self._A))
                except crout.CroutError as error:
                    status = error.code
                    self._stop.wait(PAUSE)
                with self._lock:
                    self.counts[status] += 1
                    self.longest = max(self.longest, seconds)
                if status == "OK":
                    self._answered.set()


def flood_process(address, name, callers, answered, stop, results):
    os.nice(10)
    some = Callers(address, FLOODS[name], callers, answered, stop)
    some.run()
    results.put((some.counts, some.longest))


class RunningFlood:
    """A flood in separate processes. It has begun when each process has had an answer."""

    def __init__(self, address, name):
        spawn = multiprocessing.get_context("spawn")
        self._stop, self._results = spawn.Event(), spawn.Queue()
        self._processes = []
        answered = []
        for _ in range(PROCESSES):
            answered.append(spawn.Event())
            arguments = (
                address,
                name,
                FLOODS[name].callers // PROCESSES,
                answered[-1],
                self._stop,
                self._results,
            )
            self._processes.append(spawn.Process(target=flood_process, args=arguments, daemon=True))
            self._processes[-1].start()
        if not all(one.wait(120) for one in answered):
            raise RuntimeError(f"no call of the flood of {name} succeeded")

    def end(self):
        """Return the number of answers by status, and the seconds of the longest job."""
        self._stop.set()
        counts, longest = Counter(), 0.0
        for _ in self._processes:
            some, seconds = self._results.get()
            counts += some
            longest = max(longest, seconds)
        for process in self._processes:
            process.join()
        return counts, longest


class Steady:
    """The tenant whose calls are measured."""

    def __init__(self, address):
        self.client = crout.connect(address, "steady", timeout=60, retry=ONCE)
        A, b = dense(100), np.ones(100)
        A300, b300 = dense(300), np.ones(300)
        self._factors = [self.client.lu_factor(A) for _ in range(FACTORS)]
        self._next = 0
        self.calls = {
            "solve, n = 100": lambda: self._factor().solve(b, full_output=True),
            "factor and solve, n = 100": lambda: self.client.solve(A, b, full_output=True),
            "factor and solve, n = 300": lambda: self.client.solve(A300, b300, full_output=True),
        }

    def _factor(self):
        self._next += 1
        return self._factors[self._next % FACTORS]

    def factors_left(self):
        return sum(1 for _ in self.client.list())

    def measure(self, seconds):
        """Return the latencies of each call, the number of refusals and the seconds of the longest job."""
        latencies = {name: [] for name in self.calls}
        refused, longest = Counter(), 0.0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name, call in self.calls.items():
                begin = time.perf_counter()
                while True:
                    try:
                        timings = call().timings
                    except crout.Overloaded as error:
                        refused[name] += 1
                        time.sleep(error.retry_delay or 0)
                        continue
                    except crout.HandleExpired:
                        break  # counted as lost
                    latencies[name].append(time.perf_counter() - begin)
                    longest = max(longest, job_seconds(timings))
                    break
        return latencies, refused, longest


def measure(program, name, seconds):
    """Return a row for each call of the steady tenant, and the server's part of the result's header."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(program, Path(directory), *FLAGS)
        try:
            steady = Steady(server.address)
            alone, _, _ = steady.measure(seconds / 2)
            flood = RunningFlood(server.address, name)
            beside, refused, own_job = steady.measure(seconds)
            answers, flood_job = flood.end()
            rows = []
            for call, latencies in beside.items():
                row = {"flood": name, "callers": FLOODS[name].callers, "call": call, "calls": len(latencies)}
                p50, p99 = np.quantile(latencies, [0.5, 0.99]) if latencies else (np.inf, np.inf)
                alone_p50, alone_p99 = np.quantile(alone[call], [0.5, 0.99])
                longest = max(own_job, flood_job)
                limit = SLACK * (TENANTS * alone_p50 + longest)
                row |= {"alone_p50_ms": 1e3 * alone_p50, "alone_p99_ms": 1e3 * alone_p99}
                row |= {"p50_ms": 1e3 * p50, "p99_ms": 1e3 * p99, "longest_job_ms": 1e3 * longest}
                row |= {"limit_ms": 1e3 * limit, "within_limit": bool(p99 <= limit)}
                row |= {"refused": refused[call], "factors_left": steady.factors_left()}
                row |= {"flood_answers": answers["OK"], "flood_refusals": answers.total() - answers["OK"]}
                rows.append(row)
            return rows, head("fairness", steady.client)
        finally:
            server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("croutd")
    parser.add_argument("--result", help="file of the result, a JSON object")
    parser.add_argument("--seconds", type=float, default=30, help="measured time beside each flood")
    parser.add_argument("--floods", default=",".join(FLOODS), help="names of the floods, separated by commas")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.floods.split(","):
        some, header = measure(arguments.croutd, name, arguments.seconds)
        rows += some
        for row in some:
            print(row, file=sys.stderr)
        if arguments.result:
            keep({**header, "fairness": rows}, arguments.result)
    met = all(row["within_limit"] and row["factors_left"] == FACTORS for row in rows)
    print("all goals are met" if met else "a goal is missed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
