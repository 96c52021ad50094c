#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts lines of code and of comments in each part of the product at a commit. Blank lines, tests, documents and
generated files do not count.

usage: count_lines.py [COMMIT]     HEAD by default
"""

import collections
import re
import subprocess
import sys

PARTS = ("kernels", "server", "client", "proto", "deploy", "cmake")
SUFFIXES = (".h", ".c", ".cc", ".cu", ".cuh", ".py", ".proto", ".f90", ".sh", ".cmake", "CMakeLists.txt")
OUTSIDE = re.compile(r"/tests/|/bench/|/examples/|proto/(google|grpc)/")
HASH_COMMENTS = (".py", ".sh", ".cmake", "CMakeLists.txt")


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def is_comment(line, path):
    if path.endswith(HASH_COMMENTS):
        return line.startswith("#")
    return line.startswith("!" if path.endswith(".f90") else "//")


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for path in git("ls-tree", "-r", "--name-only", commit, *PARTS).splitlines():
        if not path.endswith(SUFFIXES) or OUTSIDE.search(path):
            continue
        lines = [line.strip() for line in git("show", f"{commit}:{path}").splitlines() if line.strip()]
        comments = sum(is_comment(line, path) for line in lines)
        for key in (path.partition("/")[0], "total"):
            for i, value in enumerate((1, len(lines) - comments, comments)):
                counts[key][i] += value
    print(f"{'part':10} {'files':>6} {'code':>8} {'comments':>9}")
    for part in (*PARTS, "total"):
        print(f"{part:10} {counts[part][0]:6} {counts[part][1]:8} {counts[part][2]:9}")


if __name__ == "__main__":
    main()
