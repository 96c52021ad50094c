# SPDX-License-Identifier: Apache-2.0
"""Records the calls of concurrent clients on shared factors, and checks them against the contract of handles.

usage: history.py CROUTD [SECONDS [SEED]]       60 seconds by default

Eight clients factor, refactor, solve, describe and release shared factors, while the server is killed and
started again. Half of the factors are durable. At the end the server is killed once more, and all factors are
solved with. `check` then requires of the recorded history:

- A solution is right for the matrix of the version that its reply names.
- A version of a handle is given to one matrix.
- A reply names no version older than one that was acknowledged, or seen, before the call began.
- A handle is missing only after a release began, or, unless it is durable, after the server was killed. A
  durable factor thus has the acknowledged version after a kill, or a newer one that was being written.
- Once a release was acknowledged, the handle stays missing. Only a kill within `UNDONE_RELEASE` seconds may
  undo the release of a durable factor, because its file is removed after the reply.

Exit status: 0 if the history passed.
"""

import dataclasses
import itertools
import math
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from daemon import Server

import crout

CLIENTS = 8
FACTORS = 6
"""Factors that live at the same time."""
ORDER = 12
TOLERANCE = 1e-12
"""Largest relative error of a solution. The matrices are diagonally dominant."""
UNDONE_RELEASE = 1.0
"""Longest time from the reply to a release until the file of a durable factor is removed."""


def matrix_of(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, (ORDER, ORDER)) + np.diag(rng.integers(60, 120, ORDER)).astype(float)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call on one handle. `begin` and `end` are seconds on one clock."""

    kind: str
    """factor, refactor, solve, describe or release"""
    begin: float
    end: float
    outcome: str
    """ok, missing (the server does not have the handle) or unknown (the connection failed)"""
    handle: str = ""
    version: int = 0
    seed: int = 0
    """Of the matrix, for factor and refactor."""
    durable: bool = False
    """For factor."""
    b: np.ndarray | None = None
    x: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Kill:
    begin: float
    end: float


class HistoryError(AssertionError):
    """The history violates the contract."""


def check(calls: list[Call], kills: list[Kill]) -> Counter:
    """Check a history. Return the number of calls by kind and outcome. Raises HistoryError."""
    handles = defaultdict(list)
    for call in calls:
        if call.outcome == "unknown" and not _overlaps(call, kills):
            raise HistoryError(f"the connection of {call} failed while the server ran")
        if call.handle:
            handles[call.handle].append(call)
    for of_handle in handles.values():
        _Handle(of_handle, kills).check()
    return Counter((call.kind, call.outcome) for call in calls)


def _overlaps(call: Call, kills: list[Kill]) -> bool:
    return any(kill.begin <= call.end and call.begin <= kill.end for kill in kills)


class _Handle:
    """The history of one handle."""

    def __init__(self, calls: list[Call], kills: list[Kill]) -> None:
        self._calls = sorted(calls, key=lambda call: call.begin)
        self._kills = kills
        self._writes: dict[int, Call] = {}
        """Acknowledged factorizations by version."""
        self._uncertain = [c for c in calls if c.kind == "refactor" and c.outcome == "unknown"]
        self._durable = any(call.durable for call in calls)

    def check(self) -> None:
        for call in self._calls:
            if call.kind in ("factor", "refactor") and call.outcome == "ok":
                if call.version in self._writes:
                    raise HistoryError(f"version {call.version} was given to two matrices: {call}")
                self._writes[call.version] = call
        self._check_order()
        self._check_missing()
        # A solution shows which uncertain refactorization made its version; a description does not.
        for kind in ("solve", "describe"):
            for call in self._calls:
                if call.outcome == "ok" and call.kind == kind:
                    self._check_version(call)

    def _check_order(self) -> None:
        """No call returns a version older than one that was returned before the call began."""
        ends = sorted((c for c in self._calls if c.version), key=lambda call: call.end)
        ended = 0
        newest = 0
        for call in self._calls:
            while ended < len(ends) and ends[ended].end < call.begin:
                newest = max(newest, ends[ended].version)
                ended += 1
            if call.version and call.version < newest:
                raise HistoryError(f"version {newest} was returned before {call} began")

    def _check_missing(self) -> None:
        releases = [c for c in self._calls if c.kind == "release" and c.outcome != "missing"]
        released = min(
            (c.end for c in releases if c.outcome == "ok" and not self._undone(c)), default=math.inf
        )
        begun = min((c.begin for c in releases), default=math.inf)
        born = min((c.end for c in self._calls if c.kind == "factor"), default=-math.inf)
        kills = [] if self._durable else self._kills
        killed = min((kill.begin for kill in kills if kill.end > born), default=math.inf)
        for call in self._calls:
            if call.outcome == "missing" and call.end < min(begun, killed):
                raise HistoryError(f"the factor of {call} was neither released nor lost")
            if call.outcome == "ok" and call.begin > released:
                raise HistoryError(f"{call} succeeded after the factor had been released")

    def _undone(self, release: Call) -> bool:
        """Return whether a kill may have undone the release."""
        return self._durable and any(
            release.begin < kill.end and kill.begin < release.end + UNDONE_RELEASE for kill in self._kills
        )

    def _check_version(self, call: Call) -> None:
        if call.version in self._writes:
            write = self._writes[call.version]
        else:  # A refactorization whose reply was lost may have taken effect.
            write = next((w for w in self._uncertain if w.begin < call.end and _is_right(w, call)), None)
            if write is None:
                raise HistoryError(f"no factorization explains the version of {call}")
            self._uncertain.remove(write)
            self._writes[call.version] = write
        if write.begin > call.end:
            raise HistoryError(f"{call} names a version that was requested later")
        if not _is_right(write, call):
            raise HistoryError(f"the solution is not that of version {call.version}: {call}")


def _is_right(write: Call, call: Call) -> bool:
    """Return whether the solution is right for the matrix of `write`. A description has no solution."""
    if call.x is None:
        return True
    exact = np.linalg.solve(matrix_of(write.seed), call.b)
    return bool(np.abs(call.x - exact).max() <= TOLERANCE * max(np.abs(exact).max(), 1e-300))


class Recorder:
    """Runs random calls of one client after another's, on factors that all clients share."""

    def __init__(self, address: str, seed: int) -> None:
        self.calls: list[Call] = []
        self._address = address
        self._seed = seed
        self._matrices = itertools.count(1000 * seed + 1)
        self._handles: list[str] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._errors: list[BaseException] = []

    def run(self, seconds: float, disturb) -> None:
        """Run the clients, and call `disturb` every few seconds."""
        threads = [threading.Thread(target=self._client, args=(i,)) for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        rng = np.random.default_rng(self._seed)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._errors:
            time.sleep(min(rng.uniform(0.5, 4), max(end - time.monotonic(), 0)))
            disturb()
        self._stop.set()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def solve_with_all(self) -> None:
        """Solve with each factor that was not released."""
        rng = np.random.default_rng(self._seed)
        with crout.connect(self._address) as client:
            for handle in list(self._handles):
                self._call("solve", handle, client, rng)

    def _client(self, index: int) -> None:
        try:
            rng = np.random.default_rng([self._seed, index])
            with crout.connect(self._address) as client:
                while not self._stop.is_set():
                    self._one_call(client, rng)
        except BaseException as error:
            self._errors.append(error)

    def _one_call(self, client, rng) -> None:
        with self._lock:
            handle = str(rng.choice(self._handles)) if self._handles else ""
            wanted = len(self._handles) < FACTORS and rng.random() < 0.2
        if wanted or not handle:
            return self._call("factor", "", client, rng)
        kind = rng.choice(["solve", "refactor", "describe", "release"], p=[0.7, 0.15, 0.12, 0.03])
        return self._call(str(kind), handle, client, rng)

    def _call(self, kind: str, handle: str, client, rng) -> None:
        seed = next(self._matrices)
        b = rng.integers(-9, 10, ORDER).astype(float)
        begin = time.monotonic()
        values = {}
        try:
            if kind == "factor":
                f = client.lu_factor(matrix_of(seed), durable=seed % 2 == 0)
                handle, values = f.handle, {"version": f.version, "durable": f.record.durable}
            elif kind == "refactor":
                values = {"version": client.factor(handle).refactor(matrix_of(seed)).version}
            elif kind == "solve":
                solution = client.factor(handle).solve(b, full_output=True)
                values = {"version": solution.factor_version, "b": b, "x": solution.x}
            elif kind == "describe":
                values = {"version": client.factor(handle).describe().version}
            else:
                client.factor(handle).release()
            outcome = "ok"
        except crout.HandleExpired:
            outcome = "missing"
        except crout.Unavailable:
            outcome = "unknown"
        call = Call(kind, begin, time.monotonic(), outcome, handle, seed=seed, **values)
        with self._lock:
            self.calls.append(call)
            if kind == "factor" and outcome == "ok":
                self._handles.append(handle)
            elif (outcome == "missing" or kind == "release") and handle in self._handles:
                self._handles.remove(handle)


def run(program: str, seconds: float, seed: int) -> Counter:
    """Run the clients and the kills, and check the history. Return what `check` returns."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(
            program, Path(directory), f"--store={directory}/store", listen=f"unix:{directory}/socket"
        )
        kills: list[Kill] = []
        try:
            recorder = Recorder(server.address, seed)
            recorder.run(seconds, lambda: kills.append(Kill(*server.kill_and_start())))
            kills.append(Kill(*server.kill_and_start()))
            recorder.solve_with_all()
        finally:
            server.stop()
        return check(recorder.calls, kills)


if __name__ == "__main__":
    for (kind, outcome), count in sorted(
        run(
            sys.argv[1],
            float(sys.argv[2]) if len(sys.argv) > 2 else 60,
            int(sys.argv[3]) if len(sys.argv) > 3 else 1,
        ).items()
    ):
        print(f"{count:7d}  {kind}: {outcome}")
