#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the kept results, the later commits to the code that they measure, and the number of changed lines.

usage: stale.py

A changed line may leave all figures unchanged. The list shows which results to check, and to measure again first.
"""

import pathlib
import subprocess

from performance_doc import HERE, context, kind
from report import results

GPU = "kernels/cuda/"
# {benchmark: measured code}. The code is paths, or folders of the kernels of the result's device. For "crout", it
# depends on the methods in the result.
CODE = {
    "gpu_lu": [f"{GPU}crout_lu", f"{GPU}blocked"],
    "gpu_lu_profile": [f"{GPU}crout_lu", f"{GPU}blocked"],
    "gpu_out_of_core": [f"{GPU}crout_lu", f"{GPU}blocked"],
    "gpu_methods": [f"{GPU}crout", f"{GPU}block_lu", f"{GPU}gauss_jordan", f"{GPU}blocked", "kernels/jobs/schur*"],
    "gpu_stripes": [f"{GPU}gauss_jordan"],
    "gpu_iterative": [f"{GPU}icm"],
    "gpu_solve": [f"{GPU}solve"],
    "gpu_irr": [f"{GPU}irr_lu"],
    "gpu_irr_blocks": [f"{GPU}irr_lu"],
    "gpu_mixed": [f"{GPU}crout_lu", "kernels/numerics", "kernels/jobs/factorize_mixed*"],
    "gpu_series": ["kernels/jobs/series*", "kernels/numerics", "kernels/costs"],
    "host_series": ["kernels/jobs/series*", "kernels/numerics", "kernels/costs", "kernels/host/getrf"],
    "host_irr": ["kernels/host/irr_lu"],
    "cache_misses": ["kernels/host/block_lu", "kernels/host/getrf"],
    "gpu_sparse": [f"{GPU}multifrontal", f"{GPU}irr_lu", "kernels/sparse"],
    "host_sparse": ["kernels/host/multifrontal", "kernels/host/klu", "kernels/sparse"],
    "python_sparse": ["kernels/host/klu", "kernels/host/multifrontal", "kernels/sparse", "server/rpc", "server/engine"],
    "large_sparse": ["kernels/host/klu", "kernels/host/multifrontal", "kernels/sparse", "server/rpc", "server/engine"],
    "host_sparse_series": ["kernels/host/klu", "kernels/jobs/*sparse_factorize*", "kernels/jobs/series*"],
    "dynamic_batch": ["server/engine/batching/dynamic_batcher*", "kernels/jobs/*dynamic_batch*", "kernels/util/poll_pause.h"],
    "service": ["server/rpc", "server/engine"],
    "gpu_service": ["server/engine/scheduling", f"{GPU}device"],
    "tls": ["server/rpc", "server/engine", "server/auth"],
    "fairness": ["server/engine"],
    "overload": ["server/rpc", "server/engine"],
    "store": ["server/engine/store", "server/engine/cache"],
    "soak": ["kernels", "server"],
    "python": ["client/python/src", "server/rpc", "server/engine"],
    "bddc": ["client/python/examples/bddc.py", "irr_lu", "icm"],
    "mean_curvature": ["icm", "getrf", "multifrontal", "kernels/jobs/series*"],
    "matrix_market": ["kernels/io"],
    "gpu": ["tests/gpu"],
}


FOLDERS = {"pcm": "crout", "pcmpp": "crout", "cm": "crout", "cmpp": "crout", "gem": "crout", "icmpp": "icm", "getrf+getrs": "getrf"}


def paths(result):
    kernels = f"kernels/{'cuda' if context(result)[0].startswith('NVIDIA') else 'host'}"
    if kind(result) == "crout":
        methods = {case["algorithm"] for case in result["cases"]}
        found = sorted({FOLDERS.get(method, method) for method in methods} | {"solve"})
        # All solvers are in one folder, and the plain loops are in the benchmark.
        return [f"{kernels}/{folder}" for folder in found if (HERE.parents[1] / kernels / folder).is_dir()]
    return [path if "/" in path else f"{kernels}/{path}" for path in CODE[kind(result)]]


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=HERE.parents[1])


def since(result):
    """Returns (base commit, subjects of later commits to the measured code). The base is the result's commit or, if
    that is not in this repository, the last commit before the result's day.
    """
    commit = context(result)[1]
    if git("cat-file", "-e", commit).returncode != 0:
        commit = git("rev-list", "-1", f"--before={result['date'][:10]}T00:00:00Z", "HEAD").stdout.strip()
    done = git("log", "--format=%h %s", f"{commit}..HEAD", "--", *paths(result))
    done.check_returncode()
    return commit, done.stdout.splitlines()


def lines_of_code(commit, result):
    """Returns the number of lines added and removed since `commit`, without comments, includes and blank lines."""
    changed = git("diff", "-w", "--unified=0", f"{commit}..HEAD", "--", *paths(result)).stdout.splitlines()
    lines = [line[1:].strip() for line in changed if line[:1] in ("+", "-") and not line.startswith(("+++", "---"))]
    return sum(bool(line) and not line.startswith(("//", "#")) for line in lines)


def main():
    for path in sorted(pathlib.Path(HERE / "results").glob("*.json")):
        result = results.load(path)
        commit, found = since(result)
        lines = lines_of_code(commit, result) if found else 0
        if lines == 0:
            print(path.name, "up to date")
            continue
        print(path.name, f"{len(found)} commits since {commit[:7]}, {lines} lines of code")
        for line in found[:3]:
            print("   ", line)


if __name__ == "__main__":
    main()
