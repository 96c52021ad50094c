# SPDX-License-Identifier: Apache-2.0
"""Measures the store of factors: starts, writes of durable factors, and promotions from disk.

usage: store.py CROUTD [--result=FILE] [--directory=DIR] [--factors=10000] [--orders=1000,2000] [--rounds=9]

DIR must be on the disk to measure; a temporary folder within it is used. Three parts:

- starts: seconds from exec to ready without and with `--factors` stored factors of order SMALL. "cold" starts
  follow after the files were dropped from the page cache.
- writes: the additional time of a durable factorization, beside a file of as many bytes that this process
  writes and syncs in the same folder. A round measures a plain factorization, a durable one and a file, in
  this order.
- promotions: the additional time of the first solve with a stored factor after a restart, beside reading its
  file and copying as many bytes. Files are dropped from the page cache before both.

The goals are a start within START_SECONDS, WRITE_SHARE of the rate of the file, and promotions in PROMOTION
times the time of reading and copying. Times of writes and promotions are medians.

Exit status: 0 if all goals are met, 1 if one is missed.
"""

import argparse
import concurrent.futures
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from croutd import Server
from result import head, keep

import crout

START_SECONDS = 2.0
WRITE_SHARE = 0.8
PROMOTION = 1.3
SMALL = 32
STARTS = 5
CALLERS = 8
BLOCK = 1 << 20


def matrix(n):
    return np.random.default_rng(n).standard_normal((n, n)) + n * np.eye(n)


def seconds(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def drop_from_cache(paths):
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class Store:
    """A server with a store in a folder."""

    def __init__(self, program, folder):
        folder.mkdir()
        self.files = folder / "store" / "factors"
        self.server = Server(program, folder, f"--store={folder / 'store'}", "--log-calls=none")
        self.connect()

    def connect(self):
        self.client = crout.connect(self.server.address, timeout=120)

    def restart(self, cold):
        self.client.close()
        self.server.end()
        if cold:
            drop_from_cache(self.files.iterdir())
        self.server.start()
        self.connect()

    def path_of(self, factor):
        [path] = self.files.glob(f"{factor.handle}-*")
        return path

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.client.close()
        self.server.stop()


def starts(store, factors, cold):
    """Return the row of starts with this number of stored factors."""
    times = []
    for _ in range(STARTS):
        store.restart(cold)
        times.append(store.server.start_seconds)
        found = store.client.server_info().cached_factors
        if found != factors:
            raise RuntimeError(f"{found} of {factors} factors were found")
    return {
        "factors": factors,
        "page_cache": "cold" if cold else "warm",
        "starts": STARTS,
        "median_s": statistics.median(times),
        "max_s": max(times),
        "goal_s": START_SECONDS,
        "met": max(times) < START_SECONDS,
    }


def fill(store, factors):
    A = matrix(SMALL)
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        calls = pool.map(lambda _: store.client.lu_factor(A, durable=True), range(factors))
        taken, _ = seconds(lambda: list(calls))
    print(f"{factors} factors written in {taken:.0f} s", file=sys.stderr)


def write_and_sync(path, data):
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(data), BLOCK):
            file.write(data[start : start + BLOCK])
        os.fsync(file.fileno())


def writes(store, n, rounds):
    """Return the row of writes of factors of order n."""
    A = matrix(n)
    plain, durable, raw = [], [], []
    for turn in range(rounds + 1):
        first, f = seconds(lambda: store.client.lu_factor(A))
        f.release()
        second, f = seconds(lambda: store.client.lu_factor(A, durable=True))
        size = store.path_of(f).stat().st_size
        data = memoryview(np.random.default_rng(turn).bytes(size))
        third, _ = seconds(lambda data=data: write_and_sync(store.files.parent / "raw", data))
        (store.files.parent / "raw").unlink()
        f.release()
        if turn > 0:  # the first round warms up
            plain.append(first)
            durable.append(second)
            raw.append(third)
    extra = statistics.median(durable) - statistics.median(plain)
    file_s = statistics.median(raw)
    return {
        "n": n,
        "rounds": rounds,
        "file_mib": size / 2**20,
        "plain_ms": 1e3 * statistics.median(plain),
        "durable_ms": 1e3 * statistics.median(durable),
        "gb_per_s_written": size / extra / 1e9,
        "gb_per_s_of_disk": size / file_s / 1e9,
        "of_disk": file_s / extra,
        "goal": WRITE_SHARE,
        "met": file_s >= WRITE_SHARE * extra,
    }


def read_and_copy(path, memory, copy):
    """Return the seconds to read the file and to copy it."""
    size = path.stat().st_size

    def work():
        with path.open("rb", buffering=0) as file:
            done = 0
            while done < size:
                done += file.readinto(memory[done:size])
        copy[:size] = memory[:size]

    return seconds(work)[0]


def promotions(store, n, rounds):
    """Return the row of promotions of factors of order n."""
    A, b = matrix(n), np.ones(n)
    factors = [store.client.lu_factor(A, durable=True) for _ in range(rounds + 1)]
    handles = [f.handle for f in factors]
    paths = [store.path_of(f) for f in factors]
    store.restart(cold=True)
    memory = np.ones(max(path.stat().st_size for path in paths), np.uint8)
    copy = memory.copy()
    first, again, raw = [], [], []
    for handle, path in zip(handles, paths, strict=True):
        f = store.client.factor(handle)
        drop_from_cache([path])
        taken, solution = seconds(lambda f=f: f.solve(b, full_output=True))
        if not solution.promoted:
            raise RuntimeError("the factor was not promoted from the store")
        first.append(taken)
        again.append(seconds(lambda f=f: f.solve(b))[0])
        drop_from_cache([path])
        raw.append(read_and_copy(path, memory, copy))
        f.release()
    # The first of each warms up.
    first_s, again_s, raw_s = (statistics.median(times[1:]) for times in (first, again, raw))
    return {
        "n": n,
        "rounds": rounds,
        "file_mib": memory.size / 2**20,
        "first_solve_ms": 1e3 * first_s,
        "next_solve_ms": 1e3 * again_s,
        "read_and_copy_ms": 1e3 * raw_s,
        "promotion_over_read_and_copy": (first_s - again_s) / raw_s,
        "goal": PROMOTION,
        "met": first_s - again_s <= PROMOTION * raw_s,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("croutd")
    parser.add_argument("--result", help="file of the result, a JSON object")
    parser.add_argument(
        "--directory", help="folder on the disk to measure; by default the system's for temporary files"
    )
    parser.add_argument("--factors", type=int, default=10_000, help="stored factors for the measured starts")
    parser.add_argument("--orders", default="1000,2000", help="orders of written and promoted factors")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    orders = [int(n) for n in arguments.orders.split(",")]
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        with Store(arguments.croutd, Path(directory, "few")) as store:
            result = head("store", store.client)
            result["store_writes"] = [writes(store, n, arguments.rounds) for n in orders]
            result["store_promotions"] = [promotions(store, n, arguments.rounds) for n in orders]
        with Store(arguments.croutd, Path(directory, "many")) as store:
            result["store_starts"] = [starts(store, 0, cold=False)]
            fill(store, arguments.factors)
            result["store_starts"] += [starts(store, arguments.factors, cold) for cold in (False, True)]
    rows = [row for part in ("store_starts", "store_writes", "store_promotions") for row in result[part]]
    for row in rows:
        print(row, file=sys.stderr)
    if arguments.result:
        keep(result, arguments.result)
    met = all(row["met"] for row in rows)
    print("all goals are met" if met else "a goal is missed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
