# SPDX-License-Identifier: Apache-2.0
"""Records the calls of concurrent clients on shared factors, and checks them against the contract of handles.

usage: history.py CROUTD [SECONDS [SEED]]       60 seconds by default

Eight clients factor, refactor, solve, describe and release shared factors, while the server is killed and
started again. Half of the factors are durable. After the last outage all factors are solved with.
tests/e2e/deployment/replicas_history.py does the same with three replicas, which are killed, paused and
stopped in turn. `check` requires of the recorded history:

- A solution is right for the matrix of the version that its reply names.
- A version of a handle is given to one matrix.
- A reply names no version older than one that was acknowledged, or seen, before the call began.
- One server, the home of the factor, answers the calls on it. The home changes only if it had an outage: it
  was killed, stopped or paused. After a reply of the new home, the former one thus answers no new call.
- A handle is missing only after a release began, or, unless it is durable, after its home had an outage. A
  durable factor thus has the acknowledged version after an outage, or a newer one that was being written.
- Once a release was acknowledged, the handle stays missing. Only a kill or a pause within `UNDONE_RELEASE`
  seconds may undo the release of a durable factor, because its file is removed after the reply.
- A call without an answer overlaps an outage of a home of the factor. It may be a home that this client has
  not called yet. A call that makes a factor has no home yet.

A paused replica loses the factors that are not durable only for clients that call another replica meanwhile.
Decision 0070 requires no more: the adopter of a folder cannot distinguish a pause from a loss.

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
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from daemon import Server

import crout
from crout._replicas import METADATA, Replicas

CLIENTS = 8
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
    """ok, missing (the server does not have the handle) or unknown (no answer)"""
    handle: str = ""
    version: int = 0
    seed: int = 0
    """Of the matrix, for factor and refactor."""
    durable: bool = False
    """For factor."""
    home: str = ""
    """Name of the server that answered, or, without an answer, of the one that was asked; "" if unknown."""
    error: str = ""
    """Message of the error, without an answer."""
    b: np.ndarray | None = dataclasses.field(default=None, repr=False)
    x: np.ndarray | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class Outage:
    """Seconds from the end of a server to its return, on the clock of the calls."""

    begin: float
    end: float
    server: str = ""
    """Name of the server; "" for the only one."""
    kind: str = "kill"
    """kill, stop (by SIGTERM) or pause"""


class HistoryError(AssertionError):
    """The history violates the contract."""


def check(calls: list[Call], outages: list[Outage]) -> Counter:
    """Check a history. Return the number of calls by kind and outcome, and of moves to another home.

    Raises HistoryError.
    """
    handles = defaultdict(list)
    for call in calls:
        if call.handle:
            handles[call.handle].append(call)
    for call in calls:
        homes = {other.home for other in handles.get(call.handle, ()) if other.home}
        if call.outcome == "unknown" and not _may_fail(call, homes, outages):
            raise HistoryError(f"no answer while the server ran: {call}")
    moves = 0
    for of_handle in handles.values():
        handle = _Handle(of_handle, outages)
        try:
            handle.check()
        except HistoryError as error:
            calls_of_handle = "\n".join(
                f"  {call}" for call in sorted(of_handle, key=lambda call: call.begin)
            )
            raise HistoryError(f"{error}\nAll calls on the handle:\n{calls_of_handle}") from None
        moves += handle.moves
    return Counter((call.kind, call.outcome) for call in calls) + Counter({("home", "moved"): moves})


def _may_fail(call: Call, homes: set[str], outages: list[Outage]) -> bool:
    """Return whether the call overlaps an outage of one of the homes, or of any server if there is none."""
    return any(
        outage.begin <= call.end and call.begin <= outage.end and (not homes or outage.server in homes)
        for outage in outages
    )


class _Handle:
    """The history of one handle."""

    def __init__(self, calls: list[Call], outages: list[Outage]) -> None:
        self._calls = sorted(calls, key=lambda call: call.begin)
        self._outages = outages
        self._writes: dict[int, Call] = {}
        """Acknowledged factorizations by version."""
        self._uncertain = [c for c in calls if c.kind == "refactor" and c.outcome == "unknown"]
        self._durable = any(call.durable for call in calls)
        self.moves = 0
        """Changes of the home, after check()."""

    def check(self) -> None:
        for call in self._calls:
            if call.kind in ("factor", "refactor") and call.outcome == "ok":
                if call.version in self._writes:
                    raise HistoryError(f"version {call.version} was given to two matrices: {call}")
                self._writes[call.version] = call
        self._check_order()
        self._check_homes()
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

    def _check_homes(self) -> None:
        """The home changes only if it had an outage."""
        replies = [call for call in self._calls if call.outcome == "ok" and call.home]
        ends = sorted(replies, key=lambda call: call.end)
        self.moves = sum(a.home != b.home for a, b in itertools.pairwise(ends))
        ended = 0
        for call in replies:
            while ends[ended].end < call.begin:
                ended += 1
            last = ends[ended - 1] if ended else call
            if last.home != call.home and not self._lost(last.home, last.begin, call.end):
                raise HistoryError(f"{last.home} answered {last}, without an outage until {call}")

    def _lost(self, server: str, begin: float, end: float) -> bool:
        """Return whether the server had an outage in this time."""
        return any(o.server == server and o.begin < end and begin < o.end for o in self._outages)

    def _check_missing(self) -> None:
        releases = [c for c in self._calls if c.kind == "release" and c.outcome != "missing"]
        released = min(
            (c.end for c in releases if c.outcome == "ok" and not self._undone(c)), default=math.inf
        )
        begun = min((c.begin for c in releases), default=math.inf)
        for call in self._calls:
            if call.outcome == "missing" and call.end < begun and not self._lost_before(call.end):
                raise HistoryError(f"the factor of {call} was neither released nor lost")
            if call.outcome == "ok" and call.begin > released:
                raise HistoryError(f"{call} succeeded after the factor had been released")

    def _lost_before(self, end: float) -> bool:
        """Return whether the factor ended with its home before this time.

        The home may have had the outage between making the factor and the end of the call.
        """
        factor = next((c for c in self._calls if c.kind == "factor"), None)
        return not (factor is None or self._durable) and self._lost(factor.home, factor.begin, end)

    def _undone(self, release: Call) -> bool:
        """Return whether an outage may have undone the release."""
        end = release.end + UNDONE_RELEASE
        return self._durable and any(
            release.begin < o.end and o.begin < end for o in self._outages if o.kind != "stop"
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


class Servers(Protocol):
    """The servers of one address."""

    factors: int
    """Number of factors that live at the same time."""

    def connect(self) -> crout.Client: ...

    def disturb(self) -> Outage:
        """Make one server fail, and return once it serves again."""

    def stop(self) -> None: ...


class OneServer:
    """A server that is killed and started again."""

    factors = 6

    def __init__(self, program: str, directory: Path) -> None:
        listen = f"unix:{directory}/socket"
        self._server = Server(program, directory, f"--store={directory}/store", listen=listen)

    def connect(self) -> crout.Client:
        return crout.connect(self._server.address)

    def disturb(self) -> Outage:
        return Outage(*self._server.kill_and_start())

    def stop(self) -> None:
        self._server.stop()


class _Homes(Replicas):
    """The values of a client. `last` is the newest one that a reply had since it was cleared."""

    last = ""

    def learn(self, handle, trailers) -> None:
        super().learn(handle, trailers)
        self.last = dict(trailers or ()).get(METADATA, self.last)


class Recorder:
    """Runs random calls of one client after another's, on factors that all clients share."""

    def __init__(self, servers: Servers, seed: int) -> None:
        self.calls: list[Call] = []
        self.outages: list[Outage] = []
        self._servers = servers
        self._seed = seed
        self._matrices = itertools.count(1000 * seed + 1)
        self._handles: dict[str, list[tuple[str, str]]] = {}
        """With the metadata of the first reply. Clients share both."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._errors: list[BaseException] = []

    def run(self, seconds: float) -> None:
        """Run the clients and, every few seconds, an outage. The run ends with an outage."""
        threads = [threading.Thread(target=self._client, args=(i,)) for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        rng = np.random.default_rng(self._seed)
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and not self._errors:
                time.sleep(min(rng.uniform(0.5, 4), max(end - time.monotonic(), 0)))
                self._disturb()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            if self._errors:
                raise self._errors[0]

    def _disturb(self) -> None:
        outage = self._servers.disturb()
        self.outages.append(outage)
        print(f"{len(self.calls)} calls until the end of {outage}", flush=True)

    def solve_with_all(self) -> None:
        """Solve with each factor that was not released."""
        rng = np.random.default_rng(self._seed)
        with self._connect() as client:
            for handle in list(self._handles):
                self._call("solve", handle, client, rng)

    def _connect(self) -> crout.Client:
        client = self._servers.connect()
        client._transport.replicas = _Homes()
        return client

    def _client(self, index: int) -> None:
        try:
            rng = np.random.default_rng([self._seed, index])
            with self._connect() as client:
                while not self._stop.is_set():
                    self._one_call(client, rng)
        except BaseException as error:
            self._errors.append(error)

    def _one_call(self, client, rng) -> None:
        with self._lock:
            handle = str(rng.choice(list(self._handles))) if self._handles else ""
            wanted = len(self._handles) < self._servers.factors and rng.random() < 0.2
        if wanted or not handle:
            return self._call("factor", "", client, rng)
        kind = rng.choice(["solve", "refactor", "describe", "release"], p=[0.7, 0.15, 0.12, 0.03])
        return self._call(str(kind), handle, client, rng)

    def _call(self, kind: str, handle: str, client, rng) -> None:
        seed = next(self._matrices)
        b = rng.integers(-9, 10, ORDER).astype(float)
        homes = client._transport.replicas
        if not homes.metadata(handle):
            homes.learn(handle, self._handles.get(handle))
        homes.last = ""
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
        except (crout.Unavailable, crout.DeadlineExceeded) as error:
            outcome, values = "unknown", {"error": str(error)}
        end = time.monotonic()
        metadata = homes.metadata(handle)
        home = homes.last if outcome == "ok" else dict(metadata).get(METADATA, "")
        values["home"] = home.partition(".")[0]
        call = Call(kind, begin, end, outcome, handle, seed=seed, **values)
        with self._lock:
            self.calls.append(call)
            if kind == "factor" and outcome == "ok":
                self._handles[handle] = metadata
            elif outcome == "missing" or kind == "release":
                self._handles.pop(handle, None)


def run(servers: Servers, seconds: float, seed: int) -> Counter:
    """Run the clients and the outages, stop the servers, and check. Return what `check` returns."""
    recorder = Recorder(servers, seed)
    try:
        recorder.run(seconds)
        recorder.solve_with_all()
    finally:
        servers.stop()
    return check(recorder.calls, recorder.outages)


def main(serve: Callable[[str, Path], Servers]) -> Counter:
    """Run the command line with the servers that `serve(CROUTD, directory)` starts. Return the counts."""
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as directory:
        counts = run(serve(sys.argv[1], Path(directory)), seconds, seed)
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{count:7d}  {kind}: {outcome}")
    return counts


if __name__ == "__main__":
    main(OneServer)
