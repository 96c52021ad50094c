#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Selects the test programs that run under sanitizers: at most half of all.

usage: sanitized_programs.py < PROGRAMS > SELECTED      one name a line

Programs of changed folders come before others: a third of the others fills the rest. The changed files are those in
commits of the 24 hours before HEAD. The choice rotates with the number of commits. `deploy/test.sh --long` runs all.
"""

import re
import sys

from history import day_before_head, git

PARTS = 3

# (pattern of changed paths, pattern of test programs). All rows that match a changed path add their programs.
COVERAGE = [
    (r"(cmake/|CMake|proto/|tests/CMakeLists|tests/support/|deploy/packages)", r""),
    (r"(tests/)?kernels/([^/]*$|(util|memory|costs)/)", r"kernels_|server_"),
    (r"(tests/)?kernels/(jobs|numerics)/", r"kernels_|rpc_"),
    (r"(tests/)?kernels/io/", r"kernels_(io|counted|refused)"),
    (r"(tests/)?kernels/icm/|kernels/(host|cuda)/icm/", r"kernels_iterative|published_icm"),
    (r"(tests/)?kernels/(sparse|klu|multifrontal|(host|cuda)/(klu|multifrontal))/", r"kernels_sparse|rpc_sparse|front|children|traversal"),
    (r"(tests/)?kernels/((host|cuda)/)?irr_lu/", r"kernels_batch|rpc_batch|irr_"),
    (r"kernels/(host|cuda)/|tests/kernels/(block_lu|crout|gauss_jordan|getrf|solve|device)/", r"kernels_(dense|complex|batch|series)|emulation"),
    (r"tests/emulation/", r"emulation|traversal"),
    (r"(tests/)?server/engine/", r"server_|rpc_calls|rpc_memory"),
    (r"(tests/)?server/(auth|net|observability|s3)/", r"server_|rpc_parts"),
    (r"(tests/)?server/(replicas/|folder_watch)", r"server_(store|refused)|rpc_calls"),
    (r"(tests/)?server/", r"rpc_"),
    (r"client/cpp/|client/c/|tests/client/", r"client_"),
]


def changed_files():
    return set(git("log", f"--since={day_before_head()}", "--name-only", "--format=").split("\n")) - {""}


def select(programs, files, commits):
    """Returns programs that cover `files`, then every third of the others, at most half of all, in the given order."""
    covered = {
        program
        for path, pattern in COVERAGE
        if any(re.match(path, name) for name in files)
        for program in programs
        if re.search(pattern, program)
    }
    limit = (len(programs) + 1) // 2
    chosen = rotated([program for program in programs if program in covered], commits)
    chosen += [program for program in programs if program not in covered][commits % PARTS :: PARTS]
    selected = set(chosen[:limit])
    return [program for program in programs if program in selected]


def rotated(programs, commits):
    """Returns the programs from another start with each commit."""
    start = commits * (len(programs) // 2 + 1) % len(programs) if programs else 0
    return programs[start:] + programs[:start]


if __name__ == "__main__":
    commits = int(git("rev-list", "--count", "HEAD"))
    print("\n".join(select(sys.stdin.read().split(), changed_files(), commits)))
