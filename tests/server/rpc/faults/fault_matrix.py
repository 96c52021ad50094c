#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of faults, and prints or writes the page docs/operations/faults.md.

usage: fault_matrix.py BUILD [--write]

BUILD is the build directory of the preset ci. Exit status: 0 if all tests passed and, without --write, the page is
what they give.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs/operations/faults.md"

CODES = {
    0: "OK",
    1: "CANCELLED",
    4: "DEADLINE_EXCEEDED",
    8: "RESOURCE_EXHAUSTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
}
PHASES = {
    "AfterHeader": "after the header",
    "MidUpload": "during the upload",
    "StagingFull": "waiting for staging memory",
    "Queued": "queued",
    "Running": "running",
}
FAULTS = {
    "Cancel": "The client cancels",
    "Deadline": "The deadline passes",
    "ServerStops": "The server stops",
    "DeviceLost": "The device fails",
    "ClockJump": "The clock jumps by 10 minutes",
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


def run(build: pathlib.Path, program: str, pattern: str) -> list[dict]:
    """Run the tests of a program. Return their results. Raises CalledProcessError if one failed."""
    path = next(path for path in build.glob(f"tests/**/{program}") if path.is_file())
    with tempfile.NamedTemporaryFile(suffix=".json") as output:
        subprocess.run(
            [path, f"--gtest_filter={pattern}", f"--gtest_output=json:{output.name}", "--gtest_brief=1"],
            check=True,
            stdout=sys.stderr,
            cwd=path.parent,
        )
        suites = json.load(open(output.name))["testsuites"]
    return [test for suite in suites for test in suite["testsuite"] if test["status"] == "RUN"]


def status_of(test: dict) -> str:
    code = CODES[int(test["status_code"])]
    return f"{code} ({test['reason']})" if test["reason"] not in ("", code) else code


def matrix(tests: list[dict]) -> str:
    cells = collections.defaultdict(set)
    for test in tests:
        cells[test["fault"], test["phase"]].add(status_of(test))
    lines = ["| fault | " + " | ".join(PHASES.values()) + " |", "| --- |" + " --- |" * len(PHASES)]
    for fault, text in FAULTS.items():
        row = [" or ".join(sorted(cells.get((fault, phase), {"not tested"}))) for phase in PHASES]
        lines.append(f"| {text} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def page(build: pathlib.Path) -> str:
    tests = run(build, "rpc_calls_test", "EveryPhase/FaultTest.*")
    calls = sorted({test["call"] for test in tests})
    others = ["| fault | result | tests |", "| --- | --- | ---: |"]
    for text, result, programs, pattern in OTHERS:
        count = sum(len(run(build, program, pattern)) for program in programs.split(":"))
        assert count > 0, pattern
        others.append(f"| {text} | {result} | {count} |")
    return f"""# Faults

For operators and for authors of clients: the status that a client gets when something fails. The tables are results of
tests. `tests/server/rpc/faults/fault_matrix.py build/ci --write` runs the tests and writes this page.

For example, a client that cancels a queued factorization gets CANCELLED, and the job never starts.

## Each call in each phase

{len(tests)} tests combine each phase and each fault below with {len(calls)} kinds of calls:
{", ".join(calls)}.

Each test requires the status in the table. Afterwards the call holds neither memory nor a place in the queue, and the
server answers another call with a factor that was cached before.

{matrix(tests)}

A clock that jumps ends transfers, because the client seems to pause. It ends no job.

## Other faults

{chr(10).join(others)}
"""


def main() -> int:
    text = page(pathlib.Path(sys.argv[1]).resolve())
    if "--write" in sys.argv[2:]:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    print(f"{PAGE} is not what the tests give: run {sys.argv[0]} {sys.argv[1]} --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
