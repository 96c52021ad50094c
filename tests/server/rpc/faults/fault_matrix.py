#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of faults, and prints or writes the page docs/operations/faults.md.

usage: fault_matrix.py BUILD [--write | --check]

BUILD is the build directory of the preset ci. Exit status: 0 if all tests passed and, without --write, the page is
what they give. --check, for CTest, runs no tests: it reads the results of rpc_fault_test in CTest and counts the other
tests, which CTest runs.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs/operations/faults.md"
MATRIX = "rpc_fault_test"
SHARDS = 2  # equals SHARDS in tests/server/CMakeLists.txt

# The title of each phase, and what a call without the phase does not do.
PHASES = {
    "Admission": ("waiting for memory", "it has no task that reserves memory (`scheduler.task`)"),
    "AfterHeader": ("after the header", "it has no payload"),
    "MidUpload": ("during the upload", "it has no payload"),
    "StagingFull": ("waiting for staging memory", "it uses no staging memory"),
    "Analysis": ("analysis", "it parses no text and analyzes no pattern (`upload.parse`, `sparse.analyze`)"),
    "Queued": ("queued", "it has no job (`scheduler.job`)"),
    "Running": ("running", "it has no job (`scheduler.job`)"),
    "Storing": ("storing", "it writes no file (`store.create`)"),
    "Reply": ("reply unread", ""),
}
FAULTS = {
    "Cancel": "The client cancels",
    "Deadline": "The deadline passes",
    "Disconnect": "The connection breaks",
    "SlowSender": "The client sends too slowly",
    "SlowReader": "The client does not read",
    "Identity": "The client's token is withdrawn",
    "ServerStops": "The drain limit ends",
    "Drain": "The server drains",
    "DeviceLost": "The device fails",
    "ClockJump": "The clock jumps by 10 minutes",
    "DiskFull": "The disk is full",
    "DiskError": "The disk fails",
    "Allocation": "Allocations of pooled memory fail",
    "Thread": "No thread can be started",
}
# Faults that other tests cause: the fault, the required result, the programs, and the filter of their tests.
OTHERS = [
    (
        "The caller is unknown, or its token is withdrawn",
        "UNAUTHENTICATED or PERMISSION_DENIED before the payload is read; open calls end within a second",
        "rpc_calls_test",
        "IdentityTest.*",
    ),
    (
        "The client sends too slowly, or pauses",
        "DEADLINE_EXCEEDED (UPLOAD_SLOW, UPLOAD_IDLE)",
        "rpc_calls_test",
        "RpcLoadTest.*Upload*",
    ),
    (
        "The client does not read",
        "The call is cancelled, and its memory is freed",
        "rpc_calls_test:rpc_series_test",
        "UnaryTest.AnUnread*:ReplyTest.*:UnreadSeriesTest.*",
    ),
    (
        "An allocation fails",
        "RESOURCE_EXHAUSTED for the call that needed the memory",
        "rpc_memory_test:server_refused_memory_test",
        "*",
    ),
    (
        "A thread cannot be started",
        "The start fails with a message that names the limit",
        "server_scheduling_test:e2e_daemon_test",
        "FewThreadsTest.*:StartTest.WithTooFew*",
    ),
    (
        "A bit of a factor in host memory flips",
        "DATA_LOSS, and the factor is dropped",
        "server_cache_test:rpc_calls_test",
        "*Corrupt*",
    ),
    (
        "The client is killed or loses its connection",
        "Its calls end and release everything; its factors stay",
        "e2e_clients_test",
        "LostClientTest.*",
    ),
    (
        "The daemon is killed (`kill -9`) at any step of a write",
        "Acknowledged durable factors survive; no torn factor is served",
        "e2e_daemon_test",
        "StoreTest.Kill*:StoreTest.ARequestId*:StoreTest.ASeries*:StoreTest.FactorsOnADevice*",
    ),
    (
        "The disk, or the store's budget, is full",
        "UNAVAILABLE (STORE_FAILED) or RESOURCE_EXHAUSTED (STORE_FULL) for durable factors only",
        "server_store_test:server_cache_test",
        "*.RefusesFactorsAboveTheBudget/*:*.AFailingDisk*:*.AFullStore*",
    ),
    (
        "The disk fails to write or read",
        "UNAVAILABLE (STORE_FAILED) for durable factors; a later try succeeds",
        "server_store_test:server_cache_test:e2e_daemon_test",
        "*.AFailedWrite*:*.TriesAgain*:*.KeepsFilesThatItCannotReadNow*:*.SeparatesFailedReads*:*.AFailedRead*:StoreTest.AFailingDisk*",
    ),
    (
        "A bit of a stored factor flips",
        "DATA_LOSS; the file is quarantined and counted",
        "server_store_test:server_cache_test",
        "*FlippedBit*:*.Quarantines*:*.ADamagedFile*",
    ),
    (
        "A certificate is replaced",
        "New connections get the new certificate; open ones continue",
        "e2e_identity_test",
        "TlsTest.NewConnections*:TlsTest.ADirectory*:PagesTlsTest.New*",
    ),
    (
        "SIGTERM with calls in flight",
        "Calls finish within the limit; others end with UNAVAILABLE (DRAINING)",
        "e2e_daemon_test",
        "DrainTest.*",
    ),
    ("The last device fails", "The daemon drains and exits with status 1", "e2e_daemon_test", "LostDeviceTest.*"),
    (
        "A factorization stands still",
        "The job is reported, and ended after `--stalled-job-timeout`",
        "rpc_calls_test",
        "OverdueJobTest.*",
    ),
    (
        "A process of a group is lost",
        "UNAVAILABLE (GROUP_LOST); the group forms again, and its factors stay",
        "server_groups_test",
        "GroupLossTest.*",
    ),
]


def program_of(build: pathlib.Path, program: str) -> pathlib.Path:
    return next(path for path in build.glob(f"tests/**/{program}") if path.is_file())


def tests_in(results: pathlib.Path) -> list[dict]:
    suites = json.loads(results.read_text())["testsuites"]
    tests = [test for suite in suites for test in suite["testsuite"] if test["status"] == "RUN"]
    assert not any("failures" in test for test in tests), results
    return tests


def run(build: pathlib.Path, program: str, pattern: str, shards: int = 1) -> list[dict]:
    """Run the tests of a program. Return their results. Raises CalledProcessError if one failed."""
    path = program_of(build, program)
    with tempfile.TemporaryDirectory() as directory:
        outputs = [pathlib.Path(directory, f"{shard}.json") for shard in range(shards)]
        command = [str(path), f"--gtest_filter={pattern}", "--gtest_brief=1"]
        processes = [
            subprocess.Popen(
                [*command, f"--gtest_output=json:{output}"],
                stdout=sys.stderr,
                cwd=path.parent,
                env={**os.environ, "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)},
            )
            for shard, output in enumerate(outputs)
        ]
        for process in processes:
            if process.wait() != 0:
                raise subprocess.CalledProcessError(process.returncode, command)
        return [test for output in outputs for test in tests_in(output)]


def count(build: pathlib.Path, program: str, pattern: str) -> int:
    """Return the number of tests of a program, without running them."""
    command = [program_of(build, program), f"--gtest_filter={pattern}", "--gtest_list_tests"]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return sum(line.startswith("  ") for line in listed.splitlines())


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def matrix(tests: list[dict]) -> str:
    cells = collections.defaultdict(set)
    for test in tests:
        for fault in FAULTS:
            if fault in test:
                cells[fault, test["phase"]].add(test[fault])
    rows = []
    for fault, text in FAULTS.items():
        outcomes = [sorted(cells[fault, phase]) for phase in PHASES]
        assert any(outcomes), fault
        rows.append([text, *("; ".join(each) or "-" for each in outcomes)])
    return table(["fault", *(title for title, _ in PHASES.values())], rows)


def phases(tests: list[dict]) -> str:
    rows = [[test["call"], *("yes" if int(test[phase]) else "-" for phase in PHASES)] for test in tests]
    absent = [
        f"- {title}: {why}."
        for phase, (title, why) in PHASES.items()
        if not all(int(test[phase]) for test in tests)
    ]
    head = ["call", *(title for title, _ in PHASES.values())]
    return table(head, rows) + "\n\nA call lacks a phase (-) because a run without faults shows:\n\n" + "\n".join(absent)


def page(build: pathlib.Path, check: bool) -> str:
    if check:
        tests = [test for i in range(SHARDS) for test in tests_in(build / f"tests/server/faults.{i}.json")]
    else:
        tests = run(build, MATRIX, "*", SHARDS)
    combined = [test for test in tests if "phase" in test]
    observed = sorted((test for test in tests if "call" in test and "phase" not in test), key=lambda test: test["call"])
    combinations = sum(fault in test for test in combined for fault in FAULTS)
    others = []
    for text, result, programs, pattern in OTHERS:
        number = sum(
            count(build, program, pattern) if check else len(run(build, program, pattern))
            for program in programs.split(":")
        )
        assert number > 0, pattern
        others.append([text, result, str(number)])
    return f"""# Faults

For operators and for authors of clients: the status that a client gets when something fails. The tables are results of
tests. `tests/server/rpc/faults/fault_matrix.py build/ci --write` runs the tests and writes this page.

For example, a client that cancels a queued factorization gets CANCELLED, and the job never starts.

## Each call in each phase

Tests cause each fault below in each phase of {len(observed)} kinds of calls, {combinations} combinations. A cell lists the
outcomes that the tests permit; a semicolon separates the outcomes of different calls. Each test also requires that

- the call holds neither memory nor a place in the queue afterwards,
- a call that another client begins during the fault succeeds, unless its own allocations fail or the server drains,
- a call of another client that is open during the fault gets its answer, unless the fault also ends that call (a drain
  limit, a change of the clock) or takes its memory,
- two durable factors of another client, one on each device, give the same solutions afterwards.

{matrix(combined)}

A cell has - where the fault cannot occur: a slow sender needs a phase in which the server waits for bytes, a slow reader
needs a reply, and gRPC takes a reply at once if the client has a connection.

Only calls that store a factor fail with the disk. Calls start no threads. A server that drains finishes open calls and
refuses new ones with UNAVAILABLE (DRAINING). A clock that jumps ends transfers, because the client seems to pause, and
writes to the store, which seem to take too long. It ends no job.

## The phases of each call

{phases(observed)}

## Other faults

{table(["fault", "result", "tests"], others)}
"""


def main() -> int:
    build, *options = sys.argv[1:]
    text = page(pathlib.Path(build).resolve(), "--check" in options)
    if "--write" in options:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    print(f"{PAGE} is not what the tests give: run {sys.argv[0]} {build} --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
