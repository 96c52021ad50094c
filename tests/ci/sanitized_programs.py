#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Selects the test programs that run under sanitizers: those of changed folders and a third of the rest.

usage: sanitized_programs.py < PROGRAMS > SELECTED      one name a line

Files count as changed if a commit of the day before HEAD touched them. The third rotates with the number of commits.
"""

import re
import sys

from history import day_before_head, git

PARTS = 3

# (changed path, test programs that cover it): each row whose path matches adds its programs.
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
    (r"server/(cache|scheduling)/|tests/server/(cache|scheduling)", r"server_|rpc_calls|rpc_memory"),
    (r"server/(http|metrics|gpu|status|trace|identity|tls)/", r"server_|rpc_parts"),
    (r"(tests/)?server/", r"rpc_"),
    (r"client/cpp/|client/c/|tests/client/", r"client_"),
]


def changed_files():
    return set(git("log", f"--since={day_before_head()}", "--name-only", "--format=").split("\n")) - {""}


def select(programs, files, commits):
    """Returns the programs that cover `files`, and every third of the others, in the given order."""
    covered = {
        program
        for path, pattern in COVERAGE
        if any(re.match(path, name) for name in files)
        for program in programs
        if re.search(pattern, program)
    }
    rest = [program for program in programs if program not in covered]
    turn = set(rest[commits % PARTS :: PARTS])
    return [program for program in programs if program in covered or program in turn]


if __name__ == "__main__":
    commits = int(git("rev-list", "--count", "HEAD"))
    print("\n".join(select(sys.stdin.read().split(), changed_files(), commits)))
