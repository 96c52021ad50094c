# SPDX-License-Identifier: Apache-2.0
"""Measures the answered calls and the time of refusals at ten times the load that a server can answer.

usage: overload.py CROUTD CROUTCTL [--result=FILE] [--seconds=10] [--n=512] [--nrhs=4] [--workers=512]
                   [--server-cores=LIST] [--load-cores=LIST] [--server-flags=FLAGS]

`croutctl bench` sends solves with a cached factor. Its first runs find the capacity: the largest rate of
answered calls over several numbers of workers, each of which sends its next call when the last one has ended.
The last run then offers OVER times this rate on schedule. The number of workers exceeds the capacity of the
server's queue, so that calls are refused. croutctl does not time refusals: callers of this process do, PROBES
at a time.

By default the server has the first half of the cores, and all clients have the others. Refusals also take
time of the server's cores: the goals can be met only if a solve takes much longer than nine refusals.

The goals are GOODPUT of the capacity, and a 99th percentile of REFUSED_WITHIN seconds for refusals, which
must have the status RESOURCE_EXHAUSTED or UNAVAILABLE.

Exit status: 0 if both goals are met, 1 if one is missed or if the offered load was less than nine tenths of
OVER times the capacity.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from croutd import Server
from result import head, keep

import crout

OVER = 10
GOODPUT = 0.9
REFUSED_WITHIN = 0.05
CLOSED_LOOP = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of workers that find the capacity."""
LEAD = 3.0
"""Seconds from the start of a run to its window."""
PROBES = 4
PROBE_INTERVAL = 0.05
REFUSALS = ("RESOURCE_EXHAUSTED", "UNAVAILABLE")


class Load:
    """Runs croutctl bench on separate cores, at a low priority, so that it does not delay the probes."""

    def __init__(self, croutctl, server, n, nrhs, cores):
        self._server, self._cores = server, cores
        self._command = [
            croutctl,
            f"--server={server.address}",
            "--json",
            "bench",
            f"--n={n}",
            f"--nrhs={nrhs}",
        ]

    def run(self, workers, seconds, rate=0.0):
        """Return the row of a run: at a rate of calls on schedule, or with a call after another for 0.

        The server counts the calls of a window, while its queue is as long as this load makes it.
        """
        options = [f"--concurrency={workers}", f"--duration={LEAD + seconds}s", f"--rate={rate}"]
        process = subprocess.Popen(
            self._command + options, stdout=subprocess.PIPE, text=True, preexec_fn=self._prepare
        )
        time.sleep(LEAD)
        begin, before = time.perf_counter(), self._server_counts()
        time.sleep(seconds)
        elapsed = time.perf_counter() - begin
        calls, answered, refused, cpu = np.subtract(self._server_counts(), before)
        output, _ = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"croutctl bench: exit status {process.returncode}")
        [found] = json.loads(output)["results"]
        row = {"load": "scheduled" if rate else "closed loop", "workers": workers}
        row |= {"offered_per_second": calls / elapsed, "answered_per_second": answered / elapsed}
        row |= {"refused_per_second": refused / elapsed, "other_errors": int(calls - answered - refused)}
        row |= {"server_cpu_us": 1e6 * cpu / calls}
        return row | {"p50_ms": 1e3 * found["p50_seconds"], "p99_ms": 1e3 * found["p99_seconds"]}

    def _server_counts(self):
        """Return the calls, answered calls, refused calls and processor seconds of the server so far."""
        calls = Counter()
        for labels, count in self._server.metrics("crout_requests_total").items():
            calls[re.search(r'code="(\w+)"', labels)[1]] += count
        refused = sum(calls[status] for status in REFUSALS)
        cpu = self._server.metrics("process_cpu_seconds_total")[""]
        return np.array([sum(calls.values()), calls["OK"], refused, cpu])

    def _prepare(self):
        os.sched_setaffinity(0, self._cores)
        os.nice(10)


class Probes:
    """Callers that send solves at intervals and time the refusals, while a `with` block runs."""

    def __init__(self, address, n, nrhs):
        self.seconds = []
        """Of each refusal."""
        self.counts = Counter()
        self._address = address
        self._b = np.ones((n, nrhs))
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work) for _ in range(PROBES)]
        with crout.connect(address) as client:
            self._handle = client.lu_factor(np.eye(n)).handle

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self):
        once = crout.RetryPolicy(max_attempts=1)
        with crout.connect(self._address, timeout=60, retry=once) as client:
            factor = client.factor(self._handle)
            while not self._stop.wait(PROBE_INTERVAL):
                begin = time.perf_counter()
                try:
                    factor.solve(self._b)
                    self.counts["OK"] += 1
                except (crout.Overloaded, crout.Unavailable) as error:
                    self.seconds.append(time.perf_counter() - begin)
                    self.counts[error.code] += 1


def overload(server, croutctl, arguments, load_cores):
    """Return the rows of all runs, and whether the goals are met."""
    load = Load(croutctl, server, arguments.n, arguments.nrhs, load_cores)
    rows = [load.run(workers, arguments.seconds / 2) for workers in CLOSED_LOOP]
    capacity = max(row["answered_per_second"] for row in rows)
    with Probes(server.address, arguments.n, arguments.nrhs) as probes:
        row = load.run(arguments.workers, arguments.seconds, OVER * capacity)
    p50, p99 = np.quantile(probes.seconds, [0.5, 0.99]) if probes.seconds else (np.inf, np.inf)
    row |= {
        "of_capacity": row["answered_per_second"] / capacity,
        "offered_of_capacity": row["offered_per_second"] / capacity,
    }
    row |= {"timed_refusals": len(probes.seconds), "refusal_p50_ms": 1e3 * p50, "refusal_p99_ms": 1e3 * p99}
    met = row["of_capacity"] >= GOODPUT and p99 <= REFUSED_WITHIN and row["other_errors"] == 0
    return [*rows, row], met and row["offered_of_capacity"] >= 0.9 * OVER


def cores_of(text):
    return {int(core) for core in text.split(",")}


def main():
    cores = sorted(os.sched_getaffinity(0))
    half = (len(cores) + 1) // 2
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("croutd")
    parser.add_argument("croutctl")
    parser.add_argument("--result", help="file of the result, a JSON object")
    parser.add_argument("--seconds", type=float, default=10, help="length of the run with scheduled calls")
    parser.add_argument("--n", type=int, default=512, help="order of the matrix")
    parser.add_argument("--nrhs", type=int, default=4, help="columns of the right-hand side")
    parser.add_argument(
        "--workers", type=int, default=512, help="calls in flight of the run with scheduled calls"
    )
    parser.add_argument("--server-cores", type=cores_of, default=set(cores[:half]), help="such as 0,1")
    parser.add_argument("--load-cores", type=cores_of, default=set(cores[half:] or cores), help="such as 2,3")
    parser.add_argument("--server-flags", type=str.split, default=[], help="such as --queue-capacity=64")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, arguments.load_cores)
    with tempfile.TemporaryDirectory() as directory:
        flags = ("--log-calls=none", *arguments.server_flags)
        server = Server(arguments.croutd, Path(directory), *flags, cores=arguments.server_cores)
        try:
            with crout.connect(server.address) as client:
                result = head("overload", client)
            rows, met = overload(server, arguments.croutctl, arguments, arguments.load_cores)
        finally:
            server.stop()
    for row in rows:
        print(row, file=sys.stderr)
    result |= {
        "cores": len(arguments.server_cores),
        "machine_cores": len(cores),
        "flags": arguments.server_flags,
    }
    result["overload"] = [{"n": arguments.n, "nrhs": arguments.nrhs, **row} for row in rows]
    if arguments.result:
        keep(result, arguments.result)
    print("all goals are met" if met else "a goal is missed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
