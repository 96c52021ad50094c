#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cache misses of LU methods without pivoting by simulation.

usage: cache_misses.py CROUT_BENCH [N] > result.json

Follows M. Rodrigues and S. Estêvão, LU Factorization (Porto 2023), figures 6 and 7. Their counts are from
`perf`, whose counters are missing on virtual machines. This script uses valgrind's cachegrind on one core, with
the cache sizes of their processor, an Intel Core i7-9750H: 32 KiB and 12 MiB. The misses of one factorization
are the difference between runs with different numbers of repetitions. Valgrind does not support AVX-512, so
OpenBLAS runs without it.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from report import results

CASES = [("lu_loop", 0), ("gem", 0), ("block_lu", 64), ("block_lu", 128), ("block_lu", 256)]
FEW, MANY = 1, 3
TOTALS = {"instructions": "I   refs", "l1_misses": "D1  misses", "last_level_misses": "LLd misses"}


def simulate(bench, n, algorithm, block, repetitions):
    """Returns {key of TOTALS: count} of a whole run, and the result of crout-bench."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
                   "--D1=32768,8,64", "--LL=12582912,12,64", bench,
                   f"--generate=dominant:{n}", f"--algorithms={algorithm}", f"--block-size={block}",
                   f"--repetitions={repetitions}", "--case-seconds=1e9", "--accuracy-limit=0", "--pattern-cells=0",
                   "--threads=1", "-o", result.name]
        environment = dict(os.environ, OPENBLAS_CORETYPE="Haswell", OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        head = json.load(result)
    counts = {}
    for key, words in TOTALS.items():
        counts[key] = int(re.search(rf"{words}:\s+([\d,]+)", done.stderr).group(1).replace(",", ""))
    if "error" in head["cases"][0]:
        sys.exit(head["cases"][0]["error"])
    return counts, head


def main(bench, n="512"):
    rows = []
    for algorithm, block in CASES:
        few, head = simulate(bench, n, algorithm, block, FEW)
        many, _ = simulate(bench, n, algorithm, block, MANY)
        row = {"n": int(n), "method": algorithm, "block": block or None}
        # If all data fits into a cache, the counts of the two runs differ only by chance, and the difference
        # can be negative.
        rows.append({**row, **{key: max(0, (many[key] - few[key]) // (MANY - FEW)) for key in TOTALS}})
        print(rows[-1], file=sys.stderr)
    result = {"benchmark": "cache_misses"}
    result.update({key: head[key] for key in ("device", "version", "commit", "date")})
    sys.stdout.write(results.text({**result, "cache_misses": rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
